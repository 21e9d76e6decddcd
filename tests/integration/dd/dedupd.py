"""One dedupd process: started on ports the system chooses, known by its ready line; and its requests by name."""
import os
import re
import signal

from . import clock
from .client import Client
from .process import Process
from .wait import PATIENCE, wait_until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BINARY = os.path.abspath(os.environ.get("DEDUPD") or os.path.join(ROOT, "build", "dedupd"))
FOLDER = os.path.basename(os.path.dirname(BINARY))
SANITIZED = FOLDER.startswith("build-") and any(w in FOLDER for w in ("address", "undefined", "thread"))

READY = re.compile(r"app\.ready.*\bhttp=(\S+).*\badmin=(\S+)")
SANITIZER_REPORT = re.compile(r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|WARNING: ThreadSanitizer")

# What tests change from the defaults. Deadlines stay near the real ones: they are part of what is tested; a slow machine
# or a sanitizer build gets more.
TIMES = max(PATIENCE, 2 if SANITIZED else 1)
SETTINGS = {
    "http.listen": "127.0.0.1:0",
    "admin.listen": "127.0.0.1:0",
    "http.workers": "2",
    "http.drain_delay_s": "0",
    "http.deadline_ms": str(int(1000 * TIMES)),
    "redis.timeout_ms": str(int(500 * TIMES)),
    "redis.connect_timeout_ms": str(int(400 * TIMES)),
    "redis.retry_max_ms": "200",
    "store.block_cache_bytes": "8388608",
    "store.write_buffer_bytes": "1048576",
    "store.min_free_bytes": "16777216",
    "store.change_cells": "65536",
    "log.level": "debug",
    "clock.offset_s": str(clock.OFFSET_S),
}

# For what keeps a machine busy, where deadlines are not the subject.
UNHURRIED = {"redis.timeout_ms": "20000", "http.deadline_ms": "25000"}


class Dedupd(Process):
    """settings: options by name, over SETTINGS; None as a value leaves that option to its default."""

    def __init__(self, directory, name="dedupd", redis=None, data_dir=None, settings=None):
        super().__init__(directory, name)
        self.data_dir = data_dir or os.path.join(self.directory, name + "-data")
        self.settings = dict(SETTINGS, data_dir=self.data_dir)
        self.redis = None if isinstance(redis, str) else redis
        if redis is not None:
            self.settings["redis.url"] = redis if isinstance(redis, str) else redis.url
        self.settings.update(settings or {})
        self.http = self.admin = None

    def argv(self):
        argv = [BINARY]
        for key, value in self.settings.items():
            if value is not None:
                argv += ["--set", "%s=%s" % (key, value)]
        return argv

    def launch(self):
        """Starts it without waiting for anything."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("DEDUPD")}
        self.spawn(self.argv(), env)
        return self

    def start(self, settings=None):
        """Starts it, with more settings if given, and returns when it is ready."""
        self.settings.update(settings or {})
        self.launch()
        wait_until(self.is_ready, 30, "dedupd says that it is ready")
        if self.redis is not None and self.redis.running() and self.redis.state() != "T":
            # It serves before its connections stand; the first answers may be partial.
            wait_until(self.redis_up, 10, "dedupd is connected")
        return self

    def is_ready(self):
        """Whether it is ready; then its clients are there. An error when it ended instead."""
        found = READY.search(self.log())
        if not found and not self.running():
            raise SystemError("dedupd ended with %s:\n%s" % (self.child.returncode, self.log_tail()))
        if found:
            self.http, self.admin = Client(found.group(1)), Client(found.group(2))
        return found is not None

    def stop(self):
        """A clean stop; fails unless the exit status is 0 and no sanitizer complained."""
        if not self.running():
            return
        self.signal(signal.SIGTERM)
        status = self.wait(60)
        self.check_log()
        assert status == 0, "exit status %d:\n%s" % (status, self.log_tail())

    def check_log(self):
        log = self.log()
        found = SANITIZER_REPORT.search(log)
        assert not found, log[found.start():found.start() + 4000]

    def restart(self, settings=None):
        self.stop()
        return self.start(settings=settings)

    # ---- requests; each returns the decoded body and fails on a status other than 200 unless told which

    def call(self, path, body, status=200):
        answer = self.http.post(path, body)
        assert answer.status == status, "%s %s: %r" % (path, body, answer)
        return answer.json

    def exposed(self, user, items, status=200, **fields):
        return self.call("/exposed", dict(fields, user=user, items=items), status)

    def filter(self, user, candidates, status=200, **fields):
        return self.call("/filter", dict(fields, user=user, candidates=candidates), status)

    def delivered(self, user, items, status=200, **fields):
        return self.call("/delivered", dict(fields, user=user, items=items), status)

    def unseen(self, user, candidates, **fields):
        """The items of an answer that must be full."""
        answer = self.filter(user, candidates, **fields)
        assert answer["history"] == "full", answer
        return answer["items"]

    def health(self):
        answer = self.http.get("/health").json
        assert "components" in answer, answer  # turned away: waits try again
        return answer

    def redis_up(self):
        """Whether every connection to Redis answers, as /health says. Deliveries may still be in doubt: see wait_full."""
        redis = self.health()["components"]["redis"]
        return redis["connections_up"] == redis["connections"] > 0

    def stats(self):
        return self.http.get("/stats").json

    def staging(self):
        """What staging promises, as /health says: "staged", "volatile" or "off"."""
        return self.health()["components"]["ingest"]["durability"]

    def wait_staging(self, what="staged", seconds=20):
        wait_until(lambda: self.staging() == what, seconds, "staging is " + what)
        return self

    def flush(self, everything=False, status=200):
        """POST /admin/flush; the decoded answer."""
        answer = self.admin.post("/admin/flush", {"all": True} if everything else {})
        assert answer.status == status, answer
        return answer.json

    def slots(self):
        answer = self.admin.get("/admin/slots")
        assert answer.status == 200, answer
        return answer.json["slots"]

    def metrics(self):
        """Name (with labels) to value."""
        lines = self.http.get("/metrics").body.decode().split("\n")
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def is_full(self):
        """Whether a filter request is answered from all data just now."""
        return self.filter("is-full-probe", ["x"])["history"] == "full"

    def wait_full(self, seconds=10.0):
        wait_until(self.is_full, seconds, "answers say full")
