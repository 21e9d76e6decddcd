"""Running dedupctl against a server of a test."""
import json
import os
import subprocess

from .dedupd import BINARY, ROOT
from .wait import PATIENCE

BESIDE = os.path.join(os.path.dirname(BINARY), "dedupctl")
DEDUPCTL = BESIDE if os.access(BESIDE, os.X_OK) else os.path.join(ROOT, "build", "dedupctl")


def url(client):
    return "http://%s:%d" % (client.host, client.port)


def ctl(it, *args, status=0, stdin=None):
    """Its standard output; fails unless the exit status is the expected one. it: a Dedupd, or None for none."""
    where = ["--admin", url(it.admin), "--data", url(it.http)] if it else []
    done = subprocess.run([DEDUPCTL, *where, *map(str, args)], input=stdin or b"", capture_output=True,
                          timeout=120 * PATIENCE)
    assert done.returncode == status, (args, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout.decode()


def ctl_json(it, *args, **kw):
    return json.loads(ctl(it, *args, "--json", **kw))
