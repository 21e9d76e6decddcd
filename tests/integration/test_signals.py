"""Starting and stopping: nothing is lost behind a load balancer, and a second process does not get in."""
import http.client
import os
import signal
import socket
import subprocess
import threading
import time

from dd.dedupd import BINARY, Dedupd
from dd.wait import PATIENCE, wait_until


def ready_status(it):
    return it.http.get("/health/ready").status


def test_the_order_of_a_drain(bench):
    it = bench.dedupd(redis=bench.redis(), settings={"http.drain_delay_s": str(int(3 * PATIENCE))})
    it.exposed("u1", ["a"])
    assert ready_status(it) == 200
    it.signal(signal.SIGTERM)
    wait_until(lambda: ready_status(it) == 503, 5, "ready says 503")
    # Still accepted, on connections old and new, and each is told to close.
    answer = it.http.post("/filter", {"user": "u1", "candidates": ["a", "b"]})
    assert answer.status == 200 and answer.json["items"] == ["b"]
    assert answer.headers["Connection"].lower() == "close"
    assert it.http.post("/exposed", {"user": "u1", "items": ["late"]}).status == 200
    assert it.http.get("/health/live").status == 200
    assert it.wait(20) == 0
    assert not accepts(it)
    it.start({"http.drain_delay_s": "0"})
    assert it.unseen("u1", ["a", "late", "b"]) == ["b"]


def accepts(it):
    try:
        socket.create_connection((it.http.host, it.http.port), 1).close()
        return True
    except OSError:
        return False


def test_no_request_fails_while_it_drains(bench):
    """Clients that send until ready says 503, as a load balancer does."""
    it = bench.dedupd(settings={"http.drain_delay_s": str(int(2 * PATIENCE))})
    stop = threading.Event()
    failures, sent = [], [0] * 4

    def client(n):
        while not stop.is_set():
            try:
                it.exposed("u%d" % n, ["i-%d" % sent[n]])
                sent[n] += 1
            except (OSError, AssertionError, http.client.HTTPException) as e:
                failures.append(repr(e))
                return

    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    wait_until(lambda: min(sent) > 20, 20)
    it.signal(signal.SIGTERM)
    wait_until(lambda: ready_status(it) == 503, 5)
    stop.set()
    for t in threads:
        t.join()
    assert not failures, failures
    assert it.wait(20) == 0
    it.start({"http.drain_delay_s": "0"})
    for n in range(4):
        assert it.unseen("u%d" % n, ["i-%d" % i for i in range(sent[n])]) == []


def test_a_second_signal_exits_at_once(bench):
    it = bench.dedupd(settings={"http.drain_delay_s": "60"})
    it.exposed("u1", ["a"])
    it.signal(signal.SIGTERM)
    wait_until(lambda: ready_status(it) == 503, 5)
    it.signal(signal.SIGINT)
    it.wait(10)  # not the minute
    it.settings["http.drain_delay_s"] = "0"
    it.start()
    assert it.unseen("u1", ["a", "b"]) == ["b"], "what was acknowledged survives an exit at once"


def test_a_hangup_does_not_end_the_drain_early(bench):
    it = bench.dedupd(settings={"http.drain_delay_s": "60"})
    it.signal(signal.SIGTERM)
    wait_until(lambda: ready_status(it) == 503, 5)
    it.signal(signal.SIGHUP)
    for _ in range(300):
        assert accepts(it)
    it.signal(signal.SIGINT)
    assert it.wait(5) == 130


def test_interrupt_stops_as_terminate_does(bench):
    it = bench.dedupd()
    it.signal(signal.SIGINT)
    assert it.wait(20) == 0


def test_an_idle_keepalive_connection_does_not_hold_up_a_stop(bench):
    it = bench.dedupd()
    idle = [socket.create_connection((it.http.host, it.http.port)) for _ in range(20)]
    it.signal(signal.SIGTERM)
    assert it.wait(10) == 0
    for s in idle:
        s.close()


def test_head_on_health(server):
    for path in ("/health", "/health/live", "/health/ready"):
        get, head = server.http.get(path), server.http.request("HEAD", path)
        assert get.status == head.status == 200, path
        assert head.body == b""
        assert get.headers["Content-Type"].startswith("application/json")


def test_live_does_not_look_at_dependencies(bench):
    redis = bench.redis()
    it = bench.dedupd(redis=redis, settings={"redis.timeout_ms": "60000", "http.deadline_ms": "60000"})
    redis.freeze()
    try:
        for _ in range(20):
            began = time.monotonic()
            assert it.http.get("/health/live").status == 200
            assert time.monotonic() - began < 10 * PATIENCE
    finally:
        redis.thaw()


def test_probes_are_not_logged(bench):
    it = bench.dedupd(settings={"log.level": "info"})
    before = it.log().count("\n")
    for _ in range(20):
        it.http.get("/health/live")
        it.http.get("/health/ready")
    assert it.log().count("\n") - before < 5


def test_a_second_process_on_the_same_data_is_refused_before_it_listens(bench):
    it = bench.dedupd()
    port = it.http.port
    second = Dedupd(bench.directory, "second", data_dir=it.data_dir,
                    settings={"http.listen": "127.0.0.1:%d" % port})
    bench.processes.append(second)
    second.launch()
    assert second.wait(20) != 0
    assert "locked" in second.log()
    for _ in range(50):
        assert it.unseen("u1", ["x"]) == ["x"]


def test_a_port_in_use_is_refused(bench):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        it = bench.dedupd(start=False, settings={"http.listen": "127.0.0.1:%d" % taken.getsockname()[1]})
        it.launch()
        assert it.wait(20) != 0
        assert "in use" in it.log()


def run(*args, env=None):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=60, env=env, check=False)


def test_command_line():
    assert "dedupd" in run("--version").stdout
    assert "--config" in run("--help").stdout
    printed = run("--print-config", "--set", "http.workers=3")
    assert printed.returncode == 0 and '"workers": 3' in printed.stdout
    assert run("--check-config").returncode == 0


def test_bad_options_name_the_key_and_the_range():
    for args, words in ((["--set", "http.workers=1000"], ["http.workers", "256"]),
                        (["--set", "http.worker=1"], ["http.worker"]),
                        (["--set", "scenes.default.fpr=0.5"], ["scenes.default.fpr", "0.05"]),
                        (["--set", "redis.url=http://x"], ["redis.url"]),
                        (["--config", "/nonexistent.json"], ["/nonexistent.json"]),
                        (["--set", "http.listen=localhost:8080"], ["http.listen", "not a name", "numeric address:port"]),
                        (["--set", "admin.listen=" + ",".join(["127.0.0.1:0"] * 17)], ["admin.listen", "16 addresses"]),
                        (["--set", "auth.tokens_file=/nope"], ["auth.tokens", "/nope", "No such file"]),
                        (["--nonsense"], ["--nonsense"])):
        ended = run("--check-config", *args)
        assert ended.returncode != 0, args
        for word in words:
            assert word in ended.stderr, (args, ended.stderr)


def test_environment_and_file(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"http": {"workers": 5, "max_inflight": 77}}')
    env = dict(os.environ, DEDUPD_HTTP_WORKERS="6")
    printed = run("--config", str(path), "--print-config", env=env).stdout
    assert '"workers": 6' in printed and '"max_inflight": 77' in printed


def test_no_home_no_locale_no_path(bench):
    """Started as an init system does, with an empty environment, from another directory."""
    it = bench.dedupd(start=False)
    it.spawn(it.argv(), {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    wait_until(it.is_ready, 30)
    assert it.unseen("u1", ["é"]) == ["é"]


def test_a_cap_that_nobody_set_gives_way(bench):
    """An fpr or a window that leaves no room for the default cap: the start says what it took."""
    it = bench.dedupd(settings={"scenes.h.period": "week", "scenes.h.window": "12"})
    assert "scene.cap_lowered scene=h cap=178956 default=200000" in it.log()
    assert it.log().count("cap_lowered") == 1
