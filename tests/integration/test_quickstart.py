"""deploy/quickstart.sh on a machine that has the packages: what it prints, what it starts, and that all of it ends."""
import os
import re
import signal
import subprocess

import pytest

from dd.dedupd import ROOT
from dd.process import Process
from dd.wait import wait_until

pytestmark = pytest.mark.xdist_group("quickstart")

SERVING = "serving until Ctrl-C"


@pytest.fixture
def quickstart(tmp_path):
    it = Process(tmp_path, "quickstart")

    def start(*args, **env):
        path = env.pop("PATH", "/usr/bin:/bin")
        it.spawn(["/bin/sh", os.path.join(ROOT, "deploy", "quickstart.sh"), *args],
                 dict(env, PATH=path, TMPDIR=str(tmp_path)))
        wait_until(lambda: SERVING in it.log() or not it.running(), 120, "quickstart serves")
        assert it.running(), it.log_tail()
        return it

    yield start
    if it.running():
        it.signal(signal.SIGTERM)
        it.wait(60)


def children(directory):
    """Processes whose command line names the directory: what the script started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if any(str(directory).encode() in w for w in words) and b"sh" not in words[0][-3:]:
            found.append(int(pid))
    return found


def dedupctl_as_told(log):
    """Runs the lines that are shown for another terminal."""
    lines = re.findall(r"^  ((?:export|dedupctl) .*)$", log, re.M)
    assert len(lines) == (2 if "http://127.0.0.1:8080, admin" in log else 3), lines
    done = subprocess.run(["/bin/sh", "-ec", "\n".join(lines)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and "u1" in done.stdout, done


def check_session(log):
    assert re.search(r"^  curl -s http://127\.0\.0\.1:\d+/exposed ", log, re.M)
    assert re.search(r'^  \{"accepted":2,', log, re.M)
    assert re.search(r'^  \{"items":\["news-2",43\],"filtered":2,"history":"full"\}$', log, re.M)
    dedupctl_as_told(log)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_with_redis(quickstart, tmp_path, number):
    it = quickstart()
    check_session(it.log())
    assert "with Redis at unix://" in it.log()
    assert len(children(tmp_path)) == 2, "dedupd and redis-server (whose title names its socket)"
    it.signal(number)
    assert it.wait(60) == 0, it.log_tail()
    assert not children(tmp_path)
    assert os.listdir(tmp_path) == ["quickstart.log"], "the directory is gone"


@pytest.mark.slow
def test_embedded(quickstart, tmp_path):
    it = quickstart("--embedded")
    check_session(it.log())
    assert "running embedded, as asked" in it.log()
    assert len(children(tmp_path)) == 1
    it.signal(signal.SIGTERM)
    assert it.wait(60) == 0, it.log_tail()
    assert not children(tmp_path)


@pytest.mark.slow
def test_a_redis_that_does_not_start(quickstart, tmp_path):
    """A redis-server that fails stands first in PATH."""
    bad = tmp_path / "bin" / "redis-server"
    bad.parent.mkdir()
    bad.write_text("#!/bin/sh\necho broken on purpose\nexit 1\n")
    bad.chmod(0o755)
    it = quickstart(PATH="%s:/usr/bin:/bin" % bad.parent)
    check_session(it.log())
    assert "Redis did not start: running embedded" in it.log()
    assert "broken on purpose" in it.log()


@pytest.mark.slow
def test_dedupd_that_dies_is_reported(quickstart, tmp_path):
    it = quickstart("--embedded")
    for pid in children(tmp_path):
        os.kill(pid, signal.SIGKILL)
    assert it.wait(30) == 1
    assert "dedupd ended by itself" in it.log()
