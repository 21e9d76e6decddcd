"""Erasing users: nothing is left of them, whatever was in flight, and others keep everything."""
import os
import random
import threading

import pytest

from dd import clock
from dd.client import Client
from dd.ctl import ctl, ctl_json


def keys_of(redis, user):
    """Everything in Redis that names the user: keys, and entries of slots."""
    with redis.client() as c:
        found = [k for k in c.scan_iter(count=1000) if user.encode() in k]
        for slot in c.scan_iter(match="dd:a:*", count=1000):
            found += [m for m in c.sscan_iter(slot, count=1000) if user.encode() in m]
    return found


def erase(it, user, query="", status=200):
    answer = it.admin.request("DELETE", "/users/%s%s" % (user, query))
    assert answer.status == status, answer
    return answer.json


def fill(it, user):
    """Deliveries, staged exposures, filter sets of two periods, cached sets."""
    it.exposed(user, ["late"], ts=clock.now_ms() - 31 * 86400000)
    it.exposed(user, ["a", "b", "c"])
    it.filter(user, ["d", "e"], limit=1, claim=True)


CANDIDATES = ["late", "a", "b", "c", "d", "e"]


@pytest.fixture
def staged(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings={"wheel.tick_s": "1", "wheel.batch_users": "5", "scenes.push.window": "2"})
    it.redis = redis
    return it.wait_staging()


def test_everything_is_gone(staged):
    fill(staged, "alice")
    fill(staged, "bob")
    staged.exposed("alice", ["p"], scene="push")
    staged.flush(everything=True)
    staged.exposed("alice", ["f"])
    report = erase(staged, "alice")
    assert report["scenes"] == 2 and report["removed"]["sets"] == 3 and report["removed"]["keys"] >= 2
    assert report["not_asked"] == []
    assert staged.admin.get("/users/alice").status == 404
    assert staged.unseen("alice", [*CANDIDATES, "f"]) == [*CANDIDATES, "f"]
    staged.flush(everything=True)
    assert erase(staged, "alice")["removed"]["sets"] == 0, "it may be repeated"
    assert keys_of(staged.redis, "alice") == []
    assert len(staged.unseen("bob", CANDIDATES)) == 1
    staged.restart()
    assert staged.admin.get("/users/alice").status == 404
    assert len(staged.unseen("bob", CANDIDATES)) == 1


def test_one_scene_one_period(bench):
    it = bench.dedupd(settings={"scenes.push.window": "2"})
    fill(it, "u1")
    it.exposed("u1", ["p"], scene="push")
    assert erase(it, "u1", "?scene=push")["removed"]["sets"] == 1
    assert it.unseen("u1", ["p"], scene="push") == ["p"]
    periods = [p["period"] for p in it.admin.get("/users/u1").json["scenes"][0]["periods"]]
    assert erase(it, "u1", "?scene=default&period=" + periods[-1])["removed"]["sets"] == 1
    assert it.unseen("u1", ["late", "a"]) == ["late"]
    assert erase(it, "u1", "?scene=nowhere", 400)["error"]["field"] == "scene"
    assert erase(it, "u1", "?scene=default&period=2026-11-30", 400)["error"]["field"] == "period"
    assert erase(it, "nobody")["removed"] == {"sets": 0, "keys": 0, "records": 0}


def test_during_forced_flushes(staged):
    """Users are erased at random moments of flushes, and asked about by others; nothing comes back."""
    it, rng = staged, random.Random(5)
    admin = Client("%s:%d" % (it.admin.host, it.admin.port))
    end = threading.Event()

    def keep_flushing():
        while not end.is_set():
            assert admin.post("/admin/flush", {"all": True}).status in (200, 503)

    def keep_asking():
        client = Client("%s:%d" % (it.http.host, it.http.port))
        while not end.is_set():
            client.post("/filter", {"user": "erased-%d" % rng.randrange(60), "candidates": CANDIDATES})

    threads = [threading.Thread(target=keep_flushing)]
    threads += [threading.Thread(target=keep_asking) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for i in range(60):
            it.exposed("erased-%d" % i, ["a", "b", "c"])
            it.exposed("kept-%d" % i, ["a", "b", "c"])
            if i >= 5:
                erase(it, "erased-%d" % (i - 5))
        for i in range(55, 60):
            erase(it, "erased-%d" % i)
    finally:
        end.set()
        for t in threads:
            t.join()
    # What asked afterwards has cached empty sets again: erased once more, with nobody asking.
    it.flush(everything=True)
    for i in range(60):
        assert it.admin.get("/users/erased-%d" % i).status == 404, i
        assert it.unseen("erased-%d" % i, ["a", "b", "c"]) == ["a", "b", "c"], i
        assert it.unseen("kept-%d" % i, ["a", "b", "c", "d"]) == ["d"], i
        assert erase(it, "erased-%d" % i)["removed"]["sets"] == 0, i
    assert keys_of(it.redis, "erased-") == []


def test_without_redis(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings={"ingest.mode": "direct"})
    fill(it, "u1")
    redis.kill9()
    assert erase(it, "u1", status=503)["error"]["code"] == "unavailable"
    ctl(it, "--timeout", "5", "erase", "u1", status=1)
    redis.start()
    it.wait_full(30)
    assert ctl_json(it, "erase", "u1")["failed"] == 0
    assert it.unseen("u1", CANDIDATES) == CANDIDATES
    assert keys_of(redis, "u1") == [] or it.admin.get("/users/u1").status == 404


def test_other_stores_are_named(bench):
    redis = bench.redis()
    one = bench.dedupd("one", redis=redis)
    two = bench.dedupd("two", redis=redis)
    one.exposed("u1", ["a"])
    two.exposed("u1", ["b"])
    [other] = erase(one, "u1")["not_asked"]
    assert other["admin"].endswith(":%d" % two.admin.port)
    assert "not asked: store " + other["store"] in ctl(one, "erase", "u1")
    assert two.unseen("u1", ["a", "b"]) == ["a"]


def test_a_file_of_users(bench):
    it = bench.dedupd()
    users = ["user %d/%d" % (i, i) for i in range(200)]
    for user in users:
        it.exposed(user, ["a"])
    it.exposed("kept", ["a"])
    path = os.path.join(it.directory, "users.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(users[:150]) + "\r\n\n" + users[0] + "\n")
    report = ctl_json(it, "erase", "--file", path)
    assert report == {"users": 151, "failed": 0, "sets": 150, "keys": 0, "not_asked": {}}
    assert ctl(it, "erase", "--file", "-", stdin="\n".join(users[150:]).encode()).startswith("50 users erased")
    for user in users:
        assert it.unseen(user, ["a"]) == ["a"]
    assert it.unseen("kept", ["a"]) == []
    ctl(it, "erase", "--file", path + "-none", status=1)
    ctl(it, "erase", status=2)
    ctl(it, "erase", "x" * 129, status=1)
