"""dedupctl load: what was loaded is seen by a server that starts on it; what cannot be loaded is said."""
import json
import os
import subprocess
import time

from dd.ctl import DEDUPCTL, ctl
from dd.dedupd import Dedupd

NOW = int(time.time() * 1000)
DAY = 86400000
SAME_CLOCK = {"clock.offset_s": "0"}  # dedupctl load has the system's. Windows of three months: one may turn meanwhile


def load(directory, *args, status=0, stdin=None):
    return json.loads(ctl(None, "load", "--data-dir", directory, "--json", *args, status=status, stdin=stdin))


def lines(*rows):
    return "".join("%s\t%s\t%d\n" % r for r in rows).encode()


def test_lines_are_seen(tmp_path):
    data = str(tmp_path / "data")
    rows = [("u%d" % (i % 50), "item %d" % i, NOW - (i % 3) * 10 * DAY) for i in range(20000)]
    done = load(data, "--file", "-", stdin=lines(*rows))
    assert (done["lines"], done["items"], done["wrong"]) == (20000, 20000 - done["outside"], 0), done
    it = Dedupd(tmp_path, data_dir=data, settings=SAME_CLOCK).start()
    try:
        for user in ("u0", "u7", "u49"):
            assert it.unseen(user, [item for u, item, ms in rows if u == user]) == []
            assert len(it.unseen(user, ["new %d" % i for i in range(1000)])) >= 990
    finally:
        it.stop()


def test_a_backfill_joins_what_is_there(tmp_path):
    it = Dedupd(tmp_path, settings=dict(SAME_CLOCK, **{"scenes.home.window": "3"})).start()
    try:
        it.exposed("u", ["served"], scene="home")
        ctl(None, "load", "--data-dir", it.data_dir, "--file", "-", stdin=b"", status=1)  # it runs
        it.stop()
        for _ in range(2):
            load(it.data_dir, "--scene", "home", "--file", "-", stdin=lines(("u", "old", NOW), ("u", "42", NOW)))
        it.start()
        assert it.unseen("u", ["served", "old", 42, "other"], scene="home") == ["other"]
        assert it.unseen("u", ["old"]) == ["old"], "another scene"
    finally:
        it.stop()


def test_lines_outside_the_window_and_wrong_lines_are_counted(tmp_path):
    data = str(tmp_path / "data")
    good = lines(("u", "a", NOW), ("u", "b", NOW - 400 * DAY), ("u", "c", NOW + DAY))
    done = load(data, "--file", "-", stdin=good)
    assert (done["lines"], done["items"], done["outside"], done["wrong"]) == (3, 1, 2, 0)
    bad = [b"u\ta\n", b"u\ta\tx\n", b"\ta\t%d\n" % NOW, b"u\t\t%d\n" % NOW, b"u\ta\t%d\n" % (NOW // 1000), b"\n",
           b"%s\ta\t%d\n" % (b"u" * 129, NOW), b"u\t%s\t%d\n" % (b"a" * 257, NOW), b"u\ta\0b\t%d\n" % NOW]
    done = load(data, "--file", "-", stdin=good + b"".join(bad), status=1)
    assert (done["wrong"], done["lines"], done["items"]) == (len(bad), 3 + len(bad), 1)


def test_made_up_users(tmp_path):
    data = str(tmp_path / "data")
    done = load(data, "--users", "300", "--months", "2", "--items", "400", "--catalogue", "100000", "--compact")
    assert (done["sets"], done["items"]) == (600, 240000)
    assert 600 * 700 < done["disk_bytes"] < 600 * 1400, done
    it = Dedupd(tmp_path, data_dir=data, settings=SAME_CLOCK).start()
    try:
        everything = ["item-%019d" % i for i in range(0, 100000)]
        for user in ("user-00000000", "user-00000299"):
            seen = sum(it.filter(user, everything[at:at + 10000])["filtered"] for at in range(0, 100000, 10000))
            assert 780 <= seen <= 800 + 200, seen  # two months; a rate of 0.001 at most
        assert it.unseen("user-00000300", everything[:10]) == everything[:10]
    finally:
        it.stop()


def test_what_is_left_out_is_as_the_server_has_it(tmp_path):
    """A set that was loaded is made like one that the same server makes of the same items."""
    items = ["item %d" % i for i in range(900)]
    it = Dedupd(tmp_path).start()
    try:
        it.exposed("served", items, scene="default")
        it.stop()
        load(it.data_dir, "--file", "-", stdin=lines(*[("loaded", item, NOW) for item in items]))
        load(it.data_dir, "--capacity", "256", "--file", "-", stdin=lines(*[("small", item, NOW) for item in items]))
        it.start()
        size = {u: it.admin.get("/users/%s" % u).json["scenes"][0]["periods"][0]["stored"]["bytes"]
                for u in ("served", "loaded", "small")}
        assert size["loaded"] == size["served"] != size["small"], size
    finally:
        it.stop()


def test_wrong_usage(tmp_path):
    data = str(tmp_path / "data")
    for args in ([], ["--file", "-", "--users", "3"], ["--users", "0"], ["--users", "x"], ["--period", "moon"],
                 ["--users", "3", "--filter", "counting"], ["--users", "3", "--fpr", "2"],
                 ["--users", "3", "--compression", "fast"]):
        ctl(None, "load", "--data-dir", data, *args, status=2)
    refused = subprocess.run([DEDUPCTL, "load", "--data-dir", data, "--users", "3", "--scene", "home", "--window", "99",
                              "--capacity", "5"], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2 and "dedupctl: scenes.home.window: 99 is out of range" in refused.stderr, refused
    assert "dedupctl: scenes.home.capacity: 5 is out of range" in refused.stderr, refused
    ctl(None, "load", "--users", "3", status=2)
    assert not os.path.exists(data)
    ctl(None, "load", "--data-dir", data, "--file", str(tmp_path / "absent"), status=1)
