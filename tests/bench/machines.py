"""What the benchmark runs: nginx, Redis and dedupd, the load program, the CPU they used, and data sets."""
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from dd.dedupd import ROOT, Dedupd  # noqa: E402
from dd.process import Process  # noqa: E402
from dd.redisd import Redis, free_port  # noqa: E402
from dd.wait import wait_until  # noqa: E402

LOAD = os.path.join(ROOT, "build", "bench", "load")
DEDUPCTL = os.path.join(ROOT, "build", "dedupctl")

# The defaults of the program, not those of the tests; one loop, so that a request's cost is not spread over idle ones.
SETTINGS = {"log.level": "info", "http.workers": "1", "http.deadline_ms": None, "redis.timeout_ms": None,
            "store.block_cache_bytes": None, "store.write_buffer_bytes": None, "store.change_cells": None,
            "store.min_free_bytes": None}

NGINX = """daemon off; master_process off; worker_processes 1; pid %(dir)s/nginx.pid; error_log stderr warn;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2;
  fastcgi_temp_path %(dir)s/t3; uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5; client_max_body_size 10m;
  server { listen 127.0.0.1:%(port)d; location / { default_type application/json; return 200 '{"items":[]}'; } } }
"""


class Nginx(Process):
    """Answers everything with a few constant bytes; the body of a POST is read and thrown away."""

    def __init__(self, directory):
        super().__init__(directory, "nginx")
        self.address = "127.0.0.1:%d" % free_port()

    def start(self):
        conf = os.path.join(self.directory, "nginx.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(NGINX % {"dir": self.directory, "port": int(self.address.rsplit(":", 1)[1])})
        self.spawn([shutil.which("nginx") or "/usr/sbin/nginx", "-c", conf])
        wait_until(lambda: load(self.address, "get", requests=1, conns=1, quiet=True) is not None, 10, "nginx answers")
        return self


def address(server):
    """Where the load program connects."""
    if isinstance(server, Dedupd):
        return "%s:%d" % (server.http.host, server.http.port)
    return "unix:" + server.socket if isinstance(server, Redis) else server.address


def load(where, shape, quiet=False, **options):
    """Runs the load program; its figures, or None when it could not connect and quiet is set."""
    argv = [LOAD, where, shape]
    for name, value in options.items():
        if value is True:
            argv.append("--" + name)
        elif value not in (None, False):
            argv += ["--" + name, str(value)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        if quiet:
            return None
        raise SystemError("%s: %s" % (" ".join(argv), done.stderr))
    return json.loads(done.stdout)


def cpu_ns(processes):
    """User and system time of all threads, to the nanosecond."""
    total = 0
    for p in processes:
        tasks = "/proc/%d/task" % p.pid
        for task in os.listdir(tasks):
            with open("%s/%s/schedstat" % (tasks, task), encoding="ascii") as f:
                total += int(f.read().split()[0])
    return total


def disk(process):
    """(read calls, bytes that came from the disk) of a process so far."""
    with open("/proc/%d/io" % process.pid, encoding="ascii") as f:
        fields = dict(line.split(": ") for line in f.read().splitlines())
    return int(fields["syscr"]), int(fields["read_bytes"])


def forget_pages(directory):
    """Takes a store's tables out of the kernel's page cache."""
    db = os.path.join(directory, "db")
    for name in os.listdir(db):
        fd = os.open(os.path.join(db, name), os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def bulk_load(directory, users, items, months=3, more=()):
    """A data directory by dedupctl load: (seconds, sets, bytes of the blobs, bytes of the files)."""
    begun = time.monotonic()
    subprocess.run([DEDUPCTL, "load", "--data-dir", directory, "--users", str(users), "--items", str(items),
                    "--months", str(months), "--compact", *more], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    done = subprocess.run([DEDUPCTL, "verify", "--data-dir", directory, "--json"], check=True, capture_output=True,
                          text=True)
    report = json.loads(done.stdout)
    return seconds, report["sets"], report["bytes"], table_bytes(directory)


def table_bytes(directory):
    db = os.path.join(directory, "db")
    return sum(os.path.getsize(os.path.join(db, f)) for f in os.listdir(db) if f.endswith(".sst"))


def clone(directory, to):
    """A copy of a data directory; tables, which never change, are linked."""
    shutil.copytree(directory, to, copy_function=lambda a, b: os.link(a, b) if a.endswith(".sst") else shutil.copy2(a, b))
    return to


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
    return {"cpu": model, "cores": os.cpu_count(), "kernel": os.uname().release,
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "load_average": os.getloadavg()[0]}
