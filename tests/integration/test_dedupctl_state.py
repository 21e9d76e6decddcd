"""dedupctl health and stats: plain words for people, the answer itself for scripts, exit codes for probes."""
import json
import re

import pytest

from dd.ctl import ctl, ctl_json
from dd.wait import wait_until


def test_health_in_words(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis).wait_staging()
    lines = ctl(it, "health").splitlines()
    assert re.fullmatch(r"ok: exposures are accepted, answers are full; version \S+, up \d+ s", lines[0]), lines
    parts = dict(line.split(None, 1) for line in lines[1:])
    assert parts == {name: "ok" for name in it.health()["components"]}, lines
    redis.kill9()
    wait_until(lambda: it.health()["status"] == "degraded", 20, "it is noticed")
    words = ctl(it, "health")  # it serves: exit code 0
    assert words.startswith("degraded: ") and re.search(r"^  redis +degraded: Redis does not answer \(.*\)", words, re.M)
    assert re.search(r"^  store +ok$", words, re.M), words


def test_health_as_it_came(bench):
    it = bench.dedupd()
    assert sorted(ctl_json(it, "health")) == sorted(it.health())
    assert json.loads(ctl(it, "--json", "health"))["status"] == "ok"
    it.stop()
    ctl(it, "health", status=3)


@pytest.mark.parametrize("command", ["health", "stats"])
def test_arguments(bench, command):
    it = bench.dedupd()
    assert ctl(None, command, "--help").startswith("usage: dedupctl %s" % command)
    ctl(it, command, "x", status=2)
    ctl(it, command, "--colour", status=2)
    assert "traffic" in ctl_json(it, "stats") and "hit_ratio" in ctl(it, "stats")
