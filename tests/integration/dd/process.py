"""A child process with its output in a file. Every one that was started is ended by its id, whatever a test does."""
import os
import signal
import subprocess
import time

from .wait import PATIENCE


def let_children_be_interrupted():
    """A signal that is ignored stays ignored in children, and a shell without job control starts what it puts into the
    background with SIGINT and SIGQUIT ignored (nohup: SIGHUP). One that is caught is at its default after exec; here it
    is caught by nothing."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


let_children_be_interrupted()


class Process:
    """One program; start() may be called again after it ended. The log of all runs is kept."""

    def __init__(self, directory, name):
        self.directory = str(directory)
        self.name = name
        self.log_path = os.path.join(self.directory, name + ".log")
        self.child = None
        self.log_from = 0

    def spawn(self, argv, env=None):
        assert not self.running(), "%s runs already" % self.name
        with open(self.log_path, "ab") as log:
            self.log_from = log.tell()
            # Its own session: a Ctrl-C at the test runner must not reach it before the clean-up does.
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                                          env=env, start_new_session=True)

    def running(self):
        return self.child is not None and self.child.poll() is None

    @property
    def pid(self):
        return self.child.pid

    def log(self):
        """What it wrote since it was started last."""
        with open(self.log_path, "rb") as f:
            f.seek(self.log_from)
            return f.read().decode("utf-8", "replace")

    def log_tail(self, lines=30):
        return "\n".join(self.log().split("\n")[-lines:])

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=20.0):
        """The exit status; negative: the signal that ended it. Fails when it does not end in time."""
        try:
            return self.child.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s (pid %d) did not end within %g s:\n%s"
                                 % (self.name, self.pid, seconds, self.log_tail())) from None

    def kill9(self):
        """At once. A stopped process (SIGSTOP) dies of it too."""
        if self.running():
            self.signal(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()

    def freeze(self):
        """SIGSTOP; returns when the kernel says that it is stopped."""
        self.signal(signal.SIGSTOP)
        end = time.monotonic() + 10 * PATIENCE
        while self.state() != "T":
            assert time.monotonic() < end, "%s did not stop" % self.name
            time.sleep(0.001)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def state(self):
        with open("/proc/%d/stat" % self.pid, encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.pid, encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self):
        with open("/proc/%d/statm" % self.pid, encoding="utf-8") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))
