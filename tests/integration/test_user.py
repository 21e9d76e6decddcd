"""One user, for operators: what is known of him, his filter set to take away, items taken back."""
import base64
import json
import os
import random
import sys
import threading
import urllib.parse

import pytest

from dd.client import Client
from dd.ctl import ctl, ctl_json
from dd.dedupd import ROOT

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "proto"))
import filter_reader  # noqa: E402

KINDS = ("bloom", "counting", "cuckoo", "compact")
STAGED = tuple(k for k in KINDS if k != "counting")  # counting needs direct ingest


def path(user, tail="", **params):
    query = "?" + urllib.parse.urlencode(params) if params else ""
    return "/users/" + urllib.parse.quote(user, safe="") + tail + query


def inspect(it, user, status=200, **params):
    answer = it.admin.get(path(user, **params))
    assert answer.status == status, answer
    return answer.json


def flush(it):
    answer = it.admin.post("/admin/flush", {"all": True})
    assert answer.status == 200, answer
    return answer.json


@pytest.fixture(params=["embedded", "redis"])
def server(request, bench):
    redis = bench.redis() if request.param == "redis" else None
    kinds = STAGED if redis else KINDS
    it = bench.dedupd(redis=redis, settings=dict({"scenes.%s.filter" % k: k for k in kinds}, **{"wheel.tick_s": "1"}))
    it.redis, it.kinds = redis, kinds
    if redis:
        it.wait_staging()
    return it


def only_period(user):
    assert len(user["scenes"]) == 1, user
    assert len(user["scenes"][0]["periods"]) == 1, user
    return user["scenes"][0]["periods"][0]


def test_inspect(server):
    assert inspect(server, "u1", 404)["error"]["code"] == "not_found"
    server.exposed("u1", ["a", "b", 3])
    server.filter("u1", ["c", "d"], limit=1, claim=True)
    user = inspect(server, "u1")
    assert user["user"] == "u1" and user["history"] == "full"
    assert user["trace"] is None and user["migration"] is None
    [delivery] = user["scenes"][0]["deliveries"]
    assert delivery["item"] == "c" and 0 <= delivery["age_ms"] < 60000
    staged = server.redis is not None
    assert only_period(user)["pending"] == (3 if staged else 0)
    assert (only_period(user)["stored"] is None) == staged
    if staged:
        flush(server)
    period = only_period(inspect(server, "u1"))
    assert period["pending"] == 0 and period["in_window"] is True
    stored = period["stored"]
    assert stored["kind"] == "bloom" and stored["sparse"] and stored["items"] == 3 and stored["layers"] == 0
    assert stored["bytes"] == 44 and 0 < stored["fpr"] < 1e-6 and not stored["damaged"]
    assert period["cache"] == ("stale" if staged else "none")
    server.unseen("u1", ["x"])
    assert only_period(inspect(server, "u1"))["cache"] == ("valid" if staged else "none")


def test_inspect_shows_scenes_and_dense_sets(server):
    server.exposed("u1", ["i%d" % i for i in range(3000)], scene="cuckoo")
    server.exposed("u1", ["a"], scene="compact")
    if server.redis:
        flush(server)
    user = inspect(server, "u1")
    scenes = {s["scene"]: s["periods"][0]["stored"] for s in user["scenes"]}
    assert set(scenes) == {"cuckoo", "compact"}
    dense = scenes["cuckoo"]
    assert not dense["sparse"] and dense["layers"] >= 1 and 0 < dense["fill"] <= 1
    assert 2900 < dense["items"] <= 3000 and dense["capacity"] >= 1024 and 0 < dense["fpr"] <= 0.001
    assert [s["scene"] for s in inspect(server, "u1", scene="compact")["scenes"]] == ["compact"]
    inspect(server, "u1", 404, scene="bloom")
    assert inspect(server, "u1", 400, scene="nowhere")["error"]["field"] == "scene"


ODD = ["a b", "a/b", "../x", "ü", "100%", "a?b=c&d", "{x}", "%2F", "+", "a;b", "日本" * 21, "x" * 128]


def test_users_of_any_bytes(bench):
    it = bench.dedupd(redis=bench.redis())
    for user in ODD:
        it.exposed(user, ["a"])
        assert inspect(it, user)["user"] == user
        assert json.loads(ctl(it, "user", "--json", "--", user))["user"] == user
        assert sum(it.admin.request("DELETE", path(user)).json["removed"].values()) >= 1, user
        inspect(it, user, 404)


def test_what_is_wrong_is_named(server):
    for bad, status, field in [("/users/%", 400, "user"), ("/users/%4", 400, "user"), ("/users/" + "x" * 129, 400, "user"),
                               ("/users/", 404, None), ("/users", 404, None), ("/users/u1/", 404, None),
                               ("/users/u1/none", 404, None), ("/users/u1?colour=red", 400, None),
                               ("/users/u1?scene=", 400, "scene"), ("/users/u1?scene=a&scene=b", 400, "scene"),
                               ("/users/u1/filter?period=2026-13", 400, "period"),
                               ("/users/u1/filter?period=2026-11-30", 400, "period")]:
        answer = server.admin.get(bad)
        assert answer.status == status, (bad, answer)
        assert answer.error.get("field") == field, (bad, answer)
    answer = server.admin.request("PUT", "/users/u1")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, DELETE"
    assert server.http.get("/users/u1").status == 404, "the data listener does not show users"


def test_without_redis_nothing_is_claimed_to_be_unknown(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis)
    it.exposed("u1", ["a"])
    flush(it)
    redis.kill9()
    inspect(it, "nobody", 503)
    user = inspect(it, "u1")
    assert user["history"] == "partial" and only_period(user)["stored"]["items"] == 1


def test_dedupctl_user(server):
    server.exposed("u1", ["a", "b"])
    text = ctl(server, "user", "u1")
    assert text.startswith("user u1\n") and "scene default" in text
    assert ctl_json(server, "user", "u1", "--scene", "default")["user"] == "u1"
    ctl(server, "user", "nobody", status=1)
    ctl(server, "user", status=2)
    ctl(server, "user", "u1", "--colour", "red", status=2)
    assert "usage:" in ctl(server, "user", "--help")
    server.kill9()
    ctl(server, "user", "u1", status=3)


# ---- export

def items_of(rng, n):
    """Ids of every length, integers, and text of several bytes a character."""
    made = [i * 7919 - 5000 for i in range(n // 4)] + ["é%d" % i for i in range(n // 4)]
    made += ["x" * (1 + i % 256) + str(i) for i in range(n // 4)]
    made = [m if not isinstance(m, str) else m[:200] for m in made]
    made += ["%x" % rng.getrandbits(64) for _ in range(n - len(made))]
    return list(dict.fromkeys(made))


@pytest.mark.parametrize("n", [1, 40, 3000])
def test_the_reference_reader_agrees(server, n):
    for kind in server.kinds:
        check_reader(server, kind, n)


def check_reader(server, kind, n):
    rng = random.Random(n)
    seen = items_of(rng, n)
    for at in range(0, len(seen), 1000):
        server.exposed("u1", seen[at:at + 1000], scene=kind)
    export = server.admin.get(path("u1", "/filter", scene=kind)).json
    assert export["history"] == "full" and export["scene"] == kind
    assert export["pending"] == (len(seen) if server.redis else 0)
    reader = filter_reader.FilterSet.from_export(export)
    # Decoding a compact layer anew for each item is slow: a sample is enough there.
    sample = seen if kind != "compact" else rng.sample(seen, min(len(seen), 200))
    assert all(reader.seen(item) for item in sample), kind
    fresh = ["fresh-%d" % i for i in range(2000 if kind != "compact" else 200)]
    unseen = set(server.unseen("u1", fresh, scene=kind))
    mine = {f for f in fresh if not reader.seen(f)}
    if server.redis:
        # While staged, /filter compares whole fingerprints; in the exported set they are folded in.
        assert mine <= unseen and len(unseen - mine) <= 0.001 * len(fresh) * 3 + 3, kind
        flush(server)
        reader = filter_reader.FilterSet.from_export(server.admin.get(path("u1", "/filter", scene=kind)).json)
        unseen = set(server.unseen("u1", fresh, scene=kind))
        mine = {f for f in fresh if not reader.seen(f)}
    assert mine == unseen, kind


def test_export_forms(server):
    server.exposed("u1", ["a", "a", 42])
    export = server.admin.get(path("u1", "/filter")).json
    raw = server.admin.request("GET", path("u1", "/filter"), headers={"Accept": "application/octet-stream"})
    assert raw.headers["Content-Type"] == "application/octet-stream"
    assert raw.body == base64.b64decode(export["blob"])
    assert raw.headers["Dedupd-Seed"] == export["seed"] and raw.headers["Dedupd-Period"] == export["period"]
    assert len(raw.body) == export["bytes"]
    assert server.admin.get(path("u1", "/filter", period="2020-01")).status == 404
    assert server.admin.get(path("nobody", "/filter")).status == 404
    assert json.loads(ctl(server, "export", "u1"))["seed"] == export["seed"]
    other = server.admin.get(path("u2", "/filter"))
    assert other.status == 404
    with pytest.raises(filter_reader.Corrupt):
        filter_reader.FilterSet(raw.body[:-1] + bytes([raw.body[-1] ^ 1]), 0)


def test_counting_sets_say_how_often(bench):
    it = bench.dedupd(settings={"scenes.counting.filter": "counting"})
    for _ in range(3):
        it.exposed("u1", ["a"], scene="counting")
    reader = filter_reader.FilterSet.from_export(it.admin.get(path("u1", "/filter", scene="counting")).json)
    assert reader.times("a") == 3 and reader.times("b") == 0


# ---- forget

def forget(it, user, items, status=200, **fields):
    return it.call("/forget", dict(fields, user=user, items=items), status)


@pytest.mark.parametrize("n", [10, 3000])
def test_forget(server, n):
    for kind in server.kinds:
        items = ["i%d" % i for i in range(n)]
        server.exposed("u1", items, scene=kind)
        if server.redis:
            flush(server)
        if kind == "bloom" and n > 1000:
            error = forget(server, "u1", ["i3"], 409, scene=kind)["error"]
            assert error["code"] == "unsupported"
            assert all(k in error["message"] for k in ("counting", "cuckoo", "compact"))
            assert server.unseen("u1", ["i3"], scene=kind) == []
            continue
        assert forget(server, "u1", ["i3", "never"], scene=kind) == {"forgotten": 1, "unknown": 1}, kind
        assert server.unseen("u1", ["i3", "i4"], scene=kind) == ["i3"], kind
        server.exposed("u1", ["i3"], scene=kind)
        assert server.unseen("u1", ["i3", "i4"], scene=kind) == [], kind


def test_forget_takes_deliveries_back_and_what_is_staged(server):
    assert server.filter("u1", ["a", "b"], claim="exposed")["items"] == ["a", "b"]
    assert forget(server, "u1", ["a"]) == {"forgotten": 1, "unknown": 0}
    assert server.unseen("u1", ["a", "b"]) == ["a"]
    if server.redis:
        flush(server)
    assert server.unseen("u1", ["a", "b"]) == ["a"]


def test_forget_costs_others_nothing(server):
    """An item with an equal fingerprint, or that a layer cannot tell from a forgotten one, would go too: at most fpr."""
    n = 4000
    items = ["i%d" % i for i in range(n)]
    for kind in server.kinds[1:]:
        for at in range(0, n, 1000):
            server.exposed("u1", items[at:at + 1000], scene=kind)
        gone, kept = items[::2], items[1::2]
        for at in range(0, len(gone), 1000):
            forget(server, "u1", gone[at:at + 1000], scene=kind)
        lost = len(server.unseen("u1", kept, scene=kind))
        most = 0.001 * len(kept)
        assert lost <= most + 4 * most ** 0.5 + 4, (kind, lost)  # with room for chance: 4 sigma
        back = len(server.unseen("u1", gone, scene=kind))
        assert back >= len(gone) * 0.99, (kind, back)


def test_forget_refuses_what_delivered_refuses(server):
    assert server.http.post("/forget", {"user": "u1"}).error["field"] == "items"
    assert server.http.post("/forget", {"user": "u1", "items": ["a"], "ts": 1}).error["code"] == "unknown_field"
    assert server.http.get("/forget").headers["Allow"] == "POST"


def test_forget_during_flushes(bench):
    """Half of the items of each user are forgotten while everything is being flushed; the other half stays."""
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings={"wheel.batch_users": "7", "wheel.tick_s": "1"})
    it.wait_staging()
    admin = Client("%s:%d" % (it.admin.host, it.admin.port))
    rng = random.Random(3)
    for round_ in range(8):
        users = ["u%d-%d" % (round_, i) for i in range(30)]
        for user in users:
            it.exposed(user, ["gone-%d" % i for i in range(5)] + ["kept-%d" % i for i in range(5)])
        flusher = threading.Thread(target=lambda: admin.post("/admin/flush", {"all": True}))
        flusher.start()
        rng.shuffle(users)
        for user in users:
            forget(it, user, ["gone-%d" % i for i in range(5)])
        flusher.join()
        for _ in range(2):
            for user in users:
                unseen = it.unseen(user, ["gone-%d" % i for i in range(5)] + ["kept-%d" % i for i in range(5)])
                assert unseen == ["gone-%d" % i for i in range(5)], user
            answer = it.admin.post("/admin/flush", {"all": True})
            assert answer.status in (200, 503), answer


def test_a_scene_that_left_the_configuration(bench):
    """What the store holds of it is seen, named at the start, and erased; requests cannot name it."""
    it = bench.dedupd(settings={"scenes.home.window": "2", "scenes.idle.window": "2"})
    it.exposed("u1", ["a", "b"], scene="home")
    assert [(s["scene"], s["configured"]) for s in inspect(it, "u1")["scenes"]] == [("home", True)]
    it.stop()
    del it.settings["scenes.home.window"], it.settings["scenes.idle.window"]
    it.start()
    assert it.log().count("scene.not_configured") == 1 and "scenes=home hint" in it.log(), it.log_tail()
    for params in {}, {"scene": "home"}:
        user = inspect(it, "u1", **params)
        assert [(s["scene"], s["configured"]) for s in user["scenes"]] == [("home", False)], user
        assert only_period(user)["stored"]["items"] == 2 and only_period(user)["in_window"]
    assert "home (not in the configuration)" in ctl(it, "user", "u1")
    inspect(it, "u1", 404, scene="idle")
    inspect(it, "u2", 404)
    assert inspect(it, "u1", 400, scene="nowhere")["error"]["field"] == "scene"
    it.filter("u1", ["a"], status=400, scene="home")
    assert it.admin.request("DELETE", path("u1")).json["removed"]["sets"] == 1
    inspect(it, "u1", 404)
