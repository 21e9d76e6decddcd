"""Trace: one user in plain text, as long as asked for, within bounds, and nobody else."""
import urllib.parse

import pytest

from dd import clock
from dd.ctl import ctl, ctl_json
from dd.wait import wait_until

DAY_S = 86400


def path(user, **params):
    query = "?" + urllib.parse.urlencode(params) if params else ""
    return "/users/" + urllib.parse.quote(user, safe="") + "/trace" + query


def ask(it, method, user, body=None, status=200, **params):
    answer = it.admin.request(method, path(user, **params), body)
    assert answer.status == status, answer
    return answer.json


def start(it, user, days=7, **params):
    return ask(it, "PUT", user, {"days": days}, **params)


def show(it, user, **params):
    return ask(it, "GET", user, **params)


def entries(it, user, n, **params):
    """The newest entries, once there are n of them."""
    def there():
        found = show(it, user, limit=1000, **params)
        assert len(found["items"]) == n, [e["item"] for e in found["items"]]
        return found["items"]
    return wait_until(there, 10, "%d entries of %s" % (n, user))


@pytest.fixture
def it(server):
    if server.redis:
        server.wait_staging()
    return server


def test_exposures_and_deliveries_of_one_user(it):
    it.exposed("u1", ["before"])
    state = start(it, "u1")
    assert state["active"] and state["days"] == 7 and state["entries"] == 0 and state["scene"] is None
    assert state["until_ms"] - state["started_ms"] == 7 * DAY_S * 1000
    it.exposed("u1", ["a", 42])
    assert it.filter("u1", ["a", "b", "c"], limit=1, claim=True)["items"] == ["b"]
    it.delivered("u1", ["b", "d"])
    assert it.filter("u1", ["e"], claim="exposed")["items"] == ["e"]
    it.filter("u1", ["never"])
    found = entries(it, "u1", 6)
    assert {(e["what"], e["source"], e["item"]) for e in found} == {
        ("exposed", "request", "a"), ("exposed", "request", "42"), ("delivered", "claim", "b"),
        ("delivered", "request", "d"), ("delivered", "claim", "e"), ("exposed", "claim", "e")}
    times = [e["at_ms"] for e in found]
    assert times == sorted(times, reverse=True) and all(e["scene"] == "default" for e in found)
    text = ctl(it, "trace", "show", "u1")
    assert text.startswith("user u1, recorded until") and " 42\n" in text
    assert ctl_json(it, "user", "u1")["trace"]["entries"] == 6


def test_nobody_else_is_recorded(it):
    for n in range(50):
        start(it, "t%d" % n)
    for n in range(200):
        it.exposed("t%d" % n, ["i"])
        it.delivered("other-%d" % n, ["i"])
    for n in range(50):
        assert [e["item"] for e in entries(it, "t%d" % n, 1)] == ["i"]
    ask(it, "GET", "t50", status=404)
    ask(it, "DELETE", "t50", status=404)
    assert it.metrics()["dedupd_trace_recorded_total"] == 50
    assert it.metrics()["dedupd_trace_dropped_total"] == 0


def test_one_scene(bench):
    it = bench.dedupd(settings={"scenes.push.window": "3"})
    start(it, "u1", scene="push")
    it.exposed("u1", ["home"])
    it.exposed("u1", ["pushed"], scene="push")
    assert [e["item"] for e in entries(it, "u1", 1)] == ["pushed"]
    assert ask(it, "PUT", "u1", {}, 400, scene="nowhere")["error"]["field"] == "scene"


def test_pages(it):
    start(it, "u1")
    for n in range(5):
        it.exposed("u1", ["i%d.%d" % (n, k) for k in range(5)])
    whole = [e["item"] for e in entries(it, "u1", 25)]
    seen, before = [], {}
    while before is not None:
        page = show(it, "u1", limit=7, **before)
        assert len(page["items"]) <= 7
        seen += [e["item"] for e in page["items"]]
        before = {"before": page["next"]} if page["next"] else None
    assert seen == whole and len(set(seen)) == 25


def test_it_survives_a_clean_stop_and_a_kill(it):
    start(it, "u1", days=3)
    it.exposed("u1", ["a"])
    it.restart()  # what is queued is written first
    assert [e["item"] for e in show(it, "u1")["items"]] == ["a"] and show(it, "u1")["entries"] == 1
    it.exposed("u1", ["b"])
    entries(it, "u1", 2)
    it.kill9()
    it.start()
    state = show(it, "u1")
    assert state["days"] == 3 and state["active"] and [e["item"] for e in state["items"]] == ["b", "a"]
    it.exposed("u1", ["c"])
    entries(it, "u1", 3)


def test_stop_removes_everything(it):
    start(it, "u1")
    it.exposed("u1", ["a", "b"])
    entries(it, "u1", 2)
    assert ctl_json(it, "trace", "off", "u1")["removed"] == 2
    ask(it, "GET", "u1", status=404)
    it.exposed("u1", ["c"])
    start(it, "u1")
    it.exposed("u1", ["d"])
    assert [e["item"] for e in entries(it, "u1", 1)] == ["d"], "nothing of the first trace, nothing from between"
    ctl(it, "trace", "off", "nobody", status=1)


def test_the_oldest_go_when_there_are_too_many(bench):
    it = bench.dedupd()
    start(it, "u1")
    for n in range(6):
        it.exposed("u1", ["%d.%d" % (n, k) for k in range(2000)])
    wait_until(lambda: it.metrics()["dedupd_trace_recorded_total"] == 12000, 20, "all are written")
    state = show(it, "u1", limit=1000)
    assert state["entries"] == state["max_entries"] == 10000
    assert state["items"][0]["item"] == "5.1999"
    count, oldest = 0, None
    while True:
        count += len(state["items"])
        oldest = state["items"][-1]["item"]
        if not state["next"]:
            break
        state = show(it, "u1", limit=1000, before=state["next"])
    assert count == 10000 and oldest == "1.0"


def test_it_ends_by_itself_and_then_goes(bench):
    it = bench.dedupd()
    start(it, "u1", days=2)
    it.exposed("u1", ["a"])
    entries(it, "u1", 1)
    later = clock.later(DAY_S + 3600)
    it.restart(settings=later)
    it.exposed("u1", ["b"])
    entries(it, "u1", 2)
    it.restart(settings=clock.later(2 * DAY_S + 3600))
    it.exposed("u1", ["c"])
    assert [e["item"] for e in entries(it, "u1", 1)] == ["b"], "a is past its days, c came after the end"
    assert not show(it, "u1")["active"]
    it.restart(settings=clock.later(4 * DAY_S + 3600))
    wait_until(lambda: it.admin.get(path("u1")).status == 404, 10, "the trace is gone")
    assert start(it, "u1")["entries"] == 0


def test_bad_requests(it):
    for body, field in [({"days": 0}, "days"), ({"days": 91}, "days"), ({"days": "7"}, "days"), ({"day": 7}, "day")]:
        assert ask(it, "PUT", "u1", body, 400)["error"]["field"] == field
    assert ask(it, "PUT", "u1", b"[", 400)["error"]["code"] == "invalid_json"
    start(it, "u1")
    for params, field in [({"limit": "0"}, "limit"), ({"limit": "1001"}, "limit"), ({"limit": "x"}, "limit"),
                          ({"before": "zz"}, "before"), ({"before": "0" * 23}, "before")]:
        assert ask(it, "GET", "u1", None, 400, **params)["error"]["field"] == field
    ask(it, "GET", "u1", None, 400, colour="red")
    assert it.http.get(path("u1")).status == 404, "not on the data listener"
    answer = it.admin.request("POST", path("u1"), {})
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, PUT, DELETE"


def test_erase_takes_the_trace(it):
    start(it, "u1")
    start(it, "u2")
    it.exposed("u1", ["a", "b"])
    it.exposed("u2", ["a"])
    entries(it, "u1", 2)
    entries(it, "u2", 1)
    report = it.admin.request("DELETE", "/users/u1").json
    assert report["removed"]["records"] == 2, report
    ask(it, "GET", "u1", status=404)
    assert it.admin.get("/users/u1").status == 404
    it.exposed("u1", ["c"])
    entries(it, "u2", 1)
    ask(it, "GET", "u1", status=404)
