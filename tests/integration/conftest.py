"""Fixtures. `bench` starts processes in a test's own directory and ends each of them when the test is over."""
import os
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from dd.dedupd import BINARY, Dedupd  # noqa: E402
from dd.redisd import Redis  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out of check-fast and of runs under sanitizers")
    if not config.pluginmanager.hasplugin("xdist"):
        config.addinivalue_line("markers", "xdist_group(name): tests that one worker runs, one after another")


def pytest_sessionstart(session):
    if not os.access(BINARY, os.X_OK):
        pytest.exit("no dedupd at %s: make first, or set DEDUPD" % BINARY, returncode=3)


class Bench:
    """The processes of one test."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.last_words = None  # of all processes, once the directory is gone

    def redis(self, name="redis", start=True, **kw):
        server = Redis(self.directory, name, **kw)
        self.processes.append(server)
        return server.start() if start else server

    def dedupd(self, name="dedupd", start=True, **kw):
        server = Dedupd(self.directory, name, **kw)
        self.processes.append(server)
        return server.start() if start else server

    def stop_cleanly(self):
        """A test that passed must also leave processes that stop cleanly, dedupd before Redis."""
        for p in sorted(self.processes, key=lambda p: isinstance(p, Redis)):
            if p.running() and p.state() != "T":
                p.stop()

    def end(self):
        for p in self.processes:
            p.kill9()
        self.last_words = self.logs()

    def logs(self):
        if self.last_words is not None:
            return self.last_words
        return "\n".join("==== %s\n%s" % (p.name, p.log_tail(60)) for p in self.processes if p.child is not None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    setattr(item, "report_" + report.when, report)
    bench_ = getattr(item, "funcargs", {}).get("bench")
    if report.failed and bench_ is not None:
        report.sections.append(("processes", bench_.logs()))


@pytest.fixture
def bench(request):
    # Short: a Unix socket's path has at most 107 bytes.
    directory = tempfile.mkdtemp(prefix="dedupd-it-")
    it = Bench(directory)
    try:
        yield it
        if getattr(request.node, "report_call", None) is not None and request.node.report_call.passed:
            it.stop_cleanly()
    finally:
        it.end()
        shutil.rmtree(directory, ignore_errors=True)


MODES = ("embedded", "redis")


@pytest.fixture(params=MODES)
def server(request, bench):
    """A dedupd in each mode; server.redis is its Redis or None."""
    redis = bench.redis() if request.param == "redis" else None
    it = bench.dedupd(redis=redis)
    it.redis = redis
    return it
