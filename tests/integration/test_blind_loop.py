"""One loop of a process does not reach Redis while another does. Direct writes, cache fills and the return of Redis in
every order, also with the process killed in between: nothing stale is served."""
import itertools

import pytest

from dd.client import Client
from dd.proxy import Proxy
from dd.wait import PATIENCE, wait_until

CONNECTIONS = 24  # enough that each of two loops has some


class Split:
    """A dedupd of two loops behind a relay, and HTTP connections known to be of one loop or the other."""

    def __init__(self, bench, mode):
        self.redis = bench.redis()
        self.proxy = Proxy(bench.directory, self.redis)
        self.it = bench.dedupd(start=False, redis=self.proxy.url, settings={
            "ingest.mode": "direct" if mode == "direct" else "auto", "scenes.default.recent.ttl_s": "1",
            "wheel.tick_s": "1",
            # A loop that sees is not taken for blind by a slow machine.
            "redis.timeout_ms": str(int(300 * PATIENCE)), "http.deadline_ms": "20000"})
        self.mode = mode
        self.acked = []
        self.blind = self.seeing = None
        self.link = None  # of the blind loop
        self.start()

    def start(self):
        self.it.start()
        wait_until(lambda: len(self.proxy.loops()) == 2, 10, "both loops are connected")
        wait_until(self.it.redis_up, 10)
        if self.mode == "staged":
            self.it.wait_staging()
        self.it.wait_full()
        self.clients = []
        self.blind = self.seeing = None

    def client(self):
        return Client("%s:%d" % (self.it.http.host, self.it.http.port))

    # ---- the two loops

    def find_or_renew(self):
        """The kernel may have given all connections to one loop: then others are made."""
        if self.find():
            return True
        self.clients = [self.client() for _ in range(CONNECTIONS)]
        return False

    def split(self, how):
        """Blinds one loop and finds connections of each."""
        link = self.proxy.loops()[0]
        self.proxy.refusing = True
        if how == "cut":
            self.proxy.cut(link)
        else:
            self.proxy.hold(link)
        self.clients = [self.client() for _ in range(CONNECTIONS)]
        # A connection that is held is given up when a command on it has waited for too long.
        wait_until(self.find_or_renew, 30, "connections of both loops are found")
        assert not self.it.redis_up()

    def find(self):
        self.blind = self.seeing = None
        for c in self.clients:
            said = self.ask(c, ["x"])["history"]
            if said == "partial":
                self.blind = c
            else:
                self.seeing = c
        return self.blind and self.seeing

    def unsplit(self):
        self.proxy.restore()
        wait_until(self.it.redis_up, 10, "both loops are connected")
        self.it.wait_full()

    # ---- requests

    def ask(self, client, candidates):
        answer = client.post("/filter", {"user": "u1", "candidates": candidates})
        assert answer.status == 200, answer
        return answer.json

    def expose(self, client, item):
        answer = client.post("/exposed", {"user": "u1", "items": [item]})
        assert answer.status == 200, answer
        self.acked.append(item)
        return answer.json["durability"]

    def check(self, client):
        """Whatever was acknowledged is dropped by an answer that says full, twice: the second may use the cache."""
        for _ in range(2):
            answer = self.ask(client, [*self.acked, "x"])
            if answer["history"] == "full":
                assert answer["items"] == ["x"], (answer, self.acked)
        return answer["history"]

    # ---- the steps

    def step_write(self):
        """A direct write by the loop that does not see Redis."""
        assert self.expose(self.blind or self.it.http, "w%d" % len(self.acked)) in ("wal", "staged")

    def step_fill(self):
        """The loop that sees Redis fills and uses the cache, and writes."""
        client = self.seeing or self.it.http
        self.check(client)
        self.expose(client, "f%d" % len(self.acked))
        self.check(client)

    def step_return(self):
        self.unsplit()

    def step_kill(self):
        """kill -9; the process that comes is not blind yet, and then it is."""
        was_split = self.proxy.refusing
        self.it.kill9()
        self.proxy.restore(everything=True)
        self.start()
        if was_split:
            self.split("cut")

    def run(self, order):
        for name in order:
            getattr(self, "step_" + name)()
            for client in {self.blind, self.seeing, self.it.http} - {None}:
                self.check(client)
        self.unsplit()
        self.check_all_see()

    def check_all_see(self):
        for client in [*self.clients, self.it.http]:
            wait_until(lambda client=client: self.check(client) == "full", 10, "a full answer")


@pytest.fixture(params=["direct", "staged"])
def split(request, bench):
    it = Split(bench, request.param)
    yield it
    it.proxy.stop()


def orders():
    """Every order of the three steps, with a kill at no place or at any."""
    for order in itertools.permutations(["write", "fill", "return"]):
        yield order
        for at in range(len(order) + 1):
            yield order[:at] + ("kill",) + order[at:]


@pytest.mark.slow
def test_every_order(split):
    """The cache is warm at the beginning of each; the same user goes through all."""
    count = 0
    for order in orders():
        split.expose(split.it.http, "a%d" % count)
        split.check(split.it.http)
        split.check(split.it.http)
        split.split("hold" if count % 2 else "cut")
        try:
            split.run(order)
        except AssertionError:
            print("order: %s" % (order,))
            raise
        count += 1
    assert count == 30


def test_a_reply_that_was_held_over_a_write_is_not_believed(split):
    """A loop's connection stands still for a while, with an old cached set in Redis; a direct write of the other process's
    loop comes meanwhile. When bytes flow again, what they bring is judged by what was written."""
    split.expose(split.it.http, "a")
    split.check(split.it.http)
    split.split("hold")
    split.expose(split.seeing, "b")
    split.check(split.seeing)
    split.expose(split.blind, "c")
    assert split.check(split.blind) == "partial"
    wait_until(lambda: split.check(split.seeing) == "full", 10, "a full answer")
    split.unsplit()
    split.check_all_see()
