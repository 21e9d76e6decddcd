"""Stops single threads of a process, as a slow disk does: ptrace, through libc. SIGSTOP would stop all of them."""
import ctypes
import os

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine)

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.waitpid.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


class CannotTrace(Exception):
    """The system forbids it."""


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) != 0:
        raise CannotTrace(os.strerror(ctypes.get_errno()))


def waits_for_work(pid, tid):
    """Whether the thread sleeps on a condition variable: the store's writer and readers do when there is nothing to do;
    event loops sleep in epoll."""
    try:
        with open("/proc/%d/task/%d/syscall" % (pid, tid), encoding="ascii") as f:
            return f.read().split()[0] == str(SYS_FUTEX)
    except PermissionError as e:
        raise CannotTrace(str(e)) from None


def idle_threads(pid):
    if SYS_FUTEX is None:
        raise CannotTrace("unknown machine")
    return [t for t in map(int, os.listdir("/proc/%d/task" % pid)) if t != pid and waits_for_work(pid, t)]


class Stopped:
    """with Stopped(pid, tids): those threads do not run."""

    def __init__(self, pid, tids):
        self.pid, self.tids, self.held = pid, tids, []

    def __enter__(self):
        assert self.tids
        try:
            for tid in self.tids:
                ptrace(SEIZE, tid)
                self.held.append(tid)
                ptrace(INTERRUPT, tid)
                libc.waitpid(tid, None, WALL)
        except CannotTrace:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for tid in self.held:
            libc.ptrace(DETACH, tid, None, None)
        self.held = []
