"""A private Redis server with its data in a temporary directory, configured as deploy/redis.conf says."""
import os
import shutil
import signal
import socket

import redis

from .process import Process
from .wait import PATIENCE, wait_until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
CONF = os.path.join(ROOT, "deploy", "redis.conf")


def free_port():
    """A port that the system calls free. Another process may take it in between: use it at once."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Redis(Process):
    """options: a dict of redis.conf settings that override the file. tcp=True: on a port, else on a Unix socket."""

    def __init__(self, directory, name="redis", options=None, tcp=False, password=None):
        super().__init__(directory, name)
        self.data = os.path.join(self.directory, name + "-data")
        self.port = free_port() if tcp else 0
        self.socket = os.path.join(self.directory, name + ".sock")
        self.options = dict(options or {})
        self.password = password

    @property
    def url(self):
        return self.url_with(self.password)

    def url_with(self, password):
        if self.port:
            return "redis://%s127.0.0.1:%d/0" % (":%s@" % password if password else "", self.port)
        assert not password, "passwords are for TCP here"
        return "unix://" + self.socket

    def argv(self):
        argv = ["redis-server", CONF, "--dir", self.data, "--port", str(self.port)]
        if not self.port:
            argv += ["--unixsocket", self.socket]
        if self.password:
            argv += ["--requirepass", self.password]
        for key, value in self.options.items():
            argv += ["--" + key, str(value)]
        return argv

    def start(self):
        os.makedirs(self.data, exist_ok=True)
        first = self.child is None
        for _ in range(5):
            self.spawn(self.argv())
            wait_until(lambda: not self.running() or self.answers(), 20, "Redis answers")
            if self.running():
                return self
            # Somebody was quicker; later starts must be where clients look for it.
            assert first and "Address already in use" in self.log(), self.log_tail()
            self.port = free_port()
        raise AssertionError("no port for Redis:\n" + self.log_tail())

    def answers(self):
        try:
            with self.client() as c:
                return c.ping()
        except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def client(self):
        """A new connection; replies are bytes."""
        where = {"host": "127.0.0.1", "port": self.port} if self.port else {"unix_socket_path": self.socket}
        return redis.Redis(password=self.password, socket_timeout=10 * PATIENCE, **where)

    def command(self, *words):
        with self.client() as c:
            return c.execute_command(*words)

    def stop(self):
        """A clean stop: SIGTERM, everything on disk."""
        if self.running():
            self.signal(signal.SIGTERM)
            self.wait()

    def restart(self):
        self.stop()
        return self.start()

    # ---- state that comes back from the past

    def keep_snapshot(self, name="old"):
        """Copies what a restart would load now; restore_snapshot brings it back. The AOF is complete at this point
        because every reply was preceded by its fsync."""
        copy = os.path.join(self.directory, "%s-%s" % (self.name, name))
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy)

    def restore_snapshot(self, name="old"):
        assert not self.running()
        shutil.rmtree(self.data)
        shutil.copytree(os.path.join(self.directory, "%s-%s" % (self.name, name)), self.data)

    def clear(self):
        """Starts from nothing next time."""
        assert not self.running()
        shutil.rmtree(self.data)
