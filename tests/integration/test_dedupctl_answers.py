"""dedupctl against servers that answer something else than dedupd, and ids that a URL or a terminal could take amiss."""
import json
import socket
import subprocess
import threading

import pytest

from dd.ctl import DEDUPCTL
from dd.wait import PATIENCE


class Canned:
    """Answers every connection with the same bytes, then closes it."""

    def __init__(self, answer):
        self.answer = answer
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.sock.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            with conn:
                conn.settimeout(10)
                data = b""
                while b"\r\n\r\n" not in data:
                    got = conn.recv(65536)
                    if not got:
                        break
                    data += got
                conn.sendall(self.answer)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def ctl(address, *args):
    return subprocess.run([DEDUPCTL, "--admin", address, "--data", address, "--timeout", "5", *args], timeout=60 * PATIENCE,
                          capture_output=True, text=True, check=False)


def whole(status, body):
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


COMMANDS = [("health",), ("stats",), ("user", "u"), ("user", "u", "--json"), ("erase", "u"), ("trace", "show", "u"),
            ("trace", "off", "u"), ("export", "u")]
ANSWERS = {"moved": whole(b"302 Found", b""), "half a head": b"HTTP/1.1 200 OK\r\nConte", "no length": b"HTTP/1.1 200 OK\r\n\r\n",
           "nothing": b"", "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_what_is_no_answer_is_no_success(answer):
    with Canned(answer) as server:
        for command in COMMANDS:
            done = ctl(server.url, *command)
            assert done.returncode in (1, 3), (command, done)
            assert done.stderr, command


def test_an_erase_wants_to_read_that_it_was_done():
    for body in (b"<html>", b"", b"{}", b'{"removed":1}'):
        with Canned(whole(b"200 OK", body)) as server:
            done = ctl(server.url, "erase", "u")
            assert done.returncode == 1 and "not erased" in done.stderr, (body, done)
    strange = {"removed": {"sets": 1, "keys": 0}, "not_asked": [{"store": "x", "admin": 1}, {"store": 2}, 3]}
    with Canned(whole(b"200 OK", json.dumps(strange).encode())) as server:
        done = ctl(server.url, "erase", "u")
        assert done.returncode == 0 and "1 users erased" in done.stdout, done


def test_health_with_strange_parts():
    strange = {"status": "ok", "components": {"a": {"status": 1, "reasons": [1, None, "why"]}, "b": 7}}
    with Canned(whole(b"200 OK", json.dumps(strange).encode())) as server:
        done = ctl(server.url, "health")
        assert done.returncode == 0 and "why" in done.stdout, done


def test_users_called_dot(bench):
    it = bench.dedupd()
    for user in (".", "..", "trace", "filter"):
        it.exposed(user, ["a"])
    admin = "http://%s:%d" % (it.admin.host, it.admin.port)
    assert ctl(admin, "trace", "off", ".").returncode == 1  # nothing was recorded
    for user in (".", ".."):
        assert ("user %s\n" % user) in ctl(admin, "user", user).stdout
        assert ctl(admin, "erase", user).returncode == 0
        assert it.unseen(user, ["a"]) == ["a"]
    for user in ("trace", "filter"):
        assert it.unseen(user, ["a"]) == [], "somebody else was erased"


def test_ids_cannot_reach_the_terminal(bench):
    it = bench.dedupd()
    item = "a\x1b[2J\nb\u009bc"
    assert it.http.post("/delivered", {"user": "u", "items": [item]}).status == 200
    shown = ctl("http://%s:%d" % (it.admin.host, it.admin.port), "user", "u").stdout
    assert "a\\x1b[2J\\x0ab\\x9bc\n" in shown, shown
