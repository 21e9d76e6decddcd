"""History: raw ids beside the filters, and filters made anew from them."""
import os
import random
import shutil

import pytest

from dd import clock, rocks
from dd.ctl import ctl, ctl_json
from dd.load import Load
from dd.wait import wait_until

ALL = {"history.mode": "all", "wheel.tick_s": "1"}


def items_of(n, tag="i"):
    return ["%s%d" % (tag, i) for i in range(n)]


def rebuild(it, status=202, **what):
    """Starts it, waits, and returns the report."""
    answer = it.admin.post("/admin/rebuild", what)
    assert answer.status == status, answer
    if status != 202:
        return answer.json

    def ended():
        report = it.admin.get("/admin/rebuild").json
        return None if report["running"] else report
    return wait_until(ended, 20, "the rebuild has ended")


def periods_of(it, user, **params):
    answer = it.admin.get("/users/%s" % user)
    assert answer.status == 200, answer
    return {(s["scene"], p["period"]): p for s in answer.json["scenes"] for p in s["periods"]}


def only(it, user):
    [period] = periods_of(it, user).values()
    return period


def flush(it):
    if it.redis:
        it.flush(everything=True)


@pytest.fixture(params=["embedded", "redis"])
def it(request, bench):
    redis = bench.redis() if request.param == "redis" else None
    server = bench.dedupd(redis=redis, settings=ALL)
    if redis:
        server.wait_staging()
    return server


def test_a_rebuild_gives_the_same_verdicts(it):
    rng = random.Random(5)
    shown = {"u%d" % n: items_of(size, "u%d." % n) for n, size in enumerate([1, 20, 129, 1000, 4000])}
    for user, mine in shown.items():
        for at in range(0, len(mine), 700):
            it.exposed(user, mine[at:at + 700])
    it.filter("u0", ["claimed"], claim="exposed")
    shown["u0"].append("claimed")
    flush(it)
    for user in list(shown)[:3]:  # some of it stays staged
        it.exposed(user, ["late"])
        shown[user].append("late")
    fresh = items_of(2000, "fresh")
    before = {u: it.unseen(u, fresh) for u in shown}
    report = rebuild(it, all=True)
    assert report["result"] == "ok" and report["replaced"] == report["total"] == 5 and report["failed"] == 0
    for user, mine in shown.items():
        rng.shuffle(mine)
        assert it.unseen(user, mine) == [], user
        assert len(it.unseen(user, fresh)) >= min(len(before[user]), 1990)
    flush(it)
    assert all(it.unseen(user, mine) == [] for user, mine in shown.items())


def wreck(it, user, how):
    """Puts other bytes in place of the user's set while the server is down."""
    name = only(it, user)["period"]
    it.stop()
    key = rocks.key_of(rocks.month_ordinal(*map(int, name.split("-"))), "default", user)
    rocks.put(os.path.join(it.data_dir, "db"), [(key, how)])
    it.start()


@pytest.mark.parametrize("how", [b"", b"\x00" * 200], ids=["wiped", "corrupt"])
def test_what_was_damaged_comes_back(it, how):
    mine = items_of(500)
    it.exposed("u1", mine)
    it.exposed("u2", mine)
    flush(it)
    wreck(it, "u1", how)
    broken = it.filter("u1", mine)
    assert len(broken["items"]) > 0, "the damage is seen"
    assert broken["history"] == ("partial" if how else "full")
    report = rebuild(it, user="u1")
    assert report["replaced"] == 1 and report["items"] == 500, report
    assert it.unseen("u1", mine + ["x"]) == ["x"]
    assert it.unseen("u2", mine + ["x"]) == ["x"]


def test_a_period_that_is_not_covered_is_a_union(bench):
    it = bench.dedupd(settings=dict(ALL, **{"history.mode": "off"}))
    it.exposed("u1", ["without"])
    it.restart(settings=ALL)
    it.exposed("u1", ["with"])
    it.exposed("u2", ["with"], scene="default")
    report = rebuild(it, all=True)
    assert report["united"] == 2 and report["replaced"] == 0
    assert it.unseen("u1", ["without", "with", "x"]) == ["x"]


def test_a_start_in_another_mode_ends_what_is_covered(bench):
    it = bench.dedupd(settings=ALL)
    it.exposed("u1", ["a"])
    it.restart()
    assert rebuild(it, user="u1")["replaced"] == 1
    it.restart(settings={"history.mode": "off"})
    it.exposed("u1", ["unrecorded"])
    it.kill9()
    it.start(settings=ALL)
    report = rebuild(it, user="u1")
    assert report["united"] == 1 and report["replaced"] == 0
    assert it.unseen("u1", ["a", "unrecorded", "x"]) == ["x"]


def test_the_next_period_is_covered(bench):
    it = bench.dedupd(settings=dict(ALL, **{"history.mode": "off", "scenes.daily.period": "day"}))
    it.exposed("u1", ["old"], scene="daily")
    it.restart(settings=ALL)
    it.exposed("u1", ["today"], scene="daily")
    it.restart(settings=clock.later(86400))
    it.exposed("u1", ["tomorrow"], scene="daily")
    report = rebuild(it, user="u1", scene="daily")
    assert report["united"] == 1 and report["replaced"] == 1, report
    assert it.unseen("u1", ["old", "today", "tomorrow", "x"], scene="daily") == ["x"]


def test_a_restored_store_covers_nothing(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings=ALL).wait_staging()
    it.exposed("u1", ["a"])
    it.flush(everything=True)
    copy = os.path.join(it.directory, "copy")
    assert it.admin.post("/admin/checkpoint", {"path": copy}).status == 200
    it.exposed("u1", ["b"])
    it.stop()
    shutil.rmtree(it.data_dir)
    ctl(None, "restore", copy, it.data_dir)
    it.start()
    wait_until(lambda: it.staging() == "staged", 20, "staging")
    it.flush(everything=True)
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"], "b was still staged"
    report = rebuild(it, user="u1")
    assert report["replaced"] == 0 and report["united"] == 1
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"], "its record went with the old store"


def test_a_changed_policy_applies(bench):
    it = bench.dedupd(settings=ALL)
    mine = items_of(3000)
    it.exposed("u1", mine)
    assert only(it, "u1")["stored"]["kind"] == "bloom"
    it.restart(settings={"scenes.default.filter": "compact"})
    assert rebuild(it, scene="default")["replaced"] == 1
    stored = only(it, "u1")["stored"]
    assert stored["kind"] == "compact" and stored["items"] >= 2999
    assert it.unseen("u1", mine + ["x"]) == ["x"]


def test_only_traced_users(bench):
    it = bench.dedupd(settings={"history.mode": "traced"})
    assert it.admin.request("PUT", "/users/u1/trace", {"days": 7}).status == 200
    it.exposed("u1", ["a", "b"])
    it.exposed("u2", ["a", "b"])
    report = rebuild(it, all=True)
    assert report["total"] == 1 and report["united"] == 1 and report["items"] == 2


def test_off_keeps_nothing(bench):
    it = bench.dedupd()
    it.exposed("u1", ["a"])
    assert rebuild(it, all=True)["total"] == 0
    report = rebuild(it, user="u1")
    assert (report["total"], report["done"], report["without_history"]) == (1, 1, 1), report
    assert rebuild(it, user="nobody")["total"] == 0
    assert it.unseen("u1", ["a", "x"]) == ["x"]


def test_erase_takes_history(it):
    it.exposed("u1", ["a", "b"])
    it.exposed("u2", ["a", "b"])
    flush(it)
    report = it.admin.request("DELETE", "/users/u1").json
    assert report["removed"]["records"] == 1, report
    assert rebuild(it, all=True)["total"] == 1
    assert it.unseen("u1", ["a", "b"]) == ["a", "b"] and it.unseen("u2", ["a", "b"]) == []
    it.exposed("u1", ["c"])
    assert rebuild(it, user="u1")["replaced"] == 1
    assert it.unseen("u1", ["a", "b", "c"]) == ["a", "b"]


def test_forgotten_items_do_not_come_back(it):
    it.exposed("u1", ["a", "b", "c"])
    it.exposed("u1", ["b"])
    flush(it)
    assert it.http.post("/forget", {"user": "u1", "items": ["b"]}).json["forgotten"] == 1
    assert rebuild(it, user="u1")["replaced"] == 1
    assert it.unseen("u1", ["a", "b", "c"]) == ["b"]


def test_kill_9_keeps_everything_acknowledged(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings=dict(ALL, **{"ingest.slot_s": "1", "ingest.grace_s": "0"})).wait_staging()
    load = Load(it, threads=3, users_each=5, seed=11).start()
    try:
        for _ in range(3):
            load.more(60)
            it.kill9()
            it.start()
        load.more(30)
    finally:
        load.stop()
    it.wait_full()
    assert load.missing() == []
    it.flush(everything=True)
    names = {u: [p for (_, p) in periods_of(it, u)] for u in load.users_all if load.acked[u]}
    it.stop()  # now every set is wiped, and nothing but history is left
    rocks.put(os.path.join(it.data_dir, "db"),
              [(rocks.key_of(rocks.month_ordinal(*map(int, p.split("-"))), "default", u), b"")
               for u, periods in names.items() for p in periods])
    it.start()
    report = rebuild(it, all=True)
    assert report["failed"] == 0 and report["replaced"] >= len(names)
    assert load.missing() == [], "history has everything that was acknowledged"


def test_rebuild_under_load(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings=dict(ALL, **{"ingest.slot_s": "1", "ingest.grace_s": "0"})).wait_staging()
    load = Load(it, threads=3, users_each=5, seed=12).start()
    try:
        for _ in range(6):
            load.more(40)
            assert rebuild(it, all=True)["failed"] == 0
    finally:
        load.stop()
    assert load.missing() == []
    it.flush(everything=True)
    assert rebuild(it, all=True)["united"] == 0
    assert load.missing() == []


def test_without_the_store_exposures_are_refused(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings=ALL).wait_staging()
    it.exposed("u1", ["a"])
    it.restart(settings={"store.min_free_bytes": str(1 << 49)})  # the disk guard refuses writes
    it.wait_staging()
    answer = it.http.post("/exposed", {"user": "u1", "items": ["b"]})
    assert answer.status in (503, 507) and "Retry-After" in answer.headers, answer
    assert it.health()["exposures_accepted"] is False
    assert it.unseen("u1", ["a", "b"]) == ["b"], "nor is it staged"
    it.restart(settings={"store.min_free_bytes": "16777216"})
    it.exposed("u1", ["b"])


def test_a_user_at_his_cap_leaves_no_records(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings=dict(ALL, **{"ingest.pending_max": "100"})).wait_staging()
    it.exposed("u1", items_of(100))
    for _ in range(5):
        it.exposed("u1", items_of(100, "more"), status=429)
    it.flush(everything=True)
    assert rebuild(it, user="u1")["items"] == 100


def test_dedupctl_rebuild(it):
    it.exposed("u1", ["a"])
    it.exposed("u2", ["a"])
    assert ctl(it, "rebuild", "--all").startswith("2 sets: 2 replaced, 0 united")
    assert ctl_json(it, "rebuild", "--user", "u1", "--scene", "default")["replaced"] == 1
    # Only sets that exist or have history count, of all the periods and scenes that are looked at.
    assert ctl(it, "rebuild", "--user", "u1").startswith("1 sets: 1 replaced, 0 united, 0 without history, 0 left")
    assert ctl_json(it, "rebuild", "--scene", "default")["done"] == 2
    assert "example" in ctl(None, "--help") and "--all" in ctl(None, "rebuild", "--help")
    ctl(it, "rebuild", status=2)
    ctl(it, "rebuild", "--all", "--user", "u1", status=2)
    ctl(it, "rebuild", "--scene", "nowhere", status=1)


def test_bad_requests(it):
    assert it.admin.get("/admin/rebuild").status == 404
    for body in [{}, {"all": False}, {"all": True, "user": "u1"}, {"user": ""}, {"user": 7}, {"scene": "nowhere"},
                 {"user": "x" * 129}, {"all": "yes"}, {"every": True}]:
        assert rebuild(it, 400, **body)["error"]["code"] in ("invalid_field", "unknown_field"), body
