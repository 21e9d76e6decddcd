"""Moving from an exact store: what the old keys know is dropped before, during and after the migration of a user, in every
shape of key, while writers go on."""
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from dd import clock
from dd.ctl import DEDUPCTL as CTL, url
from dd.dedupd import ROOT
from dd.migration import DAY, DUAL, bulk, key, migrated, place, reasons, report, verify  # pylint: disable=unused-import # noqa: F401
from dd.wait import wait_until
from test_openapi import DOC, check

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "proto"))
import filter_reader  # noqa: E402


# ---- shapes

@pytest.mark.parametrize("unit", [1, 1000, 0.5])
def test_zsets_of_every_size(bench, unit):
    """0, 1, 129 and 100,000 entries; seconds, milliseconds, and seconds with a fraction."""
    redis = bench.redis()
    now = clock.now()
    sizes = {"none": 0, "one": 1, "many": 129, "huge": 100000}
    with redis.client() as c:
        for user, n in sizes.items():
            for at in range(0, n, 10000):
                score = {1: lambda i: int(now - i % DAY), 1000: lambda i: int((now - i % DAY) * 1000),
                         0.5: lambda i: now - i % DAY - 0.5}[unit]
                c.zadd(key(user), {"i%d" % i: score(i) for i in range(at, min(n, at + 10000))})
    d = bench.dedupd(redis=redis, settings=DUAL)
    candidates = {user: ["i%d" % i for i in range(0, n, max(1, n // 500))] for user, n in sizes.items()}
    for user, items in candidates.items():
        assert d.unseen(user, items + ["never"]) == ["never"], user
        assert set(reasons(d, user, items).values()) <= {"legacy"}
    done = bulk(d)
    assert done["users"] == 3 and done["entries"] == 100130 and done["skipped"] == 0, done
    assert done["bytes_before"] > done["bytes_after"] > 0
    verify(d)
    redis.command("FLUSHALL")  # now the sets alone answer
    for user, items in candidates.items():
        assert d.unseen(user, items + ["never"])[-1:] == ["never"]
        assert len(d.unseen(user, items + ["never"])) == 1, user


def test_times(bench):
    """Entries go to their own periods; what is older than the window, or before 1970, is skipped and counted; a time ahead
    counts as now."""
    redis = bench.redis()
    now = clock.now()
    entries = {"now": now, "ms": now * 1000, "month": now - 31 * DAY, "old": now - 200 * DAY, "negative": -5.5,
               "zero": 0, "ahead": now + 400 * DAY, "inf": float("inf"), "minus-inf": float("-inf")}
    with redis.client() as c:
        c.zadd(key("u"), entries)
    d = bench.dedupd(redis=redis, settings=DUAL)
    assert d.unseen("u", list(entries) + ["x"]) == ["x"]  # as long as the old key is asked, all of it counts
    done = bulk(d)
    assert done["entries"] == 5 and done["skipped"] == 4, done
    redis.command("DEL", key("u"))
    assert sorted(d.unseen("u", list(entries))) == ["minus-inf", "negative", "old", "zero"]
    why = reasons(d, "u", list(entries))
    current = time.strftime("%Y-%m", time.gmtime(now))
    assert {why[i] for i in ("now", "ms", "ahead", "inf")} == {current} and why["month"] != current, why


def test_stated_unit(bench):
    redis = bench.redis()
    redis.command("ZADD", key("u"), str(5e10), "item")  # 1971 in ms
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.score_unit": "ms"}))
    assert bulk(d)["skipped"] == 1
    d.restart({"migrate.score_unit": "s"})
    redis.command("ZADD", key("v"), str(2e11), "item")  # far ahead in seconds
    assert bulk(d)["entries"] >= 1


@pytest.mark.parametrize("kind", ["list", "set"])
def test_entries_without_a_time(place, kind):
    start, c = place
    add = c.rpush if kind == "list" else c.sadd
    items = ["i%d" % i for i in range(3000)]
    add(key("u"), *items)
    d = start(**{"migrate.type": kind})
    assert d.unseen("u", items[:500] + ["new"]) == ["new"]
    assert bulk(d)["entries"] == 3000
    add(key("u"), "later")
    assert d.unseen("u", items[:500] + ["new", "later"]) == ["new"]
    verify(d)
    bulk(d)
    assert verify(d)["newer"] == 0
    c.delete(key("u"))
    assert d.unseen("u", items[-500:] + ["new", "later"]) == ["new"]


def test_wrong_types_are_reported_and_skipped(place):
    start, c = place
    c.set(key("text"), "x")
    c.hset(key("hash"), "a", "b")
    c.zadd(key("good"), {"seen": clock.now()})
    d = start()
    assert d.unseen("text", ["a"]) == ["a"]
    done = bulk(d)
    assert done["users"] == 1 and done["wrong_type"] == 2, done
    assert d.unseen("good", ["seen", "new"]) == ["new"]
    assert c.get(key("text")) == b"x"


def test_names_of_keys(bench):
    """Bytes that mean something to SCAN's patterns, users that could be parts of keys, more after the user."""
    redis = bench.redis()
    pattern = "seen[*]?\\{user}:v1"
    users = ["a", "*", "[x]", "a:v1", "\u00e9", "{user}"]
    with redis.client() as c:
        for user in users:
            c.zadd(pattern.replace("{user}", user, 1), {"item": clock.now()})
        c.zadd("seenX:v1", {"item": 1})
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.key": pattern}))
    assert bulk(d)["users"] == len(users)
    assert all(d.unseen(user, ["item", "x"]) == ["x"] for user in users)


# ---- before and after

def test_dual_read_and_mark(place):
    start, c = place
    now = clock.now()
    c.zadd(key("u"), {"before": now - 3600})
    d = start(**{"migrate.margin_s": "60"})
    assert reasons(d, "u", ["before", "x"]) == {"before": "legacy"}
    d.exposed("u", ["shown"])
    assert d.unseen("u", ["before", "shown", "x"]) == ["x"]
    bulk(d)
    assert migrated(d, "u")
    assert reasons(d, "u", ["before"])["before"] != "legacy"
    c.zadd(key("u"), {"after": clock.now(), "after-ms": clock.now() * 1000})  # a writer that has not moved yet
    assert d.unseen("u", ["before", "after", "after-ms", "shown", "x"]) == ["x"]
    # What is older than the mark less the margin is not asked for any more: it stands in the sets.
    c.zadd(key("u"), {"late": now - 3600})
    assert d.unseen("u", ["late", "x"]) == ["late", "x"]
    bulk(d)  # takes over what was added
    c.delete(key("u"))
    assert d.unseen("u", ["before", "after", "after-ms", "shown", "x"]) == ["x"]
    d.restart({"migrate.mode": "done"})
    assert d.unseen("u", ["before", "after", "after-ms", "shown", "x"]) == ["x"]
    assert d.admin.post("/admin/migration", {"bulk": "start"}).status == 409


def test_the_old_store_away_is_said(bench):
    """/health, /admin/migration and one line of the log say what /filter's "partial" means."""
    source = bench.redis("source")
    d = bench.dedupd(settings=dict(DUAL, **{"migrate.source": source.url}))
    d.wait_full()
    now = d.health()
    assert now["status"] == "ok" and now["history"] == "full" and not report(d)["last_error"], now
    assert now["components"]["migration"]["connections_up"] == 2
    source.stop()
    wait_until(lambda: d.filter("u", ["a"])["history"] == "partial" and d.health()["history"] == "partial", 10, "it is away")
    now = d.http.get("/health").json
    check(DOC["components"]["schemas"]["Health"], now, "/health")
    assert now["status"] == "degraded" and "old store does not answer" in now["components"]["migration"]["reasons"][0], now
    assert report(d)["last_error"].startswith("filter: "), report(d)
    source.start()
    wait_until(lambda: d.health()["history"] == "full", 10, "it is back")
    d.wait_full()
    assert d.health()["status"] == "ok" and not report(d)["last_error"]
    assert d.log().count("legacy.disconnected") == 1, d.log_tail()


def test_the_old_store_refuses(bench):
    """Connected, but the reads are refused: as good as away."""
    source = bench.redis("source")
    d = bench.dedupd(settings=dict(DUAL, **{"migrate.source": source.url}))
    d.wait_full()
    source.command("ACL", "SETUSER", "default", "-zmscore")
    assert d.filter("u", ["a"])["history"] == "partial"
    assert "NOPERM" in d.health()["components"]["migration"]["reasons"][0], d.health()
    assert "NOPERM" in report(d)["last_error"]
    source.command("ACL", "SETUSER", "default", "+@all")
    d.unseen("u", ["a"])
    assert d.health()["history"] == "full"


def test_the_log_names_nobody(bench):
    """It outlives an erase: users and items stand in it as hashes."""
    redis = bench.redis()
    now = clock.now()
    with redis.client() as c:
        c.zadd(key("secret-user"), {"a": now})
        c.set(key("secret-text"), "x")
        d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.margin_s": "60"}))
        assert bulk(d)["wrong_type"] == 1
        c.zadd(key("secret-user"), {"secret-item": now - 3600})  # behind the mark: nobody answers for it
    assert d.admin.post("/admin/migration/verify", {"sample": 100}).status == 202
    wait_until(lambda: not report(d)["verify"]["running"], 30, "verified")
    assert report(d)["verify"]["missing"] == 1
    hashed = {name: "%016x" % filter_reader.xxh3(name.encode()) for name in ("secret-user", "secret-item", "secret-text")}
    assert "migrate.missing user_hash=%(secret-user)s item_hash=%(secret-item)s" % hashed in d.log(), d.log_tail()
    assert "migrate.skipped user_hash=%(secret-text)s" % hashed in d.log()
    assert "secret" not in d.log()


def test_lazy(place):
    start, c = place
    for u in range(50):
        c.zadd(key("u%d" % u), {"seen": clock.now() - DAY})
    d = start(**{"migrate.lazy": "true"})
    for u in range(25):
        assert d.unseen("u%d" % u, ["seen", "x"]) == ["x"]
    wait_until(lambda: all(migrated(d, "u%d" % u) for u in range(25)), 10, "who was seen is migrated")
    assert not any(migrated(d, "u%d" % u) for u in range(25, 50))
    d.kill9()
    d.start()
    d.wait_full()
    assert all(migrated(d, "u%d" % u) for u in range(25))  # marks outlive a crash
    c.flushall()
    assert all(d.unseen("u%d" % u, ["seen", "x"]) == ["x"] for u in range(25))


def test_another_scene_is_not_asked(bench):
    redis = bench.redis()
    redis.command("ZADD", key("u"), str(clock.now()), "seen")
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.scene": "push", "scenes.push.window": "2"}))
    assert d.unseen("u", ["seen"]) == ["seen"]
    assert d.unseen("u", ["seen"], scene="push") == []


def test_source_away_is_partial(bench):
    source = bench.redis("source")
    source.command("ZADD", key("u"), str(clock.now()), "seen")
    d = bench.dedupd(settings=dict(DUAL, **{"migrate.source": source.url}))
    d.wait_full()
    assert d.unseen("u", ["seen", "x"]) == ["x"]
    source.kill9()
    wait_until(lambda: d.filter("u", ["seen", "x"])["history"] == "partial", 5, "it says so")
    source.start()
    d.wait_full()
    assert d.unseen("u", ["seen", "x"]) == ["x"]
    source.freeze()  # silent: the deadline of a command, then as above
    assert d.filter("u", ["x"])["history"] == "partial"
    source.thaw()
    d.wait_full()


@pytest.mark.parametrize("kind", ["zset", "list", "set"])
def test_delete_takes_only_what_was_read(bench, kind):
    redis = bench.redis()
    c = redis.client()
    items = ["i%d" % i for i in range(2500)]
    {"zset": lambda: c.zadd(key("u"), {i: clock.now() - DAY for i in items}), "list": lambda: c.lpush(key("u"), *items),
     "set": lambda: c.sadd(key("u"), *items)}[kind]()
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.type": kind, "migrate.after": "delete"}))
    bulk(d)
    assert not c.exists(key("u"))
    assert d.unseen("u", items[::7] + ["x"]) == ["x"]


def test_delete_while_writers_go_on(bench):
    """A member whose score moves during the migration, and new ones, stay in the old key, or are in the sets with the newer
    time: nothing is offered."""
    redis = bench.redis()
    c = redis.client()
    items = ["i%d" % i for i in range(20000)]
    c.zadd(key("u"), {i: clock.now() - 40 * DAY for i in items})
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.after": "delete", "migrate.margin_s": "5"}))
    stop, added = threading.Event(), []

    def write():
        mine, n = redis.client(), 0
        while not stop.is_set():
            mine.zadd(key("u"), {"new%d" % n: clock.now(), items[n % 20000]: clock.now()})
            added.append("new%d" % n)
            n += 1
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            bulk(d)
            assert d.unseen("u", items[::101] + list(added)[-300:] + ["x"]) == ["x"]
    finally:
        stop.set()
        writer.join()
    bulk(d)
    why = reasons(d, "u", items[:min(200, len(added))])
    current = time.strftime("%Y-%m", time.gmtime(clock.now()))
    assert set(why.values()) <= {"legacy", current}, set(why.values())  # the newer time counts


def test_expire(bench):
    redis = bench.redis()
    redis.command("ZADD", key("u"), str(clock.now()), "seen")
    d = bench.dedupd(redis=redis, settings=dict(DUAL, **{"migrate.after": "expire", "migrate.expire_days": "7"}))
    bulk(d)
    assert 7 * DAY - 60 < redis.command("TTL", key("u")) <= 7 * DAY


def test_active_users_first(bench):
    redis = bench.redis()
    with redis.client() as c:
        pipe = c.pipeline(transaction=False)
        for u in range(3000):
            pipe.zadd(key("u%d" % u), {"seen": clock.now() - (50 if u % 2 else 1) * DAY})
        pipe.execute()
    d = bench.dedupd(redis=redis, settings=DUAL)
    assert d.admin.post("/admin/migration", {"bulk": "start", "active_days": 30, "rate_users_s": 3000}).status == 202
    wait_until(lambda: report(d)["bulk"]["pass"] == 2 or report(d)["bulk"]["users"] >= 1500, 20, "the first pass is done")
    assert d.admin.post("/admin/migration", {"bulk": "pause"}).status == 202
    state = report(d)["bulk"]
    assert state["state"] == "paused" and state["passes"] == 2
    active = [u for u in range(0, 200, 2) if migrated(d, "u%d" % u)]
    asleep = [u for u in range(1, 200, 2) if migrated(d, "u%d" % u)]
    assert len(active) == 100 and len(asleep) < 100, (len(active), len(asleep))
    d.restart()  # paused it stays
    assert report(d)["bulk"]["state"] == "paused"
    done = bulk(d)
    assert done["users"] == 3000, done
    verify(d)


def test_bad_orders(bench):
    redis = bench.redis()
    d = bench.dedupd(redis=redis)
    assert d.admin.get("/admin/migration").status == 409
    d.restart(DUAL)
    for body in ({}, {"bulk": "stop"}, {"bulk": "start", "rate_users_s": -1}, {"bulk": "start", "days": 1}, {"bulk": 1}):
        assert d.admin.post("/admin/migration", body).status == 400, body
    assert d.admin.post("/admin/migration/verify", {"sample": "x"}).status == 400


def test_reports_of_dedupctl(bench):
    redis = bench.redis()
    with redis.client() as c:
        for u in range(300):
            c.zadd(key("u%d" % u), {"i%d" % i: clock.now() for i in range(20)})
        c.set(key("x"), "x")
    d = bench.dedupd(redis=redis, settings=DUAL)

    def ctl(*words):
        return subprocess.run([CTL, "--admin", url(d.admin)] + list(words),
                              capture_output=True, text=True, timeout=60, check=False)
    out = ctl("migrate", "--active-days", "3")
    assert out.returncode == 0 and "done: 300 users, 6000 entries" in out.stdout and "1 keys of another" in out.stdout, out
    out = ctl("migrate", "--status", "--json")
    assert json.loads(out.stdout)["bulk"]["users"] == 300
    check({"$ref": "#/components/schemas/Migration"}, json.loads(out.stdout), "status")
    check({"$ref": "#/components/schemas/UserReport"}, d.admin.get("/users/u1").json, "user")
    out = ctl("migrate", "verify", "--sample", "500")
    assert out.returncode == 0 and " 0 missing" in out.stdout, out
    check({"$ref": "#/components/schemas/Migration"}, report(d), "with a comparison")
    assert ctl("migrate", "--rate", "x").returncode == 2
    assert ctl("migrate", "unknown").returncode == 2
    d.restart({"migrate.mode": "off"})
    assert ctl("migrate").returncode == 1


def test_dedupctl_says_what_is_in_the_way(bench):
    """The old keys' Redis refuses connections: said at once, and the end after --timeout without progress."""
    gone = bench.redis("gone", tcp=True)
    gone.kill9()  # its port is closed
    d = bench.dedupd(settings=dict(DUAL, **{"migrate.source": gone.url}))
    words = [CTL, "--admin", url(d.admin), "--timeout"]
    out = subprocess.run(words + ["1", "migrate"], capture_output=True, text=True, timeout=60, check=False)
    assert out.returncode == 1 and out.stdout.startswith("running: 0 users"), out
    said = [line for line in out.stderr.split("\n") if "Connection refused (the server tries again)" in line]
    assert said and len(said) == len(set(said)), out  # each reason once: of the walk, and of the requests' own asking
    assert "nothing was migrated for 1 s: bulk: unavailable" in out.stderr, out
    with subprocess.Popen(words + ["60", "migrate"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert "refused" in watching.stderr.readline()
            gone.start()
            out, _ = watching.communicate(timeout=50)
            assert watching.returncode == 0 and out.startswith("done: "), out
        finally:
            watching.kill()
