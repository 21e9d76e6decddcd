"""Exposures staged in Redis: what is said about them, what Redis must be set to, what refuses them and what they survive."""
import threading
import time

import pytest

from dd import clock
from dd.dedupd import UNHURRIED
from dd.load import Load
from dd.wait import PATIENCE, wait_until

DAY_MS = 86400 * 1000
QUICK = {"wheel.tick_s": "1"}


def items(prefix, n):
    return ["%s-%d" % (prefix, i) for i in range(n)]


def staged(bench, redis=None, **settings):
    """A dedupd that stages."""
    redis = redis or bench.redis()
    it = bench.dedupd(redis=redis, settings=dict(QUICK, **settings)).wait_staging()
    it.wait_full()
    return it


def pending(redis):
    """Pending items in Redis, all users together."""
    with redis.client() as c:
        return sum(c.scard(k) for k in c.scan_iter("dd:{*}:p:*", 1000))


def ingest(it):
    return it.health()["components"]["ingest"]


# ---- what is said

def test_staged_is_said_and_a_flush_moves_it(bench):
    it = staged(bench)
    assert it.exposed("u1", ["a", "b"]) == {"accepted": 2, "durability": "staged"}
    assert pending(it.redis) == 2
    answer = it.filter("u1", ["a", "b", "c"], explain=True)
    assert answer["items"] == ["c"] and {e["reason"] for e in answer["explain"]} == {"pending"}
    assert it.flush()["items"] == 0, "the open slot stays"
    assert it.flush(everything=True) == {"slots": 1, "users": 1, "items": 2}
    assert pending(it.redis) == 0 and it.redis.command("KEYS", "dd:a:*") == []
    assert it.redis.command("KEYS", "dd:s:*") == []
    answer = it.filter("u1", ["a", "b", "c"], explain=True)
    assert answer["items"] == ["c"] and "pending" not in {e["reason"] for e in answer["explain"]}
    assert it.flush(everything=True)["items"] == 0


def test_a_batch_names_the_weakest_promise(bench):
    """What is older than the last period goes to the store at once."""
    it = staged(bench)
    two_months_ago = clock.month_start_ms() - 32 * DAY_MS
    assert it.exposed("u1", ["old"], ts=two_months_ago)["durability"] == "wal"
    answer = it.call("/exposed", {"events": [{"user": "u1", "items": ["new"]},
                                             {"user": "u1", "items": ["older"], "ts": two_months_ago}]})
    assert answer == {"accepted": 2, "durability": "wal"}
    assert pending(it.redis) == 1
    assert it.unseen("u1", ["old", "new", "older", "x"]) == ["x"]


@pytest.mark.parametrize("options, word", [({"appendonly": "no"}, "appendonly")])
def test_without_aof_everything_is_written_directly(bench, options, word):
    redis = bench.redis(options=options)
    it = bench.dedupd(redis=redis, settings=dict(QUICK, **{"scenes.default.recent.ttl_s": "1"}))
    wait_until(lambda: word in ingest(it)["warnings"], 10, "the warning is in /health")
    assert it.staging() == "off" and it.health()["status"] == "degraded"
    assert it.exposed("u1", ["a"])["durability"] == "wal"
    assert pending(redis) == 0
    redis.kill9()
    redis.clear()
    redis.start()
    it.wait_full(20)
    assert it.unseen("u1", ["a", "x"]) == ["x"]


@pytest.mark.parametrize("options, word", [({"appendonly": "no"}, "appendonly"),
                                           ({"appendfsync": "everysec"}, "appendfsync")])
def test_volatile_is_said_where_it_is_allowed(bench, options, word):
    it = bench.dedupd(redis=bench.redis(options=options), settings=dict(QUICK, **{"ingest.allow_volatile": "true"}))
    it.wait_staging("volatile")
    assert word in ingest(it)["warnings"]
    assert it.exposed("u1", ["a"]) == {"accepted": 1, "durability": "volatile"}
    assert pending(it.redis) == 1
    assert it.unseen("u1", ["a", "x"]) == ["x"]
    it.flush(everything=True)
    assert it.unseen("u1", ["a", "x"]) == ["x"]


# ---- a Redis that evicts what is pending

EVICTING = {"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"}


def test_staging_by_name_is_refused_at_start_where_pending_could_be_evicted(bench):
    it = bench.dedupd(redis=bench.redis(options=EVICTING), start=False, settings={"ingest.mode": "staged"})
    it.launch()
    assert it.wait(20) != 0
    assert "maxmemory-policy" in it.log() and "app.ready" not in it.log()


def test_without_a_name_it_writes_directly_there(bench):
    it = bench.dedupd(redis=bench.redis(options=EVICTING), settings=QUICK)
    wait_until(lambda: "evicts" in ingest(it)["warnings"], 10, "the warning is in /health")
    assert it.staging() == "off"
    assert it.exposed("u1", ["a"])["durability"] == "wal"


def test_an_evicting_policy_that_appears_later_turns_staging_off(bench):
    it = staged(bench, **{"ingest.mode": "staged"})
    assert it.exposed("u1", ["a"])["durability"] == "staged"
    it.redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    it.redis.command("CONFIG", "SET", "maxmemory", "64mb")
    it.redis.command("CLIENT", "KILL", "TYPE", "normal")  # it asks at every connect, and each minute
    it.wait_staging("off")
    wait_until(lambda: " error wheel.staging_off " in it.log(), 10, "it is in the log")
    it.wait_full()
    assert it.exposed("u1", ["b"])["durability"] == "wal"
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"], "what was staged before is still read"
    assert it.flush(everything=True)["items"] == 1
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"]
    it.redis.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    it.redis.command("CLIENT", "KILL", "TYPE", "normal")
    it.wait_staging()


@pytest.mark.slow
def test_eviction_takes_caches_and_never_pending(bench):
    """More cached sets and deliveries than fit, in a Redis that evicts: every pending item stays."""
    redis = bench.redis()
    it = staged(bench, redis, **UNHURRIED, **{"scenes.default.recent.ttl_s": "1"})
    load = Load(it, threads=3, users_each=70, seed=1)
    history = items("h", 1200)
    for user in load.users_all:  # of the month before the last: in the store at once, a cached set of 3 KB each
        it.exposed(user, history, ts=clock.month_start_ms() - 32 * DAY_MS)
    redis.command("CONFIG", "SET", "maxmemory", used_memory(redis) + 500000)
    load.start()
    for user in load.users_all:
        load.full_answer(user, history[:10])
    load.more(800, 60)
    load.stop()
    evicted = redis.command("INFO", "stats")["evicted_keys"]
    print("%d keys evicted" % evicted)
    assert evicted > 100
    # Two items of a user may share a fingerprint.
    assert load.items - 3 <= pending(redis) <= load.items, "nothing is missing, and nothing was flushed meanwhile"
    assert load.missing() == []
    it.flush(everything=True)
    assert load.missing() == []
    for user in load.users_all[:20]:
        assert load.full_answer(user, [*history, "x"])["items"] == ["x"]


def used_memory(redis):
    return redis.command("INFO", "memory")["used_memory"]


# ---- limits

def test_more_than_ten_thousand_pending_of_one_user(bench):
    it = staged(bench, **UNHURRIED)
    for n in range(13):
        assert it.exposed("heavy", items("h%d" % n, 1000))["durability"] == "staged"
    it.exposed("light", ["a"])
    everything = [i for n in range(13) for i in items("h%d" % n, 1000)]

    def check():
        assert it.unseen("heavy", everything[:6500] + ["x"]) == ["x"]
        assert it.unseen("heavy", everything[6500:] + ["x"]) == ["x"]
        assert it.unseen("light", ["a", "x"]) == ["x"]

    check()
    # Two items in 10,000 may share a fingerprint.
    assert 12990 <= it.flush(everything=True)["items"] <= 13001
    assert pending(it.redis) == 0
    check()


def test_past_the_pending_cap_an_event_is_refused_and_its_batch_goes_on(bench):
    it = staged(bench, **{"ingest.pending_max": "100"})
    mine = items("m", 120)
    it.exposed("heavy", mine)
    refused = it.http.post("/exposed", {"user": "heavy", "items": ["one-more"]})
    assert refused.status == 429 and int(refused.headers["Retry-After"]) > 0, refused
    assert "ingest.pending_max" in refused.error["message"], refused
    answer = it.call("/exposed", {"events": [{"user": "u1", "items": ["a"]}, {"user": "heavy", "items": ["b", "c"]},
                                             {"user": "u2", "items": ["d"]}]})
    assert answer == {"accepted": 2, "durability": "staged", "rejected": [{"event": 1, "code": "limit"}]}, answer
    for n in range(20):
        assert it.http.post("/exposed", {"user": "heavy", "items": items("again%d" % n, 50)}).status == 429
    assert pending(it.redis) < 350, "refused requests do not make it grow without end"
    assert it.unseen("heavy", [*mine, "x"]) == ["x"]
    assert it.unseen("u1", ["a", "x"]) == ["x"] and it.unseen("u2", ["d", "x"]) == ["x"]
    it.flush(everything=True)
    assert it.exposed("heavy", ["room-again"])["accepted"] == 1
    assert it.unseen("heavy", [*mine, "room-again", "x"]) == ["x"]


# ---- changes between runs, and of Redis under a running dedupd

@pytest.mark.parametrize("end", ["clean", "kill"])
def test_slots_of_another_length_are_not_stranded(bench, end):
    it = staged(bench, **{"ingest.slot_s": "3600"})
    it.exposed("u1", ["a"])
    for slot_s in ("1", "900", "86400", "7"):
        if end == "clean":
            it.stop()
        else:
            it.kill9()
        it.start({"ingest.slot_s": slot_s, "ingest.grace_s": "0"}).wait_staging()
        it.exposed("u1", ["s%s" % slot_s])
        assert it.unseen("u1", ["a", "s%s" % slot_s, "x"]) == ["x"]
    it.flush(everything=True)
    assert it.redis.command("KEYS", "dd:[as]:*") == [] and pending(it.redis) == 0
    assert it.unseen("u1", ["a", "s1", "s900", "s86400", "s7", "x"]) == ["x"]


def test_turned_to_direct_what_is_pending_is_still_read_and_moved(bench):
    it = staged(bench, **{"ingest.slot_s": "1", "ingest.grace_s": "0", "wheel.paused": "true"})
    it.exposed("u1", ["a"])
    it.restart({"ingest.mode": "direct"})
    it.wait_full()
    assert it.exposed("u1", ["b"])["durability"] == "wal"
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"]
    assert pending(it.redis) == 1
    it.restart({"wheel.paused": "false"})
    wait_until(lambda: pending(it.redis) == 0, 10, "the wheel moved it")
    wait_until(lambda: it.redis.command("KEYS", "dd:s:*") == [], 10, "no slot is left")
    assert it.unseen("u1", ["a", "b", "x"]) == ["x"]


def test_scripts_that_redis_forgot(bench):
    it = staged(bench)
    for n in range(4):
        it.exposed("u1", ["a%d" % n])
        it.redis.command("SCRIPT", "FLUSH")
        assert it.flush(everything=True)["items"] == 1
    assert it.unseen("u1", ["a0", "a1", "a2", "a3", "x"]) == ["x"]


def test_a_full_redis_takes_no_more_and_can_be_flushed(bench):
    """noeviction: writes are answered OOM. Exposures go to the store, what was staged stays and leaves by the wheel."""
    it = staged(bench, bench.redis(options={"maxmemory-policy": "noeviction"}))
    it.exposed("u1", ["before"])
    it.redis.command("SET", "ballast", b"x" * 1000000)
    it.redis.command("CONFIG", "SET", "maxmemory", "1mb")
    it.redis.command("SCRIPT", "FLUSH")
    assert it.exposed("u1", ["during"])["durability"] == "wal"
    assert it.call("/exposed", {"events": [{"user": "u1", "items": ["d1"]}, {"user": "u2", "items": ["d2"]}]})
    assert it.unseen("u1", ["before", "during", "d1", "x"]) == ["x"]
    assert it.flush(everything=True)["items"] >= 1
    assert it.unseen("u1", ["before", "during", "d1", "x"]) == ["x"]
    it.redis.command("CONFIG", "SET", "maxmemory", "100mb")
    wait_until(lambda: it.exposed("u1", ["after"])["durability"] == "staged", 10, "it stages again")
    assert it.unseen("u1", ["before", "during", "d1", "after", "x"]) == ["x"]
    assert it.unseen("u2", ["d2", "x"]) == ["x"]


@pytest.mark.slow
def test_a_redis_stalled_for_5_s_in_the_middle_of_a_flush(bench):
    it = staged(bench, **{"wheel.batch_users": "4", "wheel.rate_users_s": "500"})
    users = ["u%d" % n for n in range(400)]
    for user in users:
        it.exposed(user, [user + "-a", user + "-b"])
    flush = flush_in_the_background(it)
    wait_until(lambda: it.metrics()["dedupd_wheel_pages_total"] > 5, 10, "the flush is under way")
    it.redis.freeze()
    began = time.monotonic()
    n = 0
    try:
        while time.monotonic() - began < 5:
            user = users[n % len(users)]
            asked = time.monotonic()
            answer = it.filter(user, [user + "-c%d" % n, "x"])
            assert answer["history"] == "partial" and "x" in answer["items"]
            assert it.exposed(user, [user + "-c%d" % n])["durability"] == "wal"
            assert time.monotonic() - asked < 3 * PATIENCE
            n += 1
    finally:
        it.redis.thaw()
    assert n > 10
    flush.join()
    it.wait_full(20)
    assert pending(it.redis) > 0, "the stall came in the middle"
    for k, user in enumerate(users):
        during = [user + "-c%d" % i for i in range(k, n, len(users))]
        assert it.unseen(user, [user + "-a", user + "-b", *during, "x"]) == ["x"]
    wait_until(lambda: it.flush(everything=True), 20, "the flush is made good")
    assert pending(it.redis) == 0
    for user in users:
        assert it.unseen(user, [user + "-a", user + "-b", "x"]) == ["x"]


def flush_in_the_background(it):
    t = threading.Thread(target=lambda: it.admin.post("/admin/flush", {"all": True}), daemon=True)
    t.start()
    return t


def test_another_redis_and_back_again(bench):
    """The URL leads to another server for a while. What is pending on the first, also of days ago, is seen as soon as it
    is back."""
    it = staged(bench, **{"scenes.default.period": "day", "scenes.default.window": "9", "wheel.paused": "true",
                          "ingest.slot_s": "3600"})
    it.exposed("u1", ["days-ago"])
    it.stop()
    it.start(dict(clock.later(5 * 86400), **{"wheel.tick_s": "3600"}))
    it.wait_full(20)
    assert it.unseen("u1", ["days-ago", "x"]) == ["x"]
    it.redis.stop()
    it.redis.keep_snapshot()
    it.redis.clear()
    it.redis.start()
    wait_until(it.redis_up, 15)
    wait_until(lambda: it.flush() and it.slots() == [], 10, "the slots of the other server are listed: none")
    it.redis.stop()
    it.redis.restore_snapshot()
    it.redis.start()
    wait_until(it.redis_up, 15)
    wait_until(lambda: it.filter("u1", ["days-ago", "x"])["items"] == ["x"], 10, "seen again")
    for _ in range(20):
        answer = it.filter("u1", ["days-ago", "x"])
        assert answer["items"] == ["x"] or answer["history"] == "partial", answer


def test_a_redis_that_comes_back_without_aof_is_not_called_durable(bench):
    """Its settings are read at every connect: no exposure is called staged in between, however rarely the wheel ticks."""
    it = staged(bench, **{"scenes.default.recent.ttl_s": "1"})
    it.restart({"wheel.tick_s": "3600"})
    wait_until(lambda: it.exposed("u1", ["a"])["durability"] == "staged", 10)
    it.redis.stop()
    it.redis.options["appendonly"] = "no"
    it.redis.start()
    for n in range(200):
        assert it.exposed("u1", ["b%d" % n])["durability"] == "wal"
    wait_until(it.redis_up, 15)
    for n in range(200, 300):
        assert it.exposed("u1", ["b%d" % n])["durability"] == "wal"


def test_a_strange_entry_is_logged_without_its_user(bench):
    it = staged(bench)
    it.exposed("u1", ["a"])
    [part] = it.redis.command("KEYS", "dd:a:*")
    it.redis.command("SADD", part, "default/secret-user/2026-13")
    it.flush(everything=True, status=503)  # the slot does not become empty
    assert "hot.strange_entry" in it.log() and "entry_hash=" in it.log() and "secret" not in it.log(), it.log_tail()
