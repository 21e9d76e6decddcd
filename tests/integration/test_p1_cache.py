"""Cached filter sets that come back from the past: every one is judged by the change table, so that an answer that says
"full" never misses an acknowledged exposure."""
import shutil
import threading

import pytest

from dd.wait import wait_until

USERS = ["u%d" % i for i in range(5)]
FRESH = "fresh"


class World:
    """A dedupd on a Redis, and what each user was shown. Deliveries live for a second, so that their loss makes answers
    partial for no longer than that."""

    def __init__(self, bench, **settings):
        self.bench = bench
        self.redis = bench.redis()
        self.it = bench.dedupd(redis=self.redis, settings={"ingest.mode": "direct", "scenes.default.recent.ttl_s": "1",
                                                           **settings})
        self.seen = {u: [] for u in USERS}

    def expose(self, n=10, prefix=""):
        for user in USERS:
            new = ["%s%s-%d" % (prefix, user, len(self.seen[user]) + i) for i in range(n)]
            assert self.it.exposed(user, new)["accepted"] == n
            self.seen[user] += new

    def check(self):
        """Asks twice: the first answer may fill the cache, the second may use it."""
        for _ in range(2):
            for user in USERS:
                assert self.it.unseen(user, [*self.seen[user], FRESH]) == [FRESH], user

    def fill(self):
        """Until every user has cached sets."""
        def filled():
            self.check()
            return all(self.redis.command("KEYS", "dd:{default/%s}:c:*" % user) for user in USERS)
        wait_until(filled, 10, "the cache is filled")

    def wait_up(self):
        wait_until(self.it.redis_up, 15, "Redis is up again")
        self.it.wait_full()


@pytest.fixture
def world(bench):
    return World(bench)


def test_a_write_makes_cached_sets_stale(world):
    for _ in range(5):
        world.expose()
        world.fill()
    world.check()


def test_redis_restarted_from_an_old_snapshot_with_the_cache_in_it(world):
    world.expose()
    world.fill()
    world.redis.stop()
    world.redis.keep_snapshot()
    world.redis.start()
    world.wait_up()
    world.expose()
    world.check()
    world.redis.kill9()
    world.redis.restore_snapshot()
    world.redis.start()
    world.wait_up()
    assert world.redis.command("KEYS", "dd:*:c:*"), "the old cache is back"
    world.check()
    world.expose()
    world.check()


def test_the_same_from_an_rdb_file(bench):
    """Without AOF, as an operator may have configured it."""
    world = World(bench)
    world.redis.stop()
    world.redis.options.update({"appendonly": "no", "save": "3600 1"})
    world.redis.clear()
    world.redis.start()
    world.wait_up()
    world.expose()
    world.fill()
    world.redis.command("SAVE")
    world.redis.kill9()
    world.redis.keep_snapshot()
    world.redis.start()
    world.wait_up()
    world.expose()
    world.fill()
    world.redis.kill9()
    world.redis.restore_snapshot()
    world.redis.start()
    world.wait_up()
    assert world.redis.command("KEYS", "dd:*:c:*"), "the old cache is back"
    world.check()


def test_written_while_redis_was_away(world):
    world.expose()
    world.fill()
    world.redis.freeze()
    world.expose()
    world.redis.thaw()
    world.wait_up()
    world.check()


def test_evicted_and_filled_again(world):
    for n in range(5):
        world.expose(3)
        world.fill()
        world.redis.command("DEL", *world.redis.command("KEYS", "dd:*:c:*"))
        if n % 2:
            world.expose(3)
        world.check()


def test_a_clean_restart_keeps_the_cache_useful_and_right(world):
    world.expose()
    world.fill()
    world.it.restart()
    assert "resumed=yes" in world.it.log()
    before = store_reads(world.it)
    world.check()
    assert store_reads(world.it) == before, "cached sets of before the stop are valid"
    world.expose()
    world.check()


def store_reads(it):
    """Reads of the store so far."""
    return sum(v for k, v in it.metrics().items() if k.startswith("dedupd_store_reads_total"))


def test_a_crash_makes_every_cached_set_invalid(world):
    world.expose()
    world.fill()
    world.it.kill9()
    world.it.start()
    assert "resumed=no" in world.it.log()
    world.check()
    world.expose()
    world.check()


def test_a_clean_stop_then_writes_and_a_crash(world):
    """The saved table is used once: after the crash the one of the clean stop must not come back."""
    world.expose()
    world.fill()
    world.it.restart()
    world.expose()
    world.it.kill9()
    world.it.start()
    assert "resumed=no" in world.it.log()
    world.check()


def test_a_restored_copy_of_the_directory(world):
    """The store of an earlier clean stop, with its saved table, while the cache has seen later commits: what the
    restored store does not have is gone, and what is exposed afterwards must not be hidden by cached sets of then."""
    world.expose()
    world.fill()
    world.it.stop()
    copy = world.it.data_dir + "-copy"
    shutil.copytree(world.it.data_dir, copy)
    early = {u: list(s) for u, s in world.seen.items()}
    world.it.start()
    world.expose()
    world.fill()
    world.it.stop()
    shutil.rmtree(world.it.data_dir)
    shutil.move(copy, world.it.data_dir)
    world.it.start()
    assert "resumed=no" in world.it.log(), "the hot tier remembers a later stop"
    world.seen = early
    world.check()
    # The cached sets of then carry higher numbers than the commits from now on, and lack these items.
    world.expose(5, "again-")
    world.check()
    world.expose()
    world.check()


def test_two_private_stores_asked_about_the_same_user_in_turn(world):
    """Each process has its own cached sets under its own key; neither reads the other's."""
    other = world.bench.dedupd("other", redis=world.redis, settings={"ingest.mode": "direct"})
    world.expose()
    world.fill()
    theirs = {u: [] for u in USERS}
    for n in range(4):
        for user in USERS:
            item = "other-%s-%d" % (user, n)
            other.exposed(user, [item])
            theirs[user].append(item)
        world.expose(2)
        for user in USERS:
            for _ in range(2):
                answer = other.filter(user, [*theirs[user], FRESH])
                assert answer["items"] == [FRESH] and answer["history"] == "full"
        world.check()


def test_another_redis_in_its_place(world):
    """The URL leads to another server, which another process has filled: nothing of it is believed."""
    world.expose()
    world.fill()
    world.redis.stop()
    world.redis.keep_snapshot()
    world.redis.clear()
    world.redis.start()
    world.wait_up()
    world.expose()
    world.check()
    world.redis.stop()
    world.redis.restore_snapshot()
    world.redis.start()
    world.wait_up()
    world.check()


def test_expired_cache_entries(bench):
    world = World(bench, **{"scenes.default.cache.ttl_s": "1"})
    for _ in range(3):
        world.expose()
        world.check()
        wait_until(lambda: not world.redis.command("KEYS", "dd:*:c:*"), 10, "cached sets expire")
        world.check()


def test_few_cells_cost_reads_and_nothing_else(bench):
    """All users share 1,024 cells: false invalidations, never a wrong answer."""
    world = World(bench, **{"store.change_cells": "1024"})
    for _ in range(3):
        world.expose(5)
        for n in range(200):
            world.it.exposed("noise-%d" % n, ["x"])
        world.check()


@pytest.mark.slow
def test_readers_fill_while_writers_write(world):
    """No interleaving is forced here; many are tried. After every acknowledgement the very next read must show it."""
    failures = []

    def user_loop(user):
        mine = []
        for n in range(150):
            item = "%s-%d" % (user, n)
            world.it.exposed(user, [item])
            mine.append(item)
            answer = world.it.filter(user, [*mine, FRESH])
            if answer["history"] == "full" and answer["items"] != [FRESH]:
                failures.append((user, n, answer["items"]))
                return

    def reader_loop(stop):
        while not stop.is_set():
            for user in USERS:
                world.it.filter(user, [FRESH])

    stop = threading.Event()
    readers = [threading.Thread(target=reader_loop, args=(stop,)) for _ in range(3)]
    users = [threading.Thread(target=user_loop, args=(u,)) for u in USERS]
    for t in readers + users:
        t.start()
    for t in users:
        t.join()
    stop.set()
    for t in readers:
        t.join()
    assert not failures, failures
