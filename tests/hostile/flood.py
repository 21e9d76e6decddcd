"""Many at once: connections, requests in one connection, descriptors, half-sent bodies."""
import resource
import time

from row import Skip, row
from wire import HOST, LIVE, Wire, ask, post

IDLE = 10000


def need_descriptors(n):
    """Of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n <= hard or hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
    elif soft < n:
        raise Skip("needs %d open files; the hard limit is %d" % (n, hard))


@row("many", "10,000 idle connections", "served beside them; under 2 KB each", peak_mb=24)
def idle_connections(server):
    need_descriptors(IDLE + 200)
    if resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1] < 12000:
        raise Skip("the server cannot open 12,000 files")
    before = server.rss_bytes()
    wires = [Wire(server.address) for _ in range(IDLE)]
    try:
        for w in wires[::100]:
            w.send(LIVE)
        for w in wires[::100]:
            w.expect(200)
        server.check_serves()
        each = (server.rss_bytes() - before) / IDLE
    finally:
        for w in wires:
            w.reset()
    return "served; %.0f bytes each" % each


@row("many", "10,000 connections that begin a request", "served beside them; one buffer each", peak_mb=400, grow_mb=16)
def begun_requests(server):
    need_descriptors(IDLE + 200)
    before = server.rss_bytes()
    wires = [Wire(server.address) for _ in range(IDLE)]
    try:
        for w in wires:
            w.send(b"POST /filter HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n{")
        server.check_serves()
        each = (server.rss_bytes() - before) / IDLE
    finally:
        for w in wires:
            w.reset()
    return "served; %.0f bytes each" % each


@row("many", "10,000 pipelined requests", "10,000 answers in order")
def pipelined(server):
    with Wire(server.address, seconds=30) as w:
        sent = 0
        for i in range(0, 10000, 100):
            w.send(b"".join(ask([n], "pipelined") for n in range(i, i + 100)))
            # What is not read would stop the server, and then this client, for good.
            while sent < i:
                assert w.expect(200).json["items"] == [sent]
                sent += 1
        while sent < 10000:
            assert w.expect(200).json["items"] == [sent]
            sent += 1
    return "10,000 answers in order"


@row("many", "10,000 pipelined requests, answers unread", "the client waits; the answers come when it reads")
def pipelined_unread(server):
    with Wire(server.address, seconds=30, receive_buffer=4096) as w:
        big = ask(["%0200d" % i for i in range(50)], "unread")
        taken = w.push(big * 10, len(big) * 10000, 1)
        whole = taken // len(big)
        for _ in range(min(whole, 500)):
            assert len(w.expect(200).json["items"]) == 50
        w.reset()
    assert whole < 10000, "all were taken"
    return "%d taken before it had to wait" % whole


@row("many", "no descriptors left", "no spinning; those inside served; served again after")
def out_of_descriptors(server):
    inside = Wire(server.address)
    inside.send(LIVE)
    inside.expect(200)
    before = server.limit_descriptors(server.descriptors() + 20)
    wires = []
    try:
        for _ in range(100):
            wires.append(Wire(server.address))
        cpu, began = server.cpu_seconds(), time.monotonic()
        while time.monotonic() < began + 1:
            inside.send(post(b"/exposed", b'{"user":"u","items":["a"]}'))
            inside.expect(200)
            time.sleep(.02)
        cpu = server.cpu_seconds() - cpu
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        for w in wires:
            w.reset()
        inside.close()
    assert cpu < .5, "%.2f s of CPU in a second" % cpu
    lines = server.log().count("http.accept")
    assert 0 < lines < 20, "%d lines logged" % lines
    server.check_serves()
    return "%.2f s of CPU, %d lines logged" % (cpu, lines)


@row("many", "bodies of 1 MB, never finished, 400 times", "503 past 256 MB, served beside them", peak_mb=320)
def unfinished_bodies(server):
    wires = [Wire(server.address) for _ in range(400)]
    try:
        for w in wires:
            w.send(b"POST /filter HTTP/1.1\r\n" + HOST + b"Content-Length: 1048576\r\n\r\n" + b"x" * 1000000)
        server.check_serves()
        refused = 0
        for w in wires:
            w.sock.setblocking(False)
            try:
                refused += w.sock.recv(4096).startswith(b"HTTP/1.1 503 ")
            except OSError:
                pass
    finally:
        for w in wires:
            w.reset()
    assert refused > 50, "%d were refused" % refused
    return "%d of 400 refused" % refused


@row("few", "more connections than http.max_connections", "503, Retry-After, closed; room again after")
def too_many_connections(server):
    inside = [Wire(server.address) for _ in range(50)]
    for w in inside:
        w.send(LIVE)
        w.expect(200)
    for _ in range(200):
        with Wire(server.address) as w:
            w.send(ask([1]))
            r = w.expect(503)
            assert r.headers["retry-after"] == "1" and r.headers["connection"] == "close"
            w.expect_end()
    for w in inside:
        w.send(LIVE)
        w.expect(200)
        w.reset()
    server.settle()
    server.check_serves()
    return "200 times 503, closed"
