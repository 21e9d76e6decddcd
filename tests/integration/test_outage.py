"""Redis stopped, restarted, stalled, or wrong: every request is answered in time, answers and /health say what is
missing, and nothing has to be restarted when it is back."""
import time

import pytest

from dd.dedupd import SETTINGS
from dd.wait import PATIENCE, wait_until

DEADLINE_S = int(SETTINGS["http.deadline_ms"]) / 1000
# What a busy test machine may add.
SLACK_S = 5.0 * PATIENCE


def timed(call):
    began = time.monotonic()
    answer = call()
    took = time.monotonic() - began
    assert took < DEADLINE_S + SLACK_S, "answered after %.2f s" % took
    return answer


def ask(it, user="u1"):
    return timed(lambda: it.filter(user, ["a", "b", "fresh"]))


def partial(it):
    return ask(it)["history"] == "partial"


def hot_is_up(it):
    return it.redis_up()


@pytest.fixture
def pair(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis)
    it.redis = redis
    it.exposed("u1", ["a"])
    assert it.unseen("u1", ["a", "b"]) == ["b"]
    return it


def check_degraded(it):
    """Requests during an outage. Exposures are still acknowledged, by the store."""
    wait_until(lambda: partial(it), 10, "answers say partial")
    answer = timed(lambda: it.exposed("u1", ["b"]))
    assert answer["accepted"] == 1 and answer["durability"] in ("wal", "sync")
    answer = ask(it)
    assert answer["history"] == "partial"
    assert "b" not in answer["items"], "an exposure acknowledged during the outage is seen"
    # Claims work in this process; the same item is not handed out twice.
    first = timed(lambda: it.filter("u1", ["x1", "x2"], limit=1, claim=True))
    second = timed(lambda: it.filter("u1", ["x1", "x2"], limit=1, claim=True))
    assert first["items"] == ["x1"] and second["items"] == ["x2"]
    assert first["history"] == "partial"
    assert not hot_is_up(it)
    assert it.http.get("/health/live").status == 200
    assert it.http.get("/health/ready").status == 200, "a degraded node still serves"


def check_recovered(it):
    wait_until(lambda: hot_is_up(it), 15, "health says that Redis is up")
    it.wait_full(15)
    assert it.unseen("u1", ["a", "b", "fresh"]) == ["fresh"]
    # Deliveries taken in memory stay consulted until they lapse.
    assert it.unseen("u1", ["x1", "x2", "x3"]) == ["x3"]
    assert it.running()


def test_stopped_and_restarted(pair):
    pair.redis.stop()
    check_degraded(pair)
    pair.redis.start()
    check_recovered(pair)


def test_killed_and_restarted(pair):
    pair.redis.kill9()
    check_degraded(pair)
    pair.redis.start()
    check_recovered(pair)


def test_killed_and_back_empty(pair):
    """Somebody removed what Redis had promised to keep: what was staged there is gone, which is said."""
    pair.redis.kill9()
    check_degraded(pair)
    pair.redis.clear()
    pair.redis.start()
    wait_until(lambda: hot_is_up(pair), 15, "health says that Redis is up")
    answer = ask(pair)
    assert "b" not in answer["items"], "taken by the store during the outage"
    assert answer["history"] == "partial", "deliveries, and perhaps staged exposures, were lost"
    assert "hot.redis_lost_data" in pair.log()


def test_stalled(pair):
    """A stopped process accepts connections and answers nothing."""
    pair.redis.freeze()
    try:
        check_degraded(pair)
    finally:
        pair.redis.thaw()
    check_recovered(pair)


def test_not_there_at_start(bench):
    redis = bench.redis(start=False)
    it = bench.dedupd(redis=redis)
    it.redis = redis
    it.exposed("u1", ["a"])
    check_degraded(it)
    redis.start()
    check_recovered(it)


def test_wrong_password_then_right(bench):
    redis = bench.redis(tcp=True, password="right")
    it = bench.dedupd(redis=redis.url_with("wrong"))
    assert ask(it)["history"] == "partial"
    assert timed(lambda: it.exposed("u1", ["a"]))["accepted"] == 1
    assert not it.redis_up()
    wait_until(lambda: "WRONGPASS" in it.http.get("/health").body.decode(), 15, "health says the reason")
    health = it.http.get("/health").body.decode()
    assert ":wrong@" not in health + it.log(), "a password was shown"
    # The server's password changes to what dedupd uses: it comes up by itself.
    redis.command("CONFIG", "SET", "requirepass", "wrong")
    redis.password = "wrong"
    wait_until(lambda: hot_is_up(it), 15, "health says that Redis is up")
    it.wait_full(15)
    assert it.unseen("u1", ["a", "fresh"]) == ["fresh"]


def test_password_from_a_file(bench):
    redis = bench.redis(tcp=True, password="from-the-file")
    path = bench.directory + "/password"
    with open(path, "w", encoding="utf-8") as f:
        f.write("from-the-file\n")
    it = bench.dedupd(redis=redis.url_with(None), settings={"redis.password_file": path})
    it.wait_full()
    assert it.unseen("u1", ["a"]) == ["a"]
    assert hot_is_up(it)
    assert "from-the-file" not in it.log()


def test_full_redis_is_an_outage_of_the_cache_only(bench):
    """maxmemory reached with nothing to evict: writes to Redis fail, requests do not."""
    redis = bench.redis()
    it = bench.dedupd(redis=redis)
    it.exposed("u1", ["a"])
    redis.command("SET", "ballast", b"x" * 1000000)
    redis.command("CONFIG", "SET", "maxmemory", "1mb")
    answer = timed(lambda: it.filter("u1", ["a", "b"], claim=True))
    assert answer["items"] == ["b"]
    assert timed(lambda: it.exposed("u1", ["b"]))["accepted"] == 1
    assert "b" not in ask(it)["items"]
    redis.command("CONFIG", "SET", "maxmemory", "100mb")
    wait_until(lambda: it.filter("u1", ["c%d" % time.monotonic_ns()], claim=True)["history"] == "full", 10)


def test_a_flapping_redis(pair):
    """Many short outages under load: every request answered, nothing acknowledged is lost."""
    acked = []
    for round_ in range(6):
        pair.redis.kill9()
        for i in range(20):
            item = "f-%d-%d" % (round_, i)
            timed(lambda item=item: pair.exposed("u1", [item]))
            acked.append(item)
        pair.redis.start()
        for i in range(20, 40):
            item = "f-%d-%d" % (round_, i)
            timed(lambda item=item: pair.exposed("u1", [item]))
            acked.append(item)
    wait_until(lambda: hot_is_up(pair), 15)
    pair.wait_full(15)
    assert pair.unseen("u1", acked + ["fresh"]) == ["fresh"]
