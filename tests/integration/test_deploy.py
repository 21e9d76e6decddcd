"""The files of deploy/ and the Dockerfile, as far as they can be tried without their service manager: units are verified,
command lines are run, packages are compared with what the program links. tests/image builds and runs the image itself."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
import yaml

from dd.client import Client
from dd.ctl import DEDUPCTL
from dd.dedupd import BINARY, ROOT, SANITIZED, SETTINGS, Dedupd
from dd.process import Process
from dd.redisd import Redis, free_port
from dd.wait import wait_until


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


DEFAULTS = json.loads(read("config", "dedupd.json"))

# ---- the service manager's protocol


class Manager:
    """The socket of a service manager."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.sock.settimeout(20)

    def told(self):
        """The next message, as a dict."""
        return dict(line.split("=", 1) for line in self.sock.recv(4096).decode().split("\n") if line)


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_what_the_service_manager_is_told(bench, abstract):
    path = os.path.join(bench.directory, "notify")
    manager = Manager("\0" + path if abstract else path)
    it = bench.dedupd(start=False)
    it.spawn(it.argv(), {"NOTIFY_SOCKET": "@" + path if abstract else path})
    assert manager.told()["READY"] == "1"
    # Ready means serving, at once.
    assert it.is_ready()
    assert it.unseen("u", ["a"]) == ["a"]
    it.signal(signal.SIGHUP)
    assert manager.told()["RELOADING"] == "1"
    assert manager.told()["READY"] == "1"
    it.signal(signal.SIGTERM)
    assert manager.told()["STOPPING"] == "1"
    assert it.wait(20) == 0


def test_a_service_manager_that_is_gone(bench):
    it = bench.dedupd(start=False)
    it.spawn(it.argv(), {"NOTIFY_SOCKET": os.path.join(bench.directory, "nobody")})
    wait_until(it.is_ready, 30)
    assert it.unseen("u", ["a"]) == ["a"]
    assert "service.notify" in it.log()


def test_a_start_that_fails_is_not_ready(bench):
    path = os.path.join(bench.directory, "notify")
    manager = Manager(path)
    manager.sock.settimeout(.2)
    it = bench.dedupd(start=False, settings={"auth.tokens_file": "/nonexistent"})
    it.spawn(it.argv(), {"NOTIFY_SOCKET": path})
    assert it.wait(20) != 0
    with pytest.raises(socket.timeout):
        manager.told()


# ---- deploy/dedupd.service

UNIT = read("deploy", "dedupd.service")


def unit_value(name):
    return re.findall(r"^%s=(.*)$" % name, UNIT, re.M)[-1]


def test_the_unit_is_valid(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    unit = tmp_path / "dedupd.service"
    unit.write_text(UNIT.replace("/usr/local/bin/dedupd", BINARY))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False)
    complaints = [line for line in (done.stdout + done.stderr).split("\n") if "dedupd.service" in line]
    assert done.returncode == 0 and not complaints, done.stderr


def test_the_unit_is_hardened(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    unit = tmp_path / "dedupd.service"
    unit.write_text(UNIT)
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)], capture_output=True,
                          text=True, timeout=60, check=False)
    found = re.search(r"exposure level for dedupd.service: ([0-9.]+)", done.stdout)
    if not found:
        pytest.skip("this systemd-analyze does not look at files: " + done.stderr[-200:])
    assert float(found.group(1)) <= 2.0, done.stdout


def test_the_unit_fits_the_defaults():
    http = DEFAULTS["http"]
    assert int(unit_value("TimeoutStopSec")) >= http["drain_delay_s"] + http["drain_timeout_s"] + 10
    assert int(unit_value("LimitNOFILE")) >= 2 * http["max_connections"] + DEFAULTS["store"]["max_open_files"]
    assert unit_value("Type") == "notify"
    assert DEFAULTS["data_dir"] == "/var/lib/" + unit_value("StateDirectory")


def test_the_units_command_line_runs(bench):
    """With the configuration as it is installed, but for places and ports."""
    words = unit_value("ExecStart").split()
    assert words == ["/usr/local/bin/dedupd", "--config", "/etc/dedupd/dedupd.json"]
    it = bench.dedupd(start=False)
    it.spawn([BINARY, "--config", os.path.join(ROOT, "config", "dedupd.json"), "--set", "data_dir=" + it.data_dir,
              "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "http.drain_delay_s=0"],
             {})
    wait_until(it.is_ready, 30)
    assert it.unseen("u", ["a"]) == ["a"]


# ---- "Redis under systemd" of docs/deploy.md

SECTION = read("docs", "deploy.md").split("\n## Redis under systemd\n")[1].split("\n## ")[0]
HEREDOCS = dict(re.findall(r"tee (?:-a )?(\S+) <<'EOF'\n(.*?)^EOF$", SECTION, re.M | re.S))


def can_be(uid, gid, *groups):
    """What stands before a command line that runs as somebody else."""
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % gid, "--groups=" + ",".join(map(str, groups or [gid]))]


class TheirRedis(Redis):
    """As the page makes it: another user than dedupd, a socket for its group."""

    def argv(self):
        text = read("deploy", "redis.conf") + HEREDOCS["/etc/redis/redis-dedupd.conf"]
        run = os.path.join(self.directory, "run")
        self.socket = os.path.join(run, "redis-server.sock")
        conf = os.path.join(run, "redis-dedupd.conf")
        os.makedirs(run, exist_ok=True)
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text.replace("/run/redis-dedupd", run).replace("/var/lib/redis/dedupd", self.data))
        for path, mode in ((run, 0o2755), (self.data, 0o750), (conf, 0o640)):
            os.chown(path, 65101, 65101)
            os.chmod(path, mode)
        return can_be(65101, 65101) + ["redis-server", conf]


class TheirDedupd(Dedupd):
    groups = ()

    def argv(self):
        os.makedirs(self.data_dir, exist_ok=True)
        os.chown(self.data_dir, 65102, 65102)
        return can_be(65102, 65102, *self.groups) + super().argv()


def test_redis_under_systemd(bench):
    """dedupd opens the socket with the common group, and not without it; the drop-in and the unit name the same."""
    if os.geteuid() != 0 or subprocess.run(can_be(65102, 65102) + [BINARY, "--version"], capture_output=True, timeout=60,
                                           check=False).returncode:
        pytest.skip("needs root, and a build that others may run")
    drop_in = HEREDOCS["/etc/systemd/system/dedupd.service.d/redis.conf"]
    assert "SupplementaryGroups=redis" in drop_in
    assert re.search(r"^Wants=(.*)$", drop_in, re.M).group(1) in unit_value("After").split()
    os.chmod(bench.directory, 0o711)
    redis = TheirRedis(bench.directory)
    bench.processes.append(redis)
    redis.start()
    it = TheirDedupd(bench.directory, redis=redis.url)
    bench.processes.append(it)
    it.start()
    wait_until(lambda: "Permission denied" in str(it.health()["components"]["redis"]), 20, "it is refused")
    it.stop()
    it.groups = (65102, 65101)
    it.start().wait_staging()
    assert it.exposed("u", ["a"])["durability"] == "staged"


def test_the_edit_of_the_configuration(tmp_path):
    """The line of the page that names the socket, on the file as it is installed."""
    [edit] = re.findall(r"^sudo (sed -i .*) /etc/dedupd/dedupd.json$", SECTION, re.M)
    path = tmp_path / "dedupd.json"
    path.write_text(read("config", "dedupd.json"))
    subprocess.run("%s %s" % (edit, path), shell=True, check=True, timeout=60)
    done = subprocess.run([BINARY, "--config", str(path), "--print-config"], env={}, capture_output=True, text=True, timeout=60,
                          check=True)
    config = json.loads(done.stdout)
    socket_of_redis = re.search(r"^unixsocket (\S+)$", HEREDOCS["/etc/redis/redis-dedupd.conf"], re.M).group(1)
    assert config["redis"]["url"] == "unix://" + socket_of_redis
    config["redis"]["url"] = ""
    assert config == DEFAULTS


def broken_links(top):
    """Relative links of the pages under a directory to files that are not there."""
    found = []
    for directory, _, files in os.walk(top):
        for name in (n for n in files if n.endswith(".md")):
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read())
            found += [(name, link) for link in links if not os.path.exists(os.path.join(directory, link))]
    return found


def test_install(bench):
    if os.path.dirname(BINARY) != os.path.join(ROOT, "build"):
        pytest.skip("installs what is in build/")
    to = os.path.join(bench.directory, "to")
    subprocess.run(["make", "-s", "-C", ROOT, "install", "DESTDIR=" + to, "PREFIX=/usr", "SANITIZER="], check=True,
                   timeout=300, env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")})
    for path in ("usr/bin/dedupd", "usr/bin/dedupctl", "etc/dedupd/dedupd.json", "usr/lib/sysusers.d/dedupd.conf"):
        assert os.path.exists(os.path.join(to, path)), path
    with open(os.path.join(to, "usr/lib/systemd/system/dedupd.service"), encoding="utf-8") as f:
        assert "ExecStart=/usr/bin/dedupd " in f.read()
    docs = os.path.join(to, "usr/share/doc/dedupd")
    for path in ("README.md", "docs/deploy.md", "proto/openapi.yaml", "config/README.md", "proto/filter_reader.py"):
        assert os.path.exists(os.path.join(docs, path)), path
    assert broken_links(docs) == []


# ---- the Dockerfile

DOCKERFILE = re.sub(r"\\\n", " ", read("Dockerfile"))
STAGES = DOCKERFILE.split("\nFROM ")[1:]


def docker_env():
    pairs = re.findall(r"^ENV (.*)$", STAGES[-1], re.M)[0].split()
    return dict(p.split("=", 1) for p in pairs)


def test_the_last_stage_has_no_compiler_and_no_root():
    assert len(STAGES) == 2
    for word in ("gcc", "make", "-dev", "clang"):
        assert not re.search(r"install.*\b%s\b" % re.escape(word), STAGES[-1]), word
    user = re.findall(r"^USER (\S+)$", STAGES[-1], re.M)[-1]
    assert not user.startswith(("0", "root"))


def test_the_last_stage_has_every_library():
    if SANITIZED or not shutil.which("dpkg"):
        pytest.skip("needs an ordinary build on Debian")
    linked = set()
    for program in (BINARY, DEDUPCTL):
        done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=60)
        linked |= set(re.findall(r"=> (/\S+)", done.stdout))
    direct = subprocess.run(["readelf", "-d", BINARY, DEDUPCTL], capture_output=True, text=True, check=True, timeout=60)
    needed = set(re.findall(r"NEEDED.*\[(\S+)\]", direct.stdout))
    for path in sorted(linked):
        if os.path.basename(path) in needed:
            package = package_of(path)
            assert package in ("libc6", "libgcc-s1", "libstdc++6") or package in STAGES[-1].split(), package


def package_of(path):
    for p in (path, path.replace("/lib/", "/usr/lib/", 1), os.path.realpath(path)):
        done = subprocess.run(["dpkg", "-S", p], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise AssertionError("no package has " + path)


# ---- deploy/compose.yaml

COMPOSE = yaml.safe_load(read("deploy", "compose.yaml"))

# What compose-spec allows, as far as it is used here: any other key is a mistake until it is added.
TOP = {"services": dict, "volumes": dict}
SERVICE = {"image": str, "build": dict, "command": list, "environment": dict, "ports": list, "volumes": list,
           "depends_on": dict, "healthcheck": dict, "restart": str, "stop_grace_period": str, "ulimits": dict,
           "read_only": bool, "cap_drop": list, "security_opt": list}
HEALTHCHECK = {"test": list, "interval": str, "timeout": str, "retries": int}
DURATION = re.compile(r"\d+(ms|s|m)")


def fits(schema, node, where):
    for key, value in node.items():
        assert key in schema, "%s.%s" % (where, key)
        assert isinstance(value, schema[key]), "%s.%s: %r" % (where, key, value)


def test_compose_is_valid():
    fits(TOP, COMPOSE, "compose")
    services = COMPOSE["services"]
    for name, s in services.items():
        fits(SERVICE, s, name)
        fits(HEALTHCHECK, s.get("healthcheck", {}), name)
        assert s.get("restart") in ("no", "always", "on-failure", "unless-stopped")
        for duration in [s["stop_grace_period"]] + [s.get("healthcheck", {}).get(k, "1s") for k in ("interval", "timeout")]:
            assert DURATION.fullmatch(duration), (name, duration)
        assert all(isinstance(v, str) for v in s.get("environment", {}).values()), "values are quoted"
        assert all(isinstance(w, str) for w in s.get("command", [])), "words are quoted"
        for dependency, how in s.get("depends_on", {}).items():
            assert dependency in services and how["condition"] == "service_healthy" and services[dependency]["healthcheck"]
        for port in s.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), "published on this host only"
        for volume in s.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or os.path.exists(os.path.join(ROOT, "deploy", source)), source
    assert os.path.exists(os.path.join(ROOT, "deploy", services["dedupd"]["build"]["context"], "Dockerfile"))


def test_compose_accepts_it():
    if not shutil.which("docker-compose"):
        pytest.skip("docker-compose is not installed")
    done = subprocess.run(["docker-compose", "-f", os.path.join(ROOT, "deploy", "compose.yaml"), "config", "-q"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_compose_says_what_dedupd_knows():
    """Variables of options that exist, with values that they take; a port that the image listens on; time to stop."""
    s = COMPOSE["services"]["dedupd"]
    env = dict(docker_env(), **s["environment"])
    done = subprocess.run([BINARY, "--print-config"], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    config = json.loads(done.stdout)
    inner = s["ports"][0].split(":")[2]
    assert config["http"]["listen"] == "0.0.0.0:" + inner
    assert config["http"]["protected"] is False
    # The admin listener is for dedupctl in the container, where it looks by itself, and not for other hosts.
    assert "--admin URL    admin listener (DEDUPCTL_ADMIN, http://%s)" % config["admin"]["listen"] in subprocess.run(
        [DEDUPCTL, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.findall(r"^EXPOSE (.*)$", STAGES[-1], re.M) == [inner]
    http = DEFAULTS["http"]
    assert int(s["stop_grace_period"].rstrip("s")) >= http["drain_delay_s"] + http["drain_timeout_s"] + 10
    assert s["volumes"][0].split(":")[1] == config["data_dir"]
    assert s["ulimits"]["nofile"] >= 2 * http["max_connections"]


class ComposeRedis(Redis):
    """The command line of the service, with its file, its volume and its port where they are here."""

    def start(self):
        words = COMPOSE["services"]["redis"]["command"]
        files = dict(v.split(":")[1::-1] for v in COMPOSE["services"]["redis"]["volumes"] if v.startswith("./"))
        os.makedirs(self.data, exist_ok=True)
        places = {"/data": self.data, "6379": str(self.port), "0.0.0.0": "127.0.0.1"}
        places.update({inside: os.path.join(ROOT, "deploy", there) for inside, there in files.items()})
        self.spawn([places.get(w, w) for w in words])
        wait_until(self.answers, 20, "Redis answers")
        return self


def test_compose_runs(bench):
    redis = ComposeRedis(bench.directory, tcp=True)
    bench.processes.append(redis)
    redis.start()
    assert redis.command("CONFIG", "GET", "appendfsync")[1] == b"always"
    env = dict(docker_env(), **COMPOSE["services"]["dedupd"]["environment"])
    port, admin = free_port(), free_port()
    it = Process(bench.directory, "dedupd")
    bench.processes.append(it)
    it.stop = lambda: (it.signal(signal.SIGTERM), it.wait(30))
    env = {k: v.replace("redis://redis:6379", "redis://127.0.0.1:%d" % redis.port) for k, v in env.items()}
    env.update(DEDUPD_HTTP_LISTEN=env["DEDUPD_HTTP_LISTEN"].replace("8080", str(port)),
               DEDUPD_ADMIN_LISTEN=env["DEDUPD_ADMIN_LISTEN"].replace("8081", str(admin)),
               DEDUPD_DATA_DIR=bench.directory + "/data", DEDUPD_HTTP_DRAIN_DELAY_S="0",
               DEDUPD_STORE_MIN_FREE_BYTES=SETTINGS["store.min_free_bytes"],
               DEDUPD_HTTP_DEADLINE_MS=SETTINGS["http.deadline_ms"], DEDUPD_REDIS_TIMEOUT_MS=SETTINGS["redis.timeout_ms"])
    it.spawn([BINARY], env)
    wait_until(lambda: "app.ready" in it.log(), 30, "dedupd is ready")
    client = Client("127.0.0.1:%d" % port)
    wait_until(lambda: client.get("/health").json["components"]["ingest"]["durability"] == "staged", 20)
    assert client.post("/exposed", {"user": "u", "items": ["a"]}).json == {"accepted": 1, "durability": "staged"}
    assert client.post("/filter", {"user": "u", "candidates": ["a", "b"]}).json["items"] == ["b"]
    client.close()
    # The health check of the image, with the port of this run.
    words = json.loads(re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", STAGES[-1], re.M)[0])
    assert words[0] == "dedupctl"
    done = subprocess.run([DEDUPCTL, *words[1:]], env={"DEDUPCTL_DATA": "http://127.0.0.1:%d" % port}, capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    began = time.monotonic()
    assert it.stop()[1] == 0
    assert time.monotonic() - began < int(COMPOSE["services"]["dedupd"]["stop_grace_period"].rstrip("s"))
