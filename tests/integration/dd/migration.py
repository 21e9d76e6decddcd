"""What tests of moving from an exact store share: the old keys, the walk over them, and where they are."""
import pytest

from .wait import wait_until

DUAL = {"migrate.mode": "dual", "migrate.lazy": "false"}
DAY = 86400


def key(user):
    return "played_videos:" + user


def report(d):
    answer = d.admin.get("/admin/migration")
    assert answer.status == 200, answer
    return answer.json


def bulk(d, seconds=30, **order):
    """A walk over all keys, to its end."""
    answer = d.admin.post("/admin/migration", dict(order, bulk="start"))
    assert answer.status == 202, answer
    wait_until(lambda: report(d)["bulk"]["state"] == "done", seconds, "the walk is done")
    return report(d)["bulk"]


def verify(d, sample=2000):
    assert d.admin.post("/admin/migration/verify", {"sample": sample}).status == 202
    wait_until(lambda: not report(d)["verify"]["running"], 30, "verified")
    found = report(d)["verify"]
    assert found["result"] == "ok" and found["missing"] == 0, found
    return found


def migrated(d, user):
    """When, or None."""
    answer = d.admin.get("/users/%s" % user)
    found = answer.json["migration"] if answer.status == 200 else None
    return found and found["migrated_ms"]


def reasons(d, user, candidates):
    answer = d.filter(user, candidates, explain=True)
    assert answer["history"] == "full", answer
    return {one["item"]: one["reason"] for one in answer["explain"]}


@pytest.fixture(params=["same Redis", "another Redis", "embedded"])
def place(request, bench):
    """(start(settings), a client of the Redis with the old keys)."""
    hot = bench.redis("hot") if request.param != "embedded" else None
    source = hot if request.param == "same Redis" else bench.redis("source")
    settings = {} if request.param == "same Redis" else {"migrate.source": source.url}

    def start(**more):
        d = bench.dedupd(redis=hot, settings=dict(DUAL, **settings, **more))
        d.wait_full()  # the connection to the old keys stands
        return d
    return start, source.client()
