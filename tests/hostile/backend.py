"""Requests that wait for a Redis that does not answer: it is stopped by SIGSTOP, so that its connections stand and
nothing comes back."""
import select
import time

from dd.wait import PATIENCE, wait_until
from row import row
from server import DEADLINE_S, MAX_INFLIGHT
from wire import LIVE, Wire, ask, post

G = "backend"
SLACK_S = 5 * PATIENCE  # what a busy machine may add; far below redis.timeout_ms


class Frozen:
    def __init__(self, server):
        self.server, self.redis = server, server.redis

    def __enter__(self):
        self.redis.freeze()

    def __exit__(self, *exc):
        self.redis.thaw()
        wait_until(self.server.redis_up, 20, "dedupd is connected")
        self.server.http.close()


def inflight(server):
    value = server.metrics()['dedupd_http_inflight{listener="data"}']
    server.http.close()
    return value - 1  # the request that asks


@row(G, "clients that leave while their requests wait for Redis", "nothing stays, the next are answered")
def leaving(server):
    with Frozen(server):
        wires = [Wire(server.address) for _ in range(90)]
        for i, w in enumerate(wires):
            w.send(ask(list(range(100)), "u%d" % i) if i % 2 else post(b"/delivered", b'{"user":"u","items":[1]}'))
        wait_until(lambda: inflight(server) >= 80 or inflight(server) == 0, 10, "requests wait")
        for i, w in enumerate(wires):
            if i % 3 == 0:
                w.reset()
            elif i % 3 == 1:
                w.close()
            else:
                w.half_close()  # this one still waits for its answer
        for w in wires[2::3]:
            r = w.reply()
            assert r.status in (200, 503), r
            w.close()
        wait_until(lambda: inflight(server) <= 0, 10, "no request is left")
    return "nothing stays"


@row(G, "requests while Redis does not answer", "partial or 503 at http.deadline_ms")
def deadline(server):
    took = []
    with Frozen(server):
        for path, body in ((b"/filter", b'{"user":"d1","candidates":["a","b"]}'),
                           (b"/filter", b'{"user":"d2","candidates":["a","b"],"claim":true}'),
                           (b"/delivered", b'{"user":"d3","items":["a"]}'),
                           (b"/exposed", b'{"user":"d4","items":["a"]}')):
            with Wire(server.address) as w:
                began = time.monotonic()
                w.send(post(path, body))
                r = w.reply()
                took.append(time.monotonic() - began)
                assert r.status in (200, 503), r
                assert r.status == 503 or r.json.get("history", "partial") == "partial", r
                assert r.status == 200 or r.headers["retry-after"], r.headers
    assert max(took) < DEADLINE_S + SLACK_S, took
    return "after %s s" % " ".join("%.2f" % t for t in took)


@row("inflight", "more requests than http.max_inflight", "503 and Retry-After at once; probes served; recovers")
def too_many_inflight(server):
    with Frozen(server):
        began = time.monotonic()
        wires = [Wire(server.address) for _ in range(MAX_INFLIGHT * 3)]
        for i, w in enumerate(wires):
            w.send(ask([1], "f%d" % i))
        wait_until(lambda: len(answered(wires)) >= MAX_INFLIGHT * 2, 20, "what is too much is turned away")
        took = time.monotonic() - began
        with Wire(server.address) as probe:
            probe.send(LIVE)
            probe.expect(200)
        early = answered(wires)
        assert len(early) == MAX_INFLIGHT * 2, "%d were turned away" % len(early)
        for w in early:
            assert turned_away(w)
    for w in wires:
        if w not in early:
            w.expect(200)
        w.close()
    wait_until(lambda: server.check_serves() is None, 10)
    return "%d of %d turned away within %.2f s" % (len(early), len(wires), took)


def answered(wires):
    """Those with something to read."""
    by_fd = {w.sock.fileno(): w for w in wires}
    poll = select.poll()
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(0)]


def turned_away(w):
    r = w.reply()
    return r is not None and r.status == 503 and r.json["error"]["code"] == "overloaded" and \
        r.headers["retry-after"] == "1" and r.headers.get("connection") != "close"
