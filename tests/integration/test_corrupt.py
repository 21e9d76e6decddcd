"""Damaged bytes: in a cached entry they cost a read, in the store they cost that user's answers their "full", and
nobody else notices either."""
import glob
import os
import random

import pytest

from dd import clock, rocks
from dd.wait import wait_until

USERS = ["u%d" % i for i in range(8)]
MINE = ["mine-%d" % i for i in range(300)]
FEW = MINE[:20]


def cached(redis, user):
    """(key, {field: value}) of a user's cached sets."""
    keys = redis.command("KEYS", "dd:{default/%s}:c:*" % user)
    assert len(keys) <= 1, keys
    if not keys:
        return None, {}
    flat = redis.command("HGETALL", keys[0])
    return keys[0], dict(flat) if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2]))


def fill(it, redis, user):
    """Asks until the user's sets are in the cache."""
    def asked():
        assert it.unseen(user, ["fresh"]) == ["fresh"]
        return cached(redis, user)[1]
    return wait_until(asked, 10, "the cache is filled")


def damages(blob, rng):
    """Name and bytes, of every sort of damage."""
    yield "empty", b""
    yield "one byte", blob[:1]
    yield "foreign", b"\x00" * 64
    yield "text", b'{"json": true}'
    yield "random", rng.randbytes(len(blob))
    yield "longer", blob + b"\x00"
    yield "twice", blob + blob
    for cut in sorted({1, len(blob) // 2, len(blob) - 1}):
        yield "cut at %d" % cut, blob[:cut]
    for _ in range(24):
        at, bit = rng.randrange(len(blob)), rng.randrange(8)
        yield "bit %d of byte %d" % (bit, at), blob[:at] + bytes([blob[at] ^ 1 << bit]) + blob[at + 1:]


@pytest.fixture
def pair(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings={"ingest.mode": "direct"})
    it.redis = redis
    for n, user in enumerate(USERS):
        it.exposed(user, MINE if n % 2 else FEW)
    return it


def seen_by(n):
    return MINE if n % 2 else FEW


def check_all_full(it, but=()):
    for n, user in enumerate(USERS):
        if user not in but:
            assert it.unseen(user, MINE[:len(seen_by(n))] + ["fresh"]) == ["fresh"], user


@pytest.mark.parametrize("n", [0, 1], ids=["sparse", "dense"])
def test_a_damaged_cached_set_is_read_again(pair, n):
    rng = random.Random(7)
    user = USERS[n]
    entries = fill(pair, pair.redis, user)
    key, _ = cached(pair.redis, user)
    newest = sorted(entries)[-1]
    whole = entries[newest]
    header = whole[:25]
    for what, bytes_ in [*damages(whole, rng), *((w, header + b) for w, b in damages(whole[25:], rng))]:
        pair.redis.command("HSET", key, newest, bytes_)
        answer = pair.filter(user, [*seen_by(n), "fresh"])
        # An entry that says "nothing stored" with a valid number cannot be told from a true one; it is not damage.
        if bytes_[25:] == b"" and len(bytes_) == 25:
            continue
        assert answer["history"] == "full", what
        assert answer["items"] == ["fresh"], what
    check_all_full(pair)


def test_a_key_of_the_wrong_type_hurts_only_its_user(pair):
    user = USERS[0]
    fill(pair, pair.redis, user)
    key, _ = cached(pair.redis, user)
    pair.redis.command("DEL", key)
    pair.redis.command("SET", key, "a string")
    answer = pair.filter(user, [*FEW, "fresh"])
    assert answer["items"] == ["fresh"]
    check_all_full(pair, but=[user])

    pair.redis.command("DEL", "dd:{default/%s}:d" % USERS[1])
    pair.redis.command("LPUSH", "dd:{default/%s}:d" % USERS[1], "x")
    answer = pair.filter(USERS[1], [*MINE, "fresh"])
    assert answer["items"] == ["fresh"]
    assert answer["history"] == "partial", "deliveries cannot be read"
    answer = pair.filter(USERS[1], ["c1", "c2"], limit=1, claim=True)
    assert answer["history"] == "partial" and answer["items"] == ["c1"]
    check_all_full(pair, but=USERS[:2])
    pair.redis.command("DEL", key, "dd:{default/%s}:d" % USERS[1])
    wait_until(lambda: pair.filter(user, ["fresh"])["history"] == "full", 10)


@pytest.mark.parametrize("n", [0, 1], ids=["sparse", "dense"])
def test_a_damaged_set_in_the_store_is_quarantined(pair, n):
    """The stored blob as the cache shows it, damaged in many ways under the names of other users."""
    user = USERS[n]
    entries = fill(pair, pair.redis, user)
    newest = sorted(entries)[-1]
    blob = entries[newest][25:]
    assert blob, "the newest period holds something"
    year, month = newest.decode().split("-")
    ordinal = rocks.month_ordinal(int(year), int(month))
    bad = [d for d in damages(blob, random.Random(8)) if d[1]]
    victims = ["victim-%d" % i for i in range(len(bad))]

    pair.stop()
    rocks.put(store_path(pair), [(rocks.key_of(ordinal, "default", v), b) for v, (_, b) in zip(victims, bad)])
    pair.redis.command("FLUSHALL")
    pair.start()

    check_all_full(pair)
    for victim, (what, _) in zip(victims, bad):
        first = pair.filter(victim, ["a"])
        assert first["history"] == "partial", what
        # Exposures are kept from now on, though answers stay partial: what was lost cannot be known.
        assert pair.exposed(victim, ["after"])["accepted"] == 1
        again = pair.filter(victim, ["after", "a"])
        assert "after" not in again["items"] and again["history"] == "partial", what
    check_all_full(pair)
    corrupt = sum(v for k, v in pair.metrics().items() if "corrupt" in k or "quarantine" in k)
    assert corrupt >= len(bad)

    pair.restart()
    check_all_full(pair)
    answer = pair.filter(victims[0], ["after", "a"])
    assert answer["history"] == "partial" and "after" not in answer["items"]


def test_a_damaged_file_of_the_store(pair):
    """Flipped bytes in the middle of a table file: RocksDB's block checksum finds them; the process goes on."""
    pair.stop()
    files = sorted(glob.glob(store_path(pair) + "/*.sst"))
    if not files:
        pytest.skip("the store wrote no table file")
    for path in files:
        with open(path, "r+b") as f:
            f.seek(40)
            old = f.read(1)
            f.seek(40)
            f.write(bytes([old[0] ^ 0xff]))
    pair.redis.command("FLUSHALL")
    pair.launch()
    wait_until(lambda: not pair.running() or pair.is_ready(), 30)
    if pair.running():
        for user in USERS:
            answer = pair.filter(user, ["fresh"])
            assert answer["history"] in ("partial", "full")
        assert pair.http.get("/health/live").status == 200
    else:
        assert "store.open_failed" in pair.log()


def store_path(it):
    found = glob.glob(it.data_dir + "/**/CURRENT", recursive=True)
    assert len(found) == 1, found
    return os.path.dirname(found[0])


def test_garbage_that_a_clean_stop_would_have_written(bench):
    """The files of a clean stop (deliveries, change table) with foreign bytes: ignored, with a line in the log."""
    for name, redis in (("embedded", None), ("with-redis", bench.redis())):
        it = bench.dedupd(name, redis=redis)
        it.exposed("u1", ["a"])
        it.delivered("u1", ["d"])
        it.stop()
        for path in glob.glob(it.data_dir + "/*"):
            if os.path.isfile(path) and ("saved" in path or "change" in path):
                with open(path, "wb") as f:
                    f.write(b"\x01" * 100)
        it.start()
        assert it.unseen("u1", ["a", "b"]) == ["b"]
        it.stop()


def test_time_is_not_trusted_from_a_cached_entry(pair):
    """An entry filled in the far future, by a clock that was wrong: still judged by its number."""
    user = USERS[0]
    entries = fill(pair, pair.redis, user)
    key, _ = cached(pair.redis, user)
    newest = sorted(entries)[-1]
    value = bytearray(entries[newest])
    value[17:25] = (clock.now_ms() + 10**12).to_bytes(8, "little")
    pair.redis.command("HSET", key, newest, bytes(value))
    pair.exposed(user, ["later"])
    assert pair.unseen(user, [*FEW, "later", "fresh"]) == ["fresh"]
