"""Where dedupd listens: several addresses, IPv6, Unix sockets."""
import http.client
import os
import socket
import stat
import subprocess

import pytest

from dd.ctl import DEDUPCTL
from dd.dedupd import READY
from dd.wait import wait_until


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def connection(address):
    if address.startswith("unix:"):
        return UnixConnection(address[5:])
    host, port = address.rsplit(":", 1)
    return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=20)


def ask(address, body='{"user":"u","candidates":["a","b"]}', path="/filter"):
    c = connection(address)
    c.request("POST", path, body)
    r = c.getresponse()
    answer = r.status, r.read().decode()
    c.close()
    return answer


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")


def start(bench, listen, admin="127.0.0.1:0", **kw):
    """Returns the process and its real addresses, of the data and of the admin listener."""
    it = bench.dedupd(start=False, settings=dict({"http.listen": listen, "admin.listen": admin}, **kw))
    return (it,) + launch(it)


def launch(it):
    it.launch()

    def ready():
        assert it.running(), it.log_tail()
        return READY.search(it.log())
    found = wait_until(ready, 30, "dedupd says that it is ready")
    return found.group(1).split(","), found.group(2).split(",")


@needs_ipv6
def test_several_addresses_are_one_service(bench):
    path = os.path.join(bench.directory, "d.sock")
    it, data, admin = start(bench, "127.0.0.1:0, [::1]:0,unix:%s,127.0.0.1:0" % path, "[::1]:0,127.0.0.1:0")
    assert len(data) == 4 and len(admin) == 2, (data, admin)
    assert ask(data[0], '{"user":"u","items":["a"]}', "/exposed")[0] == 200
    for address in data:
        assert ask(address) == (200, '{"items":["b"],"filtered":1,"history":"full"}'), address
    for address in admin:
        c = connection(address)
        c.request("GET", "/health")
        assert c.getresponse().status == 200
        c.close()
    assert it.running()


@needs_ipv6
def test_any_address_takes_both_families(bench):
    _, data, _ = start(bench, "[::]:0")
    port = data[0].rsplit(":", 1)[1]
    assert data == ["[::]:" + port]
    assert ask("127.0.0.1:" + port)[0] == 200
    assert ask("[::1]:" + port)[0] == 200


def test_a_unix_socket(bench):
    path = os.path.join(bench.directory, "d.sock")
    it, data, _ = start(bench, "unix:" + path)
    assert data == ["unix:" + path]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert ask(data[0])[0] == 200
    done = subprocess.run([DEDUPCTL, "--data", "unix://" + path, "health"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # One left behind by a killed process is replaced, one of a living process is not.
    it.kill9()
    assert os.path.exists(path)
    launch(it)
    assert ask(data[0])[0] == 200
    other = bench.dedupd("other", start=False, settings={"http.listen": "unix:" + path})
    other.launch()
    assert other.wait(20) != 0 and "in use" in other.log()
    assert ask(data[0])[0] == 200
    it.stop()
    assert not os.path.exists(path)


def test_a_file_in_the_way_of_a_unix_socket_stays(bench):
    path = os.path.join(bench.directory, "precious")
    with open(path, "w", encoding="ascii") as f:
        f.write("data")
    it = bench.dedupd(start=False, settings={"http.listen": "unix:" + path})
    it.launch()
    assert it.wait(20) != 0
    with open(path, encoding="ascii") as f:
        assert f.read() == "data"


def test_one_address_in_use_stops_the_start(bench):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        it = bench.dedupd(start=False, settings={"http.listen": "127.0.0.1:0,127.0.0.1:%d" % taken.getsockname()[1]})
        it.launch()
        assert it.wait(20) != 0 and "in use" in it.log()


@pytest.mark.parametrize("listen", ["", "nonsense", "127.0.0.1", "127.0.0.1:99999", "::1:80", "host.example:80",
                                    "127.0.0.1:0,,127.0.0.1:0", "unix:", "unix:" + "x" * 200])
def test_addresses_that_cannot_be(bench, listen):
    it = bench.dedupd(start=False, settings={"http.listen": listen})
    it.launch()
    assert it.wait(20) != 0
    assert "http.listen" in it.log(), it.log()
