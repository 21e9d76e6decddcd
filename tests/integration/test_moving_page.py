"""docs/moving-from-a-zset.md: every block of commands runs as it stands there, and says what the page says."""
import os
import re
import subprocess

import pytest

from dd.dedupd import BINARY, ROOT
from dd.redisd import free_port
from dd.wait import PATIENCE

PAGE = os.path.join(ROOT, "docs", "moving-from-a-zset.md")


def blocks():
    with open(PAGE, encoding="utf-8") as f:
        return re.findall(r"^```sh\n(.*?)^```$", f.read(), re.M | re.S)


def script(ports):
    """All blocks in a row, the number of each before its output; only the ports are others."""
    text = "".join("echo '#%d'\n%s" % pair for pair in enumerate(blocks()))
    for old, new in ports.items():
        assert old in text
        text = text.replace(old, str(new))
    # Whatever happens, what was started is ended, by its id.
    end = "trap 'set +e; for f in $DEMO/*.pid; do test -e $f && kill -9 $(cat $f) 2>/dev/null; done; true' EXIT\n"
    return "set -eu\n" + end + text


@pytest.mark.slow
def test_every_command(tmp_path):
    ports = {"6390": free_port(), "8390": free_port(), "8391": free_port()}
    env = dict(os.environ, PATH=os.path.dirname(BINARY) + ":" + os.environ["PATH"], TMPDIR=str(tmp_path))
    # timeout ends what the script started too; the trap does the rest.
    run = subprocess.run(["timeout", "-k", "10", str(int(160 * PATIENCE)), "bash", "-c", script(ports)], cwd=ROOT, env=env,
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    out = re.split(r"^#\d+\n", run.stdout, flags=re.M)[1:]
    assert "\n129\n" in out[0]
    assert '"items":["new-1"]' in out[2] and out[2].count('"legacy"') == 3
    assert '"items":["new-1"]' in out[3]
    assert re.search(r"done: 10000 users, \d+ entries", out[4]), out[4]
    assert " 0 missing" in out[5]
    assert '"items":["new-1"]' in out[6]
    assert '"items":["new-1"]' in out[7] and "legacy" not in out[7], out[7]
