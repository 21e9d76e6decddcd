"""Moving from an exact store: users who are erased before, during and after it, and processes that are killed at any
point of it."""
import random
import re
import signal
import subprocess
import threading
import time

import pytest

from dd import clock, rocks
from dd.ctl import DEDUPCTL as CTL, url
from dd.migration import DAY, DUAL, bulk, key, migrated, place, report, verify  # pylint: disable=unused-import # noqa: F401
from dd.wait import wait_until


# ---- erasing

@pytest.mark.parametrize("when", ["before", "after", "while"])
def test_erased_is_not_migrated_again(place, when):
    start, c = place
    items = ["i%d" % i for i in range(60000 if when == "while" else 300)]
    for at in range(0, len(items), 10000):
        c.zadd(key("u"), {i: clock.now() - 3600 for i in items[at:at + 10000]})
    c.zadd(key("other"), {"seen": clock.now() - 3600})
    d = start(**{"migrate.margin_s": "0"})
    if when == "after":
        bulk(d)
    if when == "while":
        assert d.admin.post("/admin/migration", {"bulk": "start"}).status == 202
    erased = d.admin.request("DELETE", "/users/u")
    assert erased.status == 200, erased
    wait_until(lambda: report(d)["bulk"]["state"] in ("done", "never"), 20, "the walk is over")
    bulk(d)
    sample = items[::len(items) // 300]
    assert d.unseen("u", sample) == sample
    assert not any(scene["periods"] for scene in d.admin.get("/users/u").json.get("scenes", ()))
    assert c.exists(key("u"))
    assert d.unseen("other", ["seen"]) == []
    c.zadd(key("u"), {"i5": clock.now() + 1})  # seen again, by a writer of the old store
    assert "i5" not in d.unseen("u", ["i5", "i6"])
    assert d.admin.request("DELETE", "/users/u?legacy=delete").status == 200
    assert not [k for k in c.keys("*") if re.search(rb"[:/{]u([}:/]|$)", k)], c.keys("*")
    assert d.unseen("u", ["i5", "i6"]) == ["i5", "i6"]


def test_nothing_is_left_in_the_store(bench):
    """All keys of the store and of Redis: erased with the old key, during a migration, neither the user nor a mark of him
    remains."""
    redis = bench.redis(options={"appendfsync": "no"})
    c, user = redis.client(), "zz-user-to-go"
    c.zadd(key(user), {"i%d" % i: clock.now() - 60 for i in range(20000)})
    c.zadd(key("other"), {"seen": clock.now() - 60})
    d = bench.dedupd(redis=redis, settings=DUAL)
    assert d.admin.post("/admin/migration", {"bulk": "start"}).status == 202
    assert d.admin.request("DELETE", "/users/%s?legacy=delete" % user).status == 200
    wait_until(lambda: report(d)["bulk"]["state"] == "done", 20, "the walk is over")
    bulk(d)
    assert d.admin.get("/users/%s" % user).status == 404
    assert not [k for k in c.keys("*") if user.encode() in k]
    assert d.unseen("other", ["seen"]) == []
    d.stop()
    there = rocks.keys(d.data_dir + "/db")
    assert [k for k in there if k.endswith(b"other")], there
    assert not [k for k in there if user.encode() in k]


# ---- killed at any point

class Traffic:
    """Reads and writes, to old and new, of users that are being migrated, against an exact model. An item is certainly seen
    once its write was acknowledged before a request began."""

    def __init__(self, d, redis, users, seed):
        self.d, self.redis, self.users, self.seed = d, redis, users, seed
        self.seen = {u: {"i%d" % i for i in range(n)} for u, n in users.items()}
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.failures, self.full, self.partial = [], 0, 0
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(4)]

    def run(self, number):
        rng = random.Random("%s/%d" % (self.seed, number))
        while not self.stop.is_set():
            try:
                (self.read if rng.random() < 0.6 else self.write)(rng)
            except Exception:  # pylint: disable=broad-except
                self.stop.wait(0.01)  # away: what was not acknowledged promises nothing

    def write(self, rng):
        user, item = rng.choice(list(self.users)), "w%d" % rng.randrange(10**9)
        if rng.random() < 0.5:
            with self.redis.client() as c:
                c.zadd(key(user), {item: clock.now()})
        else:
            self.d.exposed(user, [item])
        with self.lock:
            self.seen[user].add(item)

    def read(self, rng):
        user = rng.choice(list(self.users))
        with self.lock:
            sure = set(self.seen[user])
        candidates = rng.sample(sorted(sure), min(len(sure), 60)) + ["never%d" % rng.randrange(10**9)]
        answer = self.d.http.post("/filter", {"user": user, "candidates": candidates})
        if answer.status != 200:
            return
        if answer.json["history"] != "full":
            self.partial += 1
            return
        self.full += 1
        wrong = sure.intersection(answer.json["items"])
        if wrong:
            self.failures.append((user, sorted(wrong)[:5], migrated(self.d, user)))

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join()


@pytest.mark.slow
@pytest.mark.parametrize("victim, after", [("dedupd", "keep"), ("dedupd", "delete"), ("redis", "delete"),
                                           ("dedupctl", "keep")])
def test_killed_during_the_walk(bench, victim, after):
    # An fsync a command would make this slow, and only a killed Redis needs it.
    redis = bench.redis(options={} if victim == "redis" else {"appendfsync": "no"})
    rng = random.Random("%s %s" % (victim, after))
    users = {"u%d" % u: rng.choice([1, 20, 129, 400]) for u in range(600)}
    users["u0"] = 20000
    with redis.client() as c:
        pipe = c.pipeline(transaction=False)
        for user, n in users.items():
            pipe.zadd(key(user), {"i%d" % i: int(clock.now() - rng.randrange(50 * DAY)) for i in range(n)})
        pipe.execute()
    busy = {u: users[u] for u in list(users)[:40]}
    d = bench.dedupd(redis=redis, settings={"migrate.mode": "dual", "migrate.after": after, "migrate.margin_s": "30"})
    with Traffic(d, redis, busy, victim) as traffic:
        for _ in range(3):
            ctl = subprocess.Popen([CTL, "--admin", url(d.admin), "migrate", "--rate",
                                    "800", "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                time.sleep(rng.uniform(0.05, 0.5))  # the moment of the kill is the point of the test
                if victim == "dedupctl":
                    ctl.send_signal(signal.SIGKILL)
                else:
                    process = d if victim == "dedupd" else redis
                    process.kill9()
                    process.start()
            finally:
                ctl.kill()
                ctl.wait()
        d.wait_full()
        wait_until(lambda: report(d)["bulk"]["state"] != "running", 30, "the walk goes on to its end by itself")
        bulk(d)
    assert traffic.full > 50, (traffic.full, traffic.partial)
    assert not traffic.failures, traffic.failures[:3]
    verify(d)
    bulk(d)
    redis.command("DEL", *[key(u) for u in users])  # the sets alone have to know everything now
    d.flush(everything=True)
    for user, items in traffic.seen.items():
        items = sorted(items)
        for at in range(0, len(items), 5000):
            assert d.unseen(user, items[at:at + 5000]) == [], user
