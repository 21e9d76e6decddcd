"""Which process holds which store: copies of a data directory, and several stores on one Redis."""
import shutil
import threading
import time

import pytest

from dd.dedupd import Dedupd
from dd.load import Load
from dd.wait import wait_until

QUICK = {"ingest.slot_s": "1", "ingest.grace_s": "0", "wheel.tick_s": "1"}


class Pair:
    """A dedupd and one on a copy of its directory, not started, on one Redis."""

    def __init__(self, bench):
        self.redis = bench.redis()
        self.it = bench.dedupd(redis=self.redis, settings=QUICK).wait_staging()
        self.it.exposed("u1", ["a"])
        self.it.flush(everything=True)  # else the original may move it to its own store later
        self.it.stop()
        self.copy = Dedupd(bench.directory, "copy", redis=self.redis, settings=QUICK,
                           data_dir=self.it.data_dir + "-copy")
        bench.processes.append(self.copy)
        shutil.copytree(self.it.data_dir, self.copy.data_dir)


@pytest.fixture
def pair(bench):
    return Pair(bench)


def is_refused(it):
    it.launch()
    assert it.wait(20) != 0
    log = it.log()
    return "store.held_by_another" in log and "app.ready" not in log


def register(redis):
    """Store to its entry: boot, sign of life, and the rest, as bytes."""
    with redis.client() as c:
        return {k: v.split(b"\t", 2) for k, v in c.hgetall("dd:n").items() if b":" not in k}


def age(redis, seconds):
    """Every sign of life becomes so much older."""
    for store, (boot, alive, rest) in register(redis).items():
        redis.command("HSET", "dd:n", store, b"\t".join([boot, b"%d" % (int(alive) - seconds * 1000), rest]))


def newest_sign(redis):
    return max(int(alive) for _, alive, _ in register(redis).values())


def test_a_copy_beside_the_living_original_is_refused(pair):
    pair.it.start()
    assert pair.it.redis_up()
    assert is_refused(pair.copy)
    assert pair.it.admin.host in pair.copy.log(), "it says where the original is"
    pair.it.wait_staging()
    assert pair.it.unseen("u1", ["a", "x"]) == ["x"]
    pair.it.kill9()  # no farewell: it may be alive
    assert is_refused(pair.copy)
    pair.it.start()
    pair.it.stop()
    pair.copy.start()
    assert pair.copy.unseen("u1", ["a", "x"]) == ["x"]
    assert is_refused(pair.it), "now the copy is the one that lives"


def test_the_same_directory_takes_over_at_once(pair):
    for _ in range(3):
        pair.it.start().wait_staging()
        pair.it.exposed("u1", ["b"])
        pair.it.kill9()
    pair.it.start()
    pair.it.wait_full()
    assert pair.it.unseen("u1", ["a", "b", "x"]) == ["x"]


def test_a_restored_machine_finds_its_pending(bench):
    """The directory of yesterday's backup, on a machine that died meanwhile: what was staged since is in Redis."""
    pair = Pair(bench)
    pair.it.start({"wheel.paused": "true"}).wait_staging()
    assert pair.it.exposed("u1", ["since"])["durability"] == "staged"
    pair.it.kill9()
    age(pair.redis, 3600)
    pair.copy.start()
    pair.copy.wait_full()
    assert pair.copy.unseen("u1", ["a", "since", "x"]) == ["x"]
    wait_until(lambda: pair.redis.command("KEYS", "dd:*:p:*") == [], 10, "the wheel has moved it")
    assert pair.copy.unseen("u1", ["a", "since", "x"]) == ["x"]


@pytest.mark.slow
def test_a_displaced_process_stops(pair):
    """The original was silent for too long; a copy has taken over; the original finds out and stops."""
    pair.it.start().wait_staging()
    assert pair.it.exposed("u1", ["b"])["durability"] == "staged"
    pair.it.freeze()
    began = time.monotonic()
    age(pair.redis, 3600)
    pair.copy.start({"wheel.paused": "true"}).wait_staging()
    wait_until(lambda: time.monotonic() > began + 10.5, 15, "it stood still for longer than between two signs of life")
    pair.it.thaw()
    assert pair.it.wait(30) == 0
    assert "store.displaced" in pair.it.log()
    pair.copy.wait_full()
    assert pair.copy.unseen("u1", ["a", "b", "x"]) == ["x"], "it took nothing with it"


@pytest.mark.slow
def test_signs_of_life_go_on_during_a_flush_that_takes_long_and_between_rare_ticks(pair):
    """The register is renewed at a third of its 30 s whatever else the wheel does."""
    pair.it.start({"ingest.slot_s": "86400", "wheel.tick_s": "3600", "wheel.batch_users": "1",
                   "wheel.rate_users_s": "1"}).wait_staging()
    for n in range(60):
        pair.it.exposed("user-%d" % n, ["a"])
    before = newest_sign(pair.redis)
    wait_until(lambda: newest_sign(pair.redis) > before, 15, "a sign of life while it waits for a tick")
    answers = []
    flush = threading.Thread(target=lambda: answers.append(pair.it.admin.post("/admin/flush", {"all": True})))
    flush.start()
    wait_until(lambda: 0 < pair.it.metrics()["dedupd_wheel_pages_total"] < 40, 10)
    during = newest_sign(pair.redis)
    wait_until(lambda: newest_sign(pair.redis) > during, 15, "a sign of life during the flush")
    assert not answers, "the flush is still under way"
    pair.it.stop()
    flush.join()
    assert answers[0].status == 503 and answers[0].error["code"] == "shutdown", "and does not hold up a stop"


@pytest.mark.slow
def test_two_stores_on_one_redis(bench):
    """Under load, with flushes and kills of one while the other goes on: each answers from its own store only."""
    redis = bench.redis()
    nodes = [bench.dedupd("node%d" % n, redis=redis, settings=QUICK).wait_staging() for n in range(2)]
    loads = [Load(node, threads=2, users_each=8, seed=n, prefix="n%d-" % n) for n, node in enumerate(nodes)]
    for load in loads:
        load.start()
    for n in range(8):
        loads[n % 2].more(80)
        nodes[n % 2].kill9()
        loads[1 - n % 2].more(40)
        nodes[n % 2].start()
    for load in loads:
        load.stop()
        assert load.missing() == []
    for n, node in enumerate(nodes):
        node.flush(everything=True)
        assert loads[n].missing() == []
        user = loads[1 - n].users_all[0]
        theirs = loads[1 - n].acked[user][:500]
        assert len(theirs) - len(node.unseen(user, theirs)) <= 5, "the other's exposures are not here"


def test_one_user_in_two_stores_on_one_redis(bench):
    """Pending, slots and cached sets carry the store's id; only deliveries are shared."""
    redis = bench.redis()
    settings = {"wheel.paused": "true"}
    a, b = [bench.dedupd(n, redis=redis, settings=settings).wait_staging() for n in ("a", "b")]
    a.exposed("u1", ["of-a"])
    b.exposed("u1", ["of-b"])
    for _ in range(2):
        assert a.unseen("u1", ["of-a", "of-b"]) == ["of-b"]
        assert b.unseen("u1", ["of-a", "of-b"]) == ["of-a"]
        assert len(a.slots()) <= 1 and len(b.slots()) <= 1
        a.flush(everything=True)
    assert b.unseen("u1", ["of-a", "of-b"]) == ["of-a"]
    assert b.flush(everything=True)["items"] == 1
    assert a.unseen("u1", ["of-a", "of-b"]) == ["of-b"]
    assert b.unseen("u1", ["of-a", "of-b"]) == ["of-a"]
