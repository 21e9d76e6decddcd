"""A client of bytes: it sends whatever it is told to and reads whole answers, or what comes until the end."""
import json
import re
import socket
import struct
import time

from dd.wait import PATIENCE

HOST = b"Host: a\r\n"
LIVE = b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n"


def post(path, body, headers=b""):
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


def ask(candidates, user="u"):
    """A filter request."""
    return post(b"/filter", json.dumps({"user": user, "candidates": candidates}, separators=(",", ":")).encode())


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "%d %s" % (self.status, self.body[:200])


class Wire:
    """One connection. address: "host:port"; seconds: for each thing that is waited for."""

    def __init__(self, address, seconds=10.0, receive_buffer=None, packets=False):
        host, port = address.rsplit(":", 1)
        self.seconds = seconds * PATIENCE
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if packets:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(self.seconds)
        self.sock.connect((host, int(port)))
        self.data = b""

    def send(self, data):
        """Everything; a server that has closed meanwhile is not an error here."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def push(self, data, most, seconds):
        """Sends data again and again without waiting for it to be taken; returns how many bytes the kernel took until
        `most`, until the end of the connection, or until the time was over."""
        taken, end, view = 0, time.monotonic() + seconds, memoryview(data)
        self.sock.setblocking(False)
        while taken < most and time.monotonic() < end:
            try:
                taken += self.sock.send(view[taken % len(data):])
            except BlockingIOError:
                time.sleep(.005)
            except OSError:
                break
        self.sock.settimeout(self.seconds)
        return taken

    def more(self):
        """Receives some; False at the end of the connection, reset or not."""
        try:
            got = self.sock.recv(1 << 20)
        except (ConnectionResetError, BrokenPipeError):
            got = b""
        except socket.timeout:
            raise AssertionError("nothing came within %g s after %r" % (self.seconds, self.data[-100:])) from None
        self.data += got
        return got != b""

    def reply(self, no_body=False):
        """The next whole answer; None when the connection ends before one."""
        while b"\r\n\r\n" not in self.data:
            if not self.more():
                assert not self.data, "half an answer: %r" % self.data
                return None
        head, _, rest = self.data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        assert re.match(r"HTTP/1\.1 \d{3} ", lines[0]), lines[0]
        status = int(lines[0].split()[1])
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        length = 0 if no_body or status == 100 else int(headers["content-length"])
        while len(rest) < length:
            assert self.more(), "half a body"
            rest = self.data.partition(b"\r\n\r\n")[2]
        self.data = rest[length:]
        return Reply(status, headers, rest[:length])

    def expect(self, status, no_body=False):
        r = self.reply(no_body)
        assert r is not None, "closed without an answer; %d expected" % status
        assert r.status == status, "%r; %d expected" % (r, status)
        if status >= 400 and not no_body:
            assert r.json["error"]["code"] and r.json["error"]["message"], r
            assert r.headers["content-type"] == "application/json", r.headers
        return r

    def expect_end(self):
        while self.more():
            assert not self.data, "more than expected: %r" % self.data[:200]

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with a reset. What floods are closed with too: it leaves no port waiting."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
