"""The servers under attack: a real dedupd for each group of rows, measured from outside."""
import math
import os
import resource
import socket

from dd.dedupd import SANITIZED, SETTINGS, Dedupd
from dd.process import Process
from dd.redisd import CONF
from dd.wait import PATIENCE, wait_until
from wire import Wire, ask

# Deadlines of the group "strict", in seconds: of slow clients, and of those that this machine makes slow.
HEAD_S, BODY_S, WRITE_S, IDLE_S = .5 * PATIENCE, .5 * PATIENCE, 1.0 * PATIENCE, math.ceil(PATIENCE)
MAX_INFLIGHT = 100
DEADLINE_S = float(SETTINGS["http.deadline_ms"]) / 1000

GROUPS = {
    "strict": {"http.head_timeout_ms": str(int(HEAD_S * 1000)), "http.body_timeout_ms": str(int(BODY_S * 1000)),
               "http.write_timeout_ms": str(int(WRITE_S * 1000)), "http.idle_timeout_s": str(IDLE_S)},
    "many": {"http.max_connections": "12000", "http.idle_timeout_s": "600"},
    "few": {"http.max_connections": "50"},
    "backend": {"redis.timeout_ms": "60000"},
    # Nothing that was let in ends before Redis goes on, however slow the machine: what is turned away is exact.
    "inflight": {"http.max_inflight": str(MAX_INFLIGHT), "redis.timeout_ms": "60000", "http.deadline_ms": "60000"},
    "overload": {"http.workers": "1", "http.deadline_ms": "200", "http.max_connections": "4000"},
}
WITH_REDIS = ("backend", "inflight")


class Redis(Process):
    """Without a client library: it is only started, stopped in its tracks, and let go."""

    def __init__(self, directory):
        super().__init__(directory, "redis")
        self.socket = os.path.join(self.directory, "redis.sock")
        self.url = "unix://" + self.socket

    def start(self):
        self.spawn(["redis-server", CONF, "--dir", self.directory, "--port", "0", "--unixsocket", self.socket])
        wait_until(self.answers, 20, "Redis answers")
        return self

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(self.socket)
            s.sendall(b"PING\r\n")
            return s.recv(100).startswith(b"+PONG")


class Server(Dedupd):
    def __init__(self, directory, group):
        redis = Redis(directory).start() if group in WITH_REDIS else None
        super().__init__(directory, redis=redis, settings=dict(GROUPS[group], **{"log.level": "info"}))
        self.level = None  # (memory, descriptors) when nothing is going on, at the beginning

    def begin(self):
        self.start()
        self.address = "%s:%d" % (self.http.host, self.http.port)
        self.warm_up()
        self.level = self.rss_bytes(), self.descriptors()
        return self

    def warm_up(self):
        """What is allocated once, or kept for reuse, is there before anything is measured."""
        wires = [Wire(self.address) for _ in range(40)]
        for w in wires:
            w.send(ask(list(range(2000))))
        for w in wires:
            w.expect(200)
            w.reset()
        self.http.close()
        self.admin.close()
        self.settle()

    def check_serves(self):
        with Wire(self.address, seconds=5) as w:
            w.send(ask(["a"], "probe"))
            assert w.expect(200).json["items"] == ["a"]

    # ---- what it holds

    def settle(self, seconds=10):
        """Waits until no client's descriptor is left."""
        wait_until(lambda: self.client_sockets() == 0, seconds, "the server lets go of its connections")

    def client_sockets(self):
        """Established or half-closed TCP connections of the data listener, as the kernel lists them."""
        return len(self.tcp_states(range(1, 7)) + self.tcp_states((8, 9, 11)))

    def tcp_states(self, states):
        port, inodes = self.http.port, self.socket_inodes()
        wanted = {"%02X" % s for s in states}
        found = []
        with open("/proc/net/tcp", encoding="ascii") as f:
            for line in f.readlines()[1:]:
                w = line.split()
                if int(w[1].split(":")[1], 16) == port and w[3] in wanted and w[9] in inodes:
                    found.append(w[9])
        return found

    def socket_inodes(self):
        inodes, folder = set(), "/proc/%d/fd" % self.pid
        for fd in os.listdir(folder):
            try:
                target = os.readlink(os.path.join(folder, fd))
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        return inodes

    def reset_peak(self):
        with open("/proc/%d/clear_refs" % self.pid, "w", encoding="ascii") as f:
            f.write("5")

    def peak_bytes(self):
        """The most memory since reset_peak."""
        with open("/proc/%d/status" % self.pid, encoding="ascii") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def limit_descriptors(self, soft):
        """Returns what the limits were."""
        before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (soft, before[1]))
        return before

    def end(self):
        """Fails unless it stops cleanly."""
        if self.redis and self.redis.running():
            self.redis.thaw()
        self.stop()

    def kill(self):
        self.kill9()
        if self.redis:
            self.redis.kill9()


# Sanitizers multiply memory, and keep what was freed.
MEASURES_MEMORY = not SANITIZED
