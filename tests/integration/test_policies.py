"""Policies of scenes through the whole service: every kind, growth and change of policy on a live system, what rotate and
saturate forget and nothing else, scenes that count. In each mode: embedded, and staged in Redis with flushes."""
import datetime
import os
import sys
import urllib.parse

import pytest

from dd import clock
from dd.dedupd import ROOT

sys.path.insert(0, os.path.join(ROOT, "proto"))
import filter_reader  # noqa: E402

KINDS = ("bloom", "counting", "cuckoo", "compact")
BATCH = 20  # items of one exposure
FLUSH = 200  # items between flushes, where there is staging
FRESH = 20000  # candidates never seen
PIECE = 5000  # candidates of one question


def scene(name, **options):
    return {"scenes.%s.%s" % (name, key): str(value) for key, value in options.items()}


@pytest.fixture(params=["embedded", "redis"])
def serve(request, bench):
    """serve(settings): a dedupd in each mode."""
    redis = bench.redis() if request.param == "redis" else None

    def start(settings):
        it = bench.dedupd(redis=redis, settings=dict({"wheel.tick_s": "1"}, **settings))
        return ready(it)

    return start


def ready(it):
    if it.redis:
        it.wait_staging()
    it.wait_full()
    return it


def again(it, crash=False, settings=None):
    """Restarted, with more settings."""
    if crash:
        it.kill9()
        it.start(settings=settings)
    else:
        it.restart(settings=settings)
    return ready(it)


def flush(it):
    if it.redis:
        it.flush(everything=True)


def see(it, items, name, counting=False, batch=BATCH, every=FLUSH):
    """Exposed in batches, flushed now and then."""
    for at in range(0, len(items), batch):
        answer = it.exposed("u1", items[at:at + batch], scene=name)
        assert answer["accepted"] == len(items[at:at + batch])
        assert answer["durability"] == ("staged" if it.redis and not counting else "wal")
        if (at + batch) % every == 0:
            flush(it)
    flush(it)


def months_on(n):
    """The setting that makes it the same day n months on."""
    now = datetime.datetime.fromtimestamp(clock.now(), datetime.timezone.utc)
    month = now.month - 1 + n
    then = now.replace(year=now.year + month // 12, month=month % 12 + 1)
    return clock.later(int((then - now).total_seconds()))


def unseen(it, items, name, **fields):
    found = []
    for at in range(0, len(items), PIECE):
        found += it.unseen("u1", items[at:at + PIECE], scene=name, **fields)
    return found


def stored(it, name):
    """The current set, as inspect says, and as the reference reader reads it."""
    answer = it.admin.get("/users/u1?" + urllib.parse.urlencode({"scene": name}))
    assert answer.status == 200, answer
    periods = [p for s in answer.json["scenes"] for p in s["periods"] if p["stored"]]
    export = it.admin.get("/users/u1/filter?" + urllib.parse.urlencode({"scene": name}))
    assert export.status == 200, export
    return periods[0]["stored"], filter_reader.FilterSet.from_export(export.json)


def numbered(first, n):
    return ["item-%d" % i for i in range(first, first + n)]


def expect_promise(it, name, fpr):
    """Candidates never seen are dropped at most at rate fpr, with room for chance (4 sigma)."""
    fresh = ["fresh-%d" % i for i in range(FRESH)]
    dropped = FRESH - len(unseen(it, fresh, name))
    most = FRESH * fpr
    assert dropped <= most + 4 * most ** 0.5 + 4, "%s: %d of %d new items dropped" % (name, dropped, FRESH)


# ---- kinds and growth

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("growth", [1, 2])
def test_3000_items_of_each_kind(serve, kind, growth):
    """One small layer after the other: nothing is lost, in restarts neither, and new items are dropped within the promise."""
    settings = scene("s", filter=kind, growth=growth, capacity=100, fpr=0.01)
    it, items = serve(settings), numbered(0, 3000)
    see(it, items[:1500], "s", kind == "counting")
    assert unseen(it, items, "s") == items[1500:] or len(unseen(it, items[1500:], "s")) >= 1480
    it = again(it, crash=True)
    see(it, items[1500:], "s", kind == "counting")
    for crash in (False, True):
        assert unseen(it, items, "s") == []
        expect_promise(it, "s", 0.01)
        told, reader = stored(it, "s")
        assert told["kind"] == kind and told["layers"] == len(reader.layers) >= 1
        assert told["fpr"] <= 0.01 / 3 * 1.4, "small layers: as they happen to be filled"
        assert 2950 <= told["items"] <= 3000
        it = again(it, crash)
    assert it.unseen("u2", items[:1000], scene="s") == items[:1000]


def test_options_reach_the_layers(serve):
    """capacity, growth, fingerprint_bits, tightening and fpr, as the stored sets show them."""
    settings = {}
    settings.update(scene("small", capacity=64, growth=1))
    settings.update(scene("doubling", capacity=64, growth=2))
    settings.update(scene("slack", capacity=64, growth=2, tightening=90))
    settings.update(scene("cuckoo", filter="cuckoo", fingerprint_bits=21, capacity=64))
    settings.update(scene("compact", filter="compact", fingerprint_bits=29))
    it, items = serve(settings), numbered(0, 800)
    for name in ("small", "doubling", "slack", "cuckoo", "compact"):
        see(it, items, name)
        assert unseen(it, items, name) == []
    small, doubling, slack = (stored(it, name)[1].layers for name in ("small", "doubling", "slack"))
    assert {layer.capacity for layer in small} == {64} and len(small) >= 10
    assert len(doubling) < len(small) and doubling[-1].capacity >= 128
    assert slack[0].k > doubling[0].k, "a layer that leaves more to later ones has more probes"
    assert {layer.k for layer in stored(it, "cuckoo")[1].layers} == {21}
    assert {layer.k for layer in stored(it, "compact")[1].layers} == {29}


def test_forever_keeps_everything(serve):
    it = serve(scene("f", period="forever", capacity=100, fpr=0.005))
    items = numbered(0, 3000)
    for year in range(3):
        see(it, items[year * 1000:year * 1000 + 1000], "f", batch=10, every=10)
        it = again(it, crash=year == 1, settings=months_on(12 * (year + 1)))
    assert unseen(it, items, "f") == []
    expect_promise(it, "f", 0.005)
    told, reader = stored(it, "f")
    assert told["items"] >= 2950 and len(reader.layers) >= 3 and told["fpr"] <= 0.005 * 1.4
    error = it.http.post("/filter", {"user": "u1", "candidates": ["a"], "scene": "f", "window": 2}).error
    assert error["field"] == "window"


# ---- a policy that changes

STEPS = [  # options of the scene, one after the other; each governs layers made from then on
    {"filter": "bloom", "capacity": 64},
    {"capacity": 500, "growth": 1},
    {"filter": "cuckoo", "capacity": 100},
    {"filter": "compact", "capacity": 64, "growth": 2},
    {"filter": "counting", "capacity": 64, "growth": 1},
    {"filter": "bloom", "capacity": 200, "fpr": 0.005},
]


def test_a_policy_changes_on_a_live_scene(serve):
    """In the middle of a period and with exposures staged: new layers follow, old ones keep working, nothing is lost."""
    options, it, items, kinds = {"fpr": 0.01}, None, [], []
    for n, step in enumerate(STEPS):
        options.update(step)
        it = again(it, n % 2 == 0, scene("s", **options)) if it else serve(scene("s", **options))
        assert unseen(it, items, "s") == []
        new = numbered(len(items), 600)
        see(it, new, "s", options["filter"] == "counting", batch=5, every=5)  # many commits: some are folded
        items += new
        assert unseen(it, items, "s") == []
        told, reader = stored(it, "s")
        assert told["kind"] == options["filter"] and not told["damaged"]
        kinds = kinds if kinds and kinds[-1] == told["kind"] else kinds + [told["kind"]]
        order = [layer.kind for layer in reader.layers]
        made = [k for i, k in enumerate(order) if i == 0 or order[i - 1] != k]
        assert made == [KINDS.index(k) + 1 for k in kinds], "layers of each kind, in order"
        if it.redis and options["filter"] != "counting":  # staged under one policy, flushed under the next
            left = numbered(100000 + 30 * n, 30)
            assert it.exposed("u1", left, scene="s")["durability"] == "staged"
            items += left
    it = again(it)
    flush(it)
    assert unseen(it, items, "s") == []
    expect_promise(it, "s", 0.01)


def test_a_kind_changes_at_a_period(serve):
    """The window holds sets of several kinds."""
    it, items = serve(scene("s", filter="bloom", window=3, capacity=100, fpr=0.01)), numbered(0, 1200)
    for n, kind in enumerate(("bloom", "cuckoo", "compact")):
        if n:
            it = again(it, n == 2, dict(scene("s", filter=kind), **months_on(n)))
        see(it, items[n * 400:n * 400 + 400], "s")
        assert unseen(it, items[:n * 400 + 400], "s") == []
    told = it.admin.get("/users/u1?scene=s").json["scenes"][0]["periods"]
    assert [p["stored"]["kind"] for p in told] == ["compact", "cuckoo", "bloom"]
    expect_promise(it, "s", 0.01)
    it = again(it, settings=months_on(3))
    # At most 1 in 100 is a false positive of the sets that are left: 4 are expected of 400, and 20 never seen.
    assert len(unseen(it, items[:400], "s")) >= 380, "the first month has left the window"
    assert unseen(it, items[400:], "s") == []


def test_the_period_of_a_live_scene_does_not_change(bench):
    it = bench.dedupd(settings=scene("s", period="month"))
    it.exposed("u1", ["a"], scene="s")
    it.stop()
    it.settings.update(scene("s", period="week"))
    it.launch()
    assert it.wait(30) != 0
    assert "period" in it.log_tail()
    it.settings.update(scene("s", period="month"))
    it.start()
    assert it.unseen("u1", ["a"], scene="s") == []


# ---- what is forgotten, and nothing else

@pytest.mark.parametrize("blocks, block", [(5, 1000), (2, 1000)], ids=["chain", "double-array"])
def test_rotate_keeps_the_newest_blocks(serve, blocks, block):
    """At least (N - 1) x capacity of the newest items are there, but for the few that an older block took for its own, and at
    most N x capacity and what one flush blurs."""
    it = serve(scene("s", growth=1, capacity=block, max_layers=blocks, on_full="rotate"))
    items, most = numbered(0, 7400), 0
    for at in range(0, len(items), 740):
        see(it, items[at:at + 740], "s")
        seen = at + 740
        kept = items[max(0, seen - (blocks - 1) * block + (FLUSH if it.redis else BATCH)):seen]
        assert len(unseen(it, kept, "s")) <= 8  # about one is expected
        most = max(most, stored(it, "s")[0]["bytes"])
    old = items[:len(items) - blocks * block - FLUSH]
    offered = unseen(it, old, "s")
    assert len(offered) >= 0.995 * len(old), "the oldest block left whole"
    expect_promise(it, "s", 0.001)
    told, reader = stored(it, "s")
    assert len(reader.layers) + bool(reader.list) <= blocks
    assert most <= blocks * block * 2.6 + 200, "bounded: %d bytes" % most
    again(it, crash=True)
    assert len(unseen(it, items[-(blocks - 1) * block + FLUSH:], "s")) <= 8
    assert unseen(it, old, "s") == offered


@pytest.mark.parametrize("kind", KINDS)
def test_saturate_fills_the_last_layer(serve, kind):
    """No further layer. Bloom, counting and compact forget nothing and drop more and more that was never seen, and inspect says
    how many; cuckoo no longer remembers what finds no place, and stays within its promise."""
    it = serve(scene("s", filter=kind, capacity=300, growth=1, max_layers=2, on_full="saturate", fpr=0.01))
    items = numbered(0, 1800)
    see(it, items[:500], "s", kind == "counting")
    assert unseen(it, items[:500], "s") == []
    expect_promise(it, "s", 0.01)
    see(it, items[500:], "s", kind == "counting")
    told, reader = stored(it, "s")
    assert len(reader.layers) == 2 and not reader.list
    if kind == "cuckoo":
        assert unseen(it, items[:500], "s") == []
        assert 0 < len(unseen(it, items, "s")) < 1300
        expect_promise(it, "s", 0.01)
        return
    assert unseen(it, items, "s") == []
    dropped = FRESH - len(unseen(it, ["fresh-%d" % i for i in range(FRESH)], "s"))
    expected = told["fpr"] * FRESH
    assert abs(dropped - expected) <= 0.2 * expected + 4 * expected ** 0.5 + 4, (dropped, expected)
    if kind != "compact":
        assert told["fpr"] > 0.01, "three times as many as there was room for"


# ---- scenes that count

def test_counting_on_a_live_system(serve):
    it = serve(scene("likes", filter="counting"))
    ask = ["a", "b", "c"]
    for n in range(1, 17):
        assert it.exposed("u1", ["a"], scene="likes")["durability"] == "wal", "never staged"
        assert it.unseen("u1", ask, scene="likes") == ["b", "c"]
        assert it.unseen("u1", ask, scene="likes", max_seen=min(n, 14))[0] == ("a" if n <= 14 else "b")
        if n > 1:
            assert it.unseen("u1", ask, scene="likes", max_seen=min(n - 1, 14)) == ["b", "c"]
        if n in (3, 9):
            it = again(it, crash=n == 9)
    answer = it.call("/exposed", {"events": [{"user": "u1", "items": ["b", "b"], "scene": "likes"},
                                             {"user": "u1", "items": ["b", "c"], "scene": "likes"}]})
    assert answer == {"accepted": 4, "durability": "wal"}, "an item counts as often as it stands there"
    assert it.unseen("u1", ask, scene="likes", max_seen=3) == ["b", "c"]
    assert it.unseen("u1", ask, scene="likes", max_seen=2) == ["c"]
    if it.redis:
        assert it.redis.command("KEYS", "dd:{likes/*}:p:*") == []
    told = it.filter("u1", ask, scene="likes", max_seen=2, explain=True)
    assert [e["item"] for e in told["explain"]] == ["a", "b"]
    it.call("/forget", {"user": "u1", "items": ["b"], "scene": "likes"})
    assert it.unseen("u1", ask, scene="likes") == ["b"]


def test_counts_of_many_items(serve):
    """Through layers of counters, over two months and restarts: never too low, rarely too high."""
    it, items = serve(scene("likes", filter="counting", capacity=256)), numbered(0, 2000)
    for n in range(1, 5):
        if n == 3:
            it = again(it, settings=months_on(1))
        for at in range(0, len(items), 500):  # item i is seen i % 4 + 1 times
            it.exposed("u1", [i for k, i in enumerate(items[at:at + 500]) if k % 4 + 1 >= n], scene="likes")
    it = again(it, crash=True)
    for most in range(1, 5):
        left = set(unseen(it, items, "likes", max_seen=most))
        due = {i for k, i in enumerate(items) if k % 4 + 1 <= most}
        assert left <= due, "seen more than %d times and offered" % most
        assert len(due - left) <= 20, "of %d" % len(due)


def test_max_seen_is_refused_where_nothing_counts(serve):
    it = serve(scene("likes", filter="counting"))
    for name in ("default", "likes"):
        for k in (1, 14):
            answer = it.http.post("/filter", {"user": "u1", "candidates": ["a"], "scene": name, "max_seen": k})
            assert answer.status == (400 if name == "default" else 200)
            assert answer.error.get("field") == ("max_seen" if name == "default" else None)
    for k in (0, 15, -1, "2", 1.5, True, None):
        answer = it.http.post("/filter", {"user": "u1", "candidates": ["a"], "scene": "likes", "max_seen": k})
        assert answer.status == 400 and answer.error["field"] == "max_seen", k
