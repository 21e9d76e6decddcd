"""Claims: of concurrent requests exactly one gets an item."""
import threading

import pytest

from dd.dedupd import UNHURRIED

CALLS = 50
LIMIT = 10
ITEMS = ["c-%d" % i for i in range(CALLS * LIMIT)]


def at_once(jobs):
    """Runs the jobs in threads that start together; returns their results."""
    gate = threading.Barrier(len(jobs))
    results = [None] * len(jobs)

    def run(i):
        gate.wait()
        try:
            results[i] = jobs[i]()
        except BaseException as e:  # pylint: disable=broad-except
            results[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


@pytest.fixture(params=["embedded", "redis", "two processes"])
def nodes(request, bench):
    if request.param == "embedded":
        return [bench.dedupd(settings=UNHURRIED)]
    redis = bench.redis()
    return [bench.dedupd("dedupd%d" % i, redis=redis, settings=UNHURRIED)
            for i in range(2 if request.param == "two processes" else 1)]


def test_concurrent_filters_never_share_an_item(nodes):
    """More items than the newest 100 deliveries that are kept: nothing young may be trimmed."""
    jobs = [lambda node=nodes[i % len(nodes)]: node.filter("u1", ITEMS, limit=LIMIT, claim=True)
            for i in range(CALLS)]
    answers = at_once(jobs)
    got = [item for a in answers for item in a["items"]]
    assert all(a["history"] == "full" for a in answers)
    assert len(got) == len(set(got)), "an item was handed out twice"
    assert sorted(got) == sorted(ITEMS), "%d of %d were handed out" % (len(got), len(ITEMS))
    for node in nodes:
        assert node.unseen("u1", ITEMS) == []


def test_concurrent_delivered_never_share_an_item(nodes):
    """Every call asks for the same ten; in all each is accepted once."""
    jobs = [lambda i=i: nodes[i % len(nodes)].delivered("u1", ITEMS[i // 5 * LIMIT:(i // 5 + 1) * LIMIT])
            for i in range(CALLS)]
    answers = at_once(jobs)
    accepted = [item for a in answers for item in a["accepted"]]
    assert len(accepted) == len(set(accepted)), "an item was accepted twice"
    assert sorted(accepted) == sorted(ITEMS[:CALLS // 5 * LIMIT])
    assert all(len(a["accepted"]) + len(a["duplicate"]) == LIMIT for a in answers)


def test_claims_and_delivered_mixed(nodes):
    some = ITEMS[:200]
    jobs = []
    for i in range(20):
        node = nodes[i % len(nodes)]
        jobs.append(lambda node=node: node.filter("u1", some, limit=LIMIT, claim=True)["items"])
        jobs.append(lambda node=node, i=i: node.delivered("u1", some[i * 10:i * 10 + 10])["accepted"])
    got = [item for part in at_once(jobs) for item in part]
    assert len(got) == len(set(got))


def test_claims_of_many_users_do_not_meet(nodes):
    jobs = [lambda i=i: nodes[i % len(nodes)].filter("user-%d" % i, ITEMS, limit=LIMIT, claim=True)["items"]
            for i in range(CALLS)]
    assert all(got == ITEMS[:LIMIT] for got in at_once(jobs))


def test_a_limit_above_what_is_remembered_is_refused(nodes):
    answer = nodes[0].http.post("/filter", {"user": "u1", "candidates": ITEMS, "limit": 101, "claim": True})
    assert answer.status == 400 and answer.error["field"] == "limit"


def test_too_many_live_deliveries_are_refused_not_forgotten(bench):
    it = bench.dedupd(redis=bench.redis())
    for i in range(10):
        it.delivered("u1", ["d-%d" % n for n in range(i * 100, i * 100 + 100)])
    answer = it.http.post("/delivered", {"user": "u1", "items": ["one-more"]})
    assert answer.status == 429 and "the cap of deliveries" in answer.error["message"], answer
    answer = it.http.post("/filter", {"user": "u1", "candidates": ["one-more"], "claim": True})
    assert answer.status == 429 and answer.headers["Retry-After"] == "60", answer
    assert "60 s" in answer.error["message"] and "1000" in answer.error["message"], answer
    assert it.unseen("u1", ["d-0", "d-999", "one-more"]) == ["one-more"]
