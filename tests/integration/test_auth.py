"""Tokens with roles, read again on SIGHUP, and what clients from other hosts may do without."""
import fcntl
import os
import signal
import socket
import struct

import pytest
import yaml

from dd.client import Client
from dd.ctl import ctl
from dd.dedupd import ROOT, Dedupd
from dd.wait import wait_until

DATA, OPS, ADMIN = "data-0123456789abcdef", "ops-0123456789abcdef", "admin-0123456789abcdef"
FILE = "# roles and tokens\ndata %s\nops %s\nadmin %s\n" % (DATA, OPS, ADMIN)


def ask(client, method, path, token=None, body=None):
    headers = {"Authorization": "Bearer " + token} if token else {}
    return client.request(method, path, body, headers)


def write(path, text):
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path + ".new", 0o600)
    os.replace(path + ".new", path)


@pytest.fixture
def guarded(bench):
    path = bench.directory + "/tokens"
    write(path, FILE)
    it = bench.dedupd(settings={"auth.tokens_file": path})
    it.tokens = path
    return it


def filter_status(it, token, client=None):
    return ask(client or it.http, "POST", "/filter", token, {"user": "u", "candidates": ["a"]}).status


def test_roles(guarded):
    it = guarded
    for token, data, ops, admin in ((None, 401, 401, 401), ("wrong-0123456789abcdef", 401, 401, 401),
                                    (DATA, 200, 403, 403), (OPS, 403, 200, 403), (ADMIN, 200, 200, 200)):
        assert filter_status(it, token) == data
        assert ask(it.http, "POST", "/exposed", token, {"user": "u", "items": ["x"]}).status == data
        for client, path in ((it.http, "/stats"), (it.http, "/metrics"), (it.admin, "/metrics"),
                             (it.admin, "/admin/slots")):
            assert ask(client, "GET", path, token).status == ops, (token, path)
        assert ask(it.admin, "POST", "/admin/flush", token, {}).status == ops
        assert ask(it.admin, "GET", "/users/u", token).status == admin
        assert ask(it.admin, "DELETE", "/users/v", token).status == admin
    assert ask(it.http, "POST", "/filter", ADMIN, {"user": "u", "candidates": ["x", "y"]}).json["items"] == ["y"]
    answer = ask(it.http, "GET", "/stats")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="dedupd"'
    assert answer.error["code"] == "unauthorized"


def test_every_documented_call_is_guarded(guarded):
    """What openapi.yaml does not declare open is closed, and says so there."""
    with open(os.path.join(ROOT, "proto", "openapi.yaml"), encoding="utf-8") as f:
        paths = yaml.safe_load(f)["paths"]
    for path, item in paths.items():
        for method, op in ((m.upper(), op) for m, op in item.items() if m != "parameters"):
            where = guarded.admin if path.startswith(("/admin/", "/users/")) else guarded.http
            answer = where.request(method, path.replace("{user}", "u"), {} if method in ("POST", "PUT") else None)
            if op.get("security") == []:
                assert answer.status == 200, (method, path, answer)
                continue
            assert answer.status == 401, (method, path, answer)
            assert {"401", "403"} <= set(op["responses"]), (method, path)


def test_probes_need_no_token(guarded):
    for client in (guarded.http, guarded.admin):
        assert client.get("/health/live").json == {"status": "ok"}
        assert client.get("/health/ready").json == {"status": "ok"}
        assert client.get("/health").status == 401
        assert ask(client, "GET", "/health", DATA).json["components"]


def test_tokens_are_not_logged(guarded):
    for token in (DATA, OPS, ADMIN, "stranger-0123456789abcdef"):
        filter_status(guarded, token)
    for token in (DATA, OPS, ADMIN, "stranger-0123456789abcdef"):
        assert token not in guarded.log()


def test_dedupctl(guarded):
    assert ctl(guarded, "health") == "ok\n"
    assert '"components"' not in ctl(guarded, "health", "--json")
    assert '"components"' in ctl(guarded, "--token", OPS, "health", "--json")
    ctl(guarded, "stats", status=1)
    ctl(guarded, "--token", OPS, "stats")
    ctl(guarded, "--token", "wrong", "health", status=1)


def test_reload(guarded):
    it = guarded
    write(it.tokens, "data fresh-0123456789abcdef\n")
    assert filter_status(it, DATA) == 200, "not before it is told"
    it.signal(signal.SIGHUP)
    wait_until(lambda: filter_status(it, DATA) == 401, 10, "the old token is refused")
    assert filter_status(it, "fresh-0123456789abcdef") == 200
    assert filter_status(it, ADMIN) == 401
    # What cannot be used changes nothing.
    for text in ("", "data\n", "nobody abcdefghijklmnopq\n"):
        write(it.tokens, text)
        before = it.log().count("auth.reload_failed")
        it.signal(signal.SIGHUP)
        wait_until(lambda: it.log().count("auth.reload_failed") > before, 10, "the failure is logged")
        assert filter_status(it, "fresh-0123456789abcdef") == 200
        assert filter_status(it, None) == 401
    os.unlink(it.tokens)
    it.signal(signal.SIGHUP)
    wait_until(lambda: it.log().count("auth.reload_failed") == 4, 10)
    assert filter_status(it, "fresh-0123456789abcdef") == 200


def test_a_file_that_cannot_be_used_stops_the_start(bench):
    path = bench.directory + "/tokens"
    for text, words in ((None, "No such file"), ("", "no token"), ("data\n", "line=1"),
                        ("data abcdefghijklmnopqrst\nroot x\n", "line=2")):
        if text is not None:
            write(path, text)
        it = Dedupd(bench.directory, settings={"auth.tokens_file": path})
        bench.processes.append(it)
        it.launch()
        assert it.wait(20) != 0
        assert words in it.log(), it.log()


# ---- clients from other hosts


def interface_address(name):
    with socket.socket() as s:
        try:
            got = fcntl.ioctl(s, 0x8915, struct.pack("256s", name.encode()))  # SIOCGIFADDR
        except OSError:
            return None
    return socket.inet_ntoa(got[20:24])


def outside_address():
    """An address of this machine that is not loopback: a client that calls it has it, and is not local."""
    addresses = [interface_address(name) for _, name in socket.if_nameindex()]
    for a in addresses:
        if a and not a.startswith("127."):
            return a
    pytest.skip("this machine has no address but loopback")
    return None


def outside(it):
    """Clients of the data and the admin listener from there."""
    where = outside_address()
    return Client("%s:%d" % (where, it.http.port)), Client("%s:%d" % (where, it.admin.port))


OPEN = {"http.listen": "0.0.0.0:0", "admin.listen": "0.0.0.0:0"}


def test_other_hosts_are_refused_without_tokens(bench):
    it = bench.dedupd(settings=OPEN)
    data, admin = outside(it)
    for client, method, path in ((data, "POST", "/filter"), (data, "GET", "/health"), (data, "GET", "/nowhere"),
                                 (admin, "GET", "/users/u"), (admin, "GET", "/metrics")):
        body = {"user": "u", "candidates": ["a"]} if method == "POST" else None
        answer = client.request(method, path, body)
        assert answer.status == 403 and answer.error["code"] == "protected", (path, answer)
        for word in ("auth.tokens_file", "http.protected"):
            assert word in answer.error["message"], "it says how to change that"
        assert "WWW-Authenticate" not in answer.headers
    assert data.get("/health/live").status == 200 and admin.get("/health/ready").status == 200
    assert filter_status(it, None) == 200, "this machine is served"


def test_protection_can_be_turned_off(bench):
    it = bench.dedupd(settings=dict(OPEN, **{"http.protected": "false"}))
    data, admin = outside(it)
    assert filter_status(it, None, data) == 200
    assert admin.get("/metrics").status == 200


def test_other_hosts_with_tokens(bench):
    path = bench.directory + "/tokens"
    write(path, FILE)
    it = bench.dedupd(settings=dict(OPEN, **{"auth.tokens_file": path}))
    data, admin = outside(it)
    assert filter_status(it, None, data) == 401
    assert filter_status(it, DATA, data) == 200
    assert ask(admin, "GET", "/users/u", ADMIN).status == 404, "admitted; nothing is known of this user"
    assert ask(admin, "GET", "/users/u", OPS).status == 403
    assert filter_status(it, None) == 401, "this machine needs one too"
