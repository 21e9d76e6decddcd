"""Clients that are slow, stop in the middle, or ask to be asked. The server of this group has deadlines of a second and
less (server.py)."""
import time

from dd.wait import PATIENCE, wait_until
from row import row
from server import BODY_S, HEAD_S, IDLE_S, WRITE_S
from wire import HOST, LIVE, Wire, ask, post

G = "strict"
SLACK_S = 10.0 * PATIENCE  # what a busy machine may add
BIG = ask(["%0250d" % i for i in range(3500)])  # the answer has 900 KB: more than the buffers of a small socket


def drip(w, data, every_s):
    """Sends a byte at a time until an answer comes."""
    w.sock.settimeout(every_s)
    for i in range(len(data)):
        w.send(data[i:i + 1])
        try:
            got = w.sock.recv(65536)
        except OSError:
            continue
        w.data += got
        break
    w.sock.settimeout(w.seconds)


def cut_off(server, prefix, rest, deadline_s):
    began = time.monotonic()
    with Wire(server.address) as w:
        w.send(prefix)
        drip(w, rest, .05)
        took = time.monotonic() - began
        w.expect(408)
        w.expect_end()
    assert deadline_s * .8 < took < deadline_s + SLACK_S, "after %.2f s" % took
    return "408 after %.2f s, closed" % took


@row(G, "a byte now and then in the head", "408 at the deadline, closed")
def slow_head(server):
    return cut_off(server, b"GET /health/live HTTP/1.1\r\n" + HOST, b"X-Slow: " + b"a" * 1000, HEAD_S)


@row(G, "a byte now and then in the body", "408 at the deadline, closed")
def slow_body(server):
    return cut_off(server, b"POST /filter HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n", b"x" * 1000, BODY_S)


@row(G, "half a head, then nothing", "408 at the deadline, closed")
def stuck_head(server):
    return stuck(server, b"GET /health/live HT", HEAD_S)


@row(G, "half a body, then nothing", "408 at the deadline, closed")
def stuck_body(server):
    return stuck(server, b"POST /filter HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\nxxx", BODY_S)


def stuck(server, data, deadline_s):
    began = time.monotonic()
    with Wire(server.address) as w:
        w.send(data)
        w.expect(408)
        took = time.monotonic() - began
        w.expect_end()
    assert deadline_s * .8 < took < deadline_s + SLACK_S, "after %.2f s" % took
    return "408 after %.2f s, closed" % took


@row(G, "connected, not a byte", "closed at the deadline")
def idle(server):
    began = time.monotonic()
    with Wire(server.address) as w:
        w.expect_end()
    took = time.monotonic() - began
    assert IDLE_S * .8 < took < IDLE_S + SLACK_S, "after %.2f s" % took
    return "closed after %.2f s" % took


@row(G, "one byte a packet", "200")
def one_byte_a_packet(server):
    with Wire(server.address, packets=True) as w:
        for byte in post(b"/filter", b'{"user":"u","candidates":[1]}'):
            w.send(bytes([byte]))
        w.expect(200)
        w.send(LIVE)
        w.expect(200)
    return "200, kept"


@row(G, "an answer that is never read", "reset at the deadline")
def unread(server):
    with Wire(server.address, receive_buffer=4096) as w:
        w.send(LIVE)
        w.expect(200)  # it is accepted
        before = server.client_sockets()
        assert before > 0
        began = time.monotonic()
        w.send(BIG)
        wait_until(lambda: server.client_sockets() < before, WRITE_S + SLACK_S, "the connection ends")
        took = time.monotonic() - began
    assert took > WRITE_S * .8, "after %.2f s" % took
    return "reset after %.2f s" % took


@row("many", "an answer that is read slowly", "whole")
def slow_reader(server):
    """The write deadline of this group is the default, 10 s; what is slow here takes less than one of them."""
    with Wire(server.address, receive_buffer=65536) as w:
        w.send(BIG)
        got, end = 0, time.monotonic() + .6
        while got < 300000 and time.monotonic() < end:
            time.sleep(.01)
            piece = w.sock.recv(8192)
            w.data += piece
            got += len(piece)
        r = w.expect(200)
        assert len(r.json["items"]) == 3500
    return "200, %d bytes" % len(r.body)


@row(G, "unbounded input while an answer is unread", "not read: bounded by the kernel's buffers")
def input_behind_an_answer(server):
    with Wire(server.address, receive_buffer=4096) as w:
        w.send(BIG)
        taken = w.push(b"A" * 65536, 512 << 20, WRITE_S + 1)
    assert taken < 64 << 20, "%d bytes were taken" % taken
    return "%.1f MB taken by the kernel, then the end" % (taken / 1e6)


@row(G, "an endless header line", "431, closed")
def endless_header(server):
    with Wire(server.address) as w:
        w.send(b"GET /health/live HTTP/1.1\r\n" + HOST + b"X: ")
        taken = w.push(b"a" * 65536, 256 << 20, 4)
        answer = first_status(w)
    assert answer in (431, None) and taken < 64 << 20, (answer, taken)
    return "431, closed after %.1f MB" % (taken / 1e6)


@row(G, "an endless request line", "431, closed")
def endless_line(server):
    with Wire(server.address) as w:
        w.send(b"GET /" + b"a" * 9000)
        w.expect(431)
        taken = w.push(b"a" * 65536, 256 << 20, 4)
    assert taken < 64 << 20, taken
    return "431, closed after %.1f MB" % (taken / 1e6)


@row(G, "an endless chunk line", "411, closed")
def endless_chunk_line(server):
    with Wire(server.address) as w:
        w.send(b"POST /filter HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        w.expect(411)
        taken = w.push(b"1" * 65536, 256 << 20, 4)
    assert taken < 64 << 20, taken
    return "411, closed after %.1f MB" % (taken / 1e6)


def first_status(w):
    """The status of an answer that a reset may have overtaken."""
    try:
        r = w.reply()
    except AssertionError:
        return None
    return r.status if r else None


@row(G, "half-close after a request", "200, closed")
def half_close(server):
    with Wire(server.address) as w:
        w.send(LIVE + LIVE)
        w.half_close()
        w.expect(200)
        w.expect(200)
        w.expect_end()
    return "200 200, closed"


@row(G, "half-close in the middle of a head", "400, closed")
def half_close_in_head(server):
    with Wire(server.address) as w:
        w.send(LIVE[:30])
        w.half_close()
        w.expect(400)
        w.expect_end()
    return "400, closed"


@row(G, "half-close in the middle of a body", "400, closed")
def half_close_in_body(server):
    with Wire(server.address) as w:
        w.send(post(b"/filter", b"x" * 100)[:-50])
        w.half_close()
        w.expect(400)
        w.expect_end()
    return "400, closed"


@row(G, "reset in the middle of a body, 300 times", "nothing stays")
def reset_in_body(server):
    for i in range(300):
        w = Wire(server.address)
        w.send(post(b"/exposed", b"x" * 200000)[:-(1 + i * 600)])
        w.reset()
    return "nothing stays"


@row(G, "reset before the answer is read, 300 times", "nothing stays")
def reset_before_answer(server):
    for _ in range(300):
        w = Wire(server.address)
        w.send(ask(list(range(2000))))
        w.reset()
    return "nothing stays"


BODY = b'{"user":"u","candidates":["a"]}'


def expecting(value, n, line=b"POST /filter HTTP/1.1"):
    return line + b"\r\n" + HOST + b"Expect: " + value + b"\r\nContent-Length: %d\r\n\r\n" % n


@row(G, "Expect: 100-continue", "100, then 200")
def expect_continue(server):
    with Wire(server.address) as w:
        w.send(expecting(b"100-continue", len(BODY)))
        w.expect(100)
        w.send(BODY)
        w.expect(200)
        w.send(expecting(b"100-Continue", len(BODY)) + BODY)  # it did not wait: it need not be asked
        w.expect(200)
    return "100, 200, kept"


@row(G, "Expect: 100-continue, and no body comes", "100, 408 at the deadline")
def expect_then_nothing(server):
    with Wire(server.address) as w:
        w.send(expecting(b"100-continue", len(BODY)))
        w.expect(100)
        w.expect(408)
        w.expect_end()
    return "100, 408, closed"


@row(G, "Expect: 100-continue with too large a body", "413 at once, closed")
def expect_too_large(server):
    with Wire(server.address) as w:
        w.send(expecting(b"100-continue", 1 << 30))
        w.expect(413)
        w.expect_end()
    return "413, closed"


@row(G, "Expect: 100-continue without a body", "200")
def expect_without_body(server):
    with Wire(server.address) as w:
        w.send(b"GET /health/live HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\n\r\n" + LIVE)
        w.expect(200)
        w.expect(200)
    return "200, kept"


@row(G, "Expect: 100-continue on HTTP/1.0", "200, without 100")
def expect_on_1_0(server):
    with Wire(server.address) as w:
        w.send(expecting(b"100-continue", len(BODY), b"POST /filter HTTP/1.0"))
        time.sleep(.05)
        w.send(BODY)
        w.expect(200)
        w.expect_end()
    return "200, closed"


@row(G, "Expect: something else", "417, closed")
def expect_other(server):
    for value in (b"200-ok", b"100-continue, x", b""):
        with Wire(server.address) as w:
            w.send(expecting(value, len(BODY)) + BODY)
            w.expect(417)
            w.expect_end()
    return "417, closed"


@row(G, "Expect twice", "417, closed")
def expect_twice(server):
    with Wire(server.address) as w:
        w.send(expecting(b"100-continue\r\nExpect: 100-continue", len(BODY)) + BODY)
        w.expect(417)
        w.expect_end()
    return "417, closed"
