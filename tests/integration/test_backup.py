"""Backups taken while the server works, restored, verified; damage that verification finds."""
import glob
import os
import subprocess
import threading

import pytest

from dd import rocks
from dd.client import Client
from dd.ctl import DEDUPCTL, ctl, ctl_json, url


class Load:
    """Threads that expose items and remember what was acknowledged, in order."""

    def __init__(self, it, threads=3):
        self.it, self.lock, self.end = it, threading.Lock(), threading.Event()
        self.acknowledged = []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]

    def run(self, name):
        client = Client("%s:%d" % (self.it.http.host, self.it.http.port))
        for i in range(10**6):
            if self.end.is_set():
                return
            user, item = "u%d" % (i % 20), "item-%d-%d" % (name, i)
            try:
                answer = client.post("/exposed", {"user": user, "items": [item]})
            except OSError:
                return  # killed
            if answer.status == 200 and answer.json["accepted"] == 1:
                with self.lock:
                    self.acknowledged.append((user, item))

    def so_far(self):
        with self.lock:
            return list(self.acknowledged)

    def wait(self, n):
        while len(self.so_far()) < n:
            self.end.wait(0.005)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exception):
        self.end.set()
        for t in self.threads:
            t.join()


def missing(it, exposures, history="full"):
    """Of the exposures, those that would be offered again; every answer says that its history is so."""
    by_user = {}
    for user, item in exposures:
        by_user.setdefault(user, []).append(item)
    lost = []
    for user, items in by_user.items():
        for at in range(0, len(items), 1000):
            answer = it.filter(user, items[at:at + 1000])
            assert answer["history"] == history, answer
            lost += [(user, i) for i in answer["items"]]
    return lost


def staging(bench, redis, name="dedupd", **kw):
    it = bench.dedupd(name, redis=redis, settings={"wheel.tick_s": "1"}, **kw)
    return it.wait_staging()


def test_under_write_load(bench):
    redis = bench.redis()
    it = staging(bench, redis)
    backup, back = os.path.join(it.directory, "backup"), os.path.join(it.directory, "restored")
    with Load(it) as load:
        load.wait(300)
        before = load.so_far()
        report = ctl_json(it, "backup", backup)
        after = len(load.so_far())
        load.wait(after + 200)
    assert report["flushed"] is True and report["pending"]["items"] <= after - len(before) + 100
    it.kill9()
    everything = load.so_far()

    assert "sets" in ctl(None, "verify", "--data-dir", backup)
    assert "Start dedupd" in ctl(None, "restore", backup, back)

    # With an empty Redis: everything acknowledged before the backup, but for what was reported as pending.
    empty = bench.redis("empty")
    alone = bench.dedupd("alone", redis=empty, data_dir=back)
    # That something staged may be missing is noticed and said.
    said = "partial" if report["pending"]["users"] else "full"
    assert missing(alone, before, said) == []
    lost = len(missing(alone, everything, said))
    assert 0 < lost <= len(everything) - len(before)
    alone.stop()

    # With the old Redis: everything, since nothing was flushed after the backup.
    both = os.path.join(it.directory, "both")
    ctl(None, "restore", backup, both)
    redis.command("DEL", "dd:n")  # instead of waiting until the killed process counts as dead
    old = staging(bench, redis, "old", data_dir=both)
    assert missing(old, everything) == []
    old.flush(everything=True)
    assert missing(old, everything) == []


def restored(bench, it, backup, name, **kw):
    to = os.path.join(it.directory, name)
    ctl(None, "restore", backup, to)
    return bench.dedupd(name, data_dir=to, **kw)


def test_nothing_pending_is_nothing_lost(bench):
    """A backup that holds everything: restored without its Redis, or on another, nothing counts as missing."""
    it = staging(bench, bench.redis())
    it.exposed("u1", ["a"])
    backup = os.path.join(it.directory, "backup")
    assert ctl_json(it, "backup", backup)["pending"] == {"users": 0, "items": 0}
    it.exposed("u1", ["later"])
    it.kill9()
    alone = restored(bench, it, backup, "alone")
    assert alone.unseen("u1", ["a", "b"]) == ["b"]
    assert alone.health()["status"] == "ok" and "staged.unseen" not in alone.log()
    fresh = restored(bench, it, backup, "fresh", redis=bench.redis("empty"), settings={"wheel.tick_s": "1"}).wait_staging()
    assert fresh.unseen("u1", ["a", "b"]) == ["b"]
    assert fresh.health()["status"] == "ok", fresh.health()
    # The note was for the first start: what is staged from now on is not forgotten.
    fresh.exposed("u2", ["c"])
    fresh.kill9()
    del fresh.settings["redis.url"]
    fresh.redis = None
    fresh.start()
    assert fresh.filter("u2", ["c"])["history"] == "partial" and "staged.unseen" in fresh.log()


def test_what_is_pending_is_claimed(bench):
    """The wheel cannot empty one user: the backup's mark stays."""
    redis = bench.redis()
    it = staging(bench, redis)
    it.exposed("u1", ["a"])
    [key] = redis.command("KEYS", "dd:{default/u1}:p:*")
    redis.command("DEL", key)
    redis.command("SET", key, "x")
    backup = os.path.join(it.directory, "backup")
    assert ctl_json(it, "backup", backup, status=1)["flushed"] is False
    it.kill9()
    alone = restored(bench, it, backup, "alone")
    assert alone.filter("u1", ["b"])["history"] == "partial" and "staged.unseen" in alone.log()
    # Nor does a backup of a store that cannot see that Redis forget it.
    ctl(alone, "backup", backup + "2")
    assert restored(bench, it, backup + "2", "again").filter("u1", ["b"])["history"] == "partial"


def test_what_cannot_be_flushed_is_reported(bench):
    """A user's pending is of another type: the wheel leaves him, and the backup says what is still staged."""
    redis = bench.redis()
    it = staging(bench, redis)
    it.exposed("u1", ["a", "b"])
    it.exposed("u2", ["a"])
    [key] = redis.command("KEYS", "dd:{default/u2}:p:*")
    redis.command("DEL", key)
    redis.command("SET", key, "x")
    path = os.path.join(it.directory, "backup")
    report = ctl_json(it, "backup", path, status=1)
    assert report["flushed"] is False and report["pending"] == {"users": 0, "items": 0}
    redis.kill9()
    report = ctl_json(it, "backup", path + "2", status=1)
    assert report["flushed"] is False and report["pending"] is None


def test_embedded(bench):
    it = bench.dedupd()
    it.exposed("u1", ["a"])
    path = os.path.join(it.directory, "backup")
    assert ctl_json(it, "backup", path)["pending"] == {"users": 0, "items": 0}
    it.exposed("u1", ["later"])
    ctl(it, "backup", path, status=1)
    ctl(it, "backup", "/proc/none/backup", status=1)
    ctl(it, "backup", status=2)
    assert it.admin.post("/admin/checkpoint", {"path": "relative"}).error["field"] == "path"
    assert it.admin.post("/admin/checkpoint", {"dir": "/x"}).error["code"] == "unknown_field"
    assert it.unseen("u1", ["a", "later", "b"]) == ["b"]
    back = os.path.join(it.directory, "restored")
    ctl(it, "restore", it.data_dir, back, status=1)
    ctl(it, "restore", path, it.data_dir, status=1)
    ctl(it, "restore", it.directory, back, status=1)
    ctl(it, "restore", path, back)
    two = bench.dedupd("two", data_dir=back)
    assert two.unseen("u1", ["a", "later"]) == ["later"]
    two.exposed("u1", ["two"])
    assert it.unseen("u1", ["a", "later", "two"]) == ["two"], "the original is untouched"
    two.stop()
    ctl(None, "restore", back, back + "-copy")
    assert bench.dedupd("three", data_dir=back + "-copy").unseen("u1", ["two", "x"]) == ["x"]


def test_where_no_backup_can_be(bench):
    """Inside the database's directory, by whatever name: refused, and nothing is made. No parent: the log says why."""
    it = bench.dedupd()
    it.exposed("u1", ["a"])
    os.symlink(it.data_dir + "/db", it.directory + "/link")
    for place in (it.data_dir + "/db/x", it.data_dir + "/db/x/", it.data_dir + "/change.table", it.data_dir + "/history.lineage/",
                  it.data_dir + "/deliveries.saved", it.data_dir + "/nothing.staged", it.directory + "/link/x", it.data_dir + "/../link/x"):
        answer = it.admin.post("/admin/checkpoint", {"path": place})
        assert answer.status == 400 and answer.error["field"] == "path", (place, answer)
        assert "store's own files" in answer.error["message"], answer
    assert not os.path.exists(it.data_dir + "/db/x")
    refused = subprocess.run([DEDUPCTL, "--admin", url(it.admin), "backup", it.directory + "/none/x"], timeout=60,
                             capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "the log says more" in refused.stderr, refused
    assert 'path="%s/none/x" error="No such file or directory"' % it.directory in it.log()
    ctl(it, "backup", it.data_dir + "/backup")  # beside the database is a place like any other
    assert os.path.exists(it.data_dir + "/backup/db/CURRENT")


def owners(directory):
    """The (user, group) pairs of a directory and all that is in it."""
    paths = [directory] + [os.path.join(d, n) for d, ds, fs in os.walk(directory) for n in ds + fs]
    return {(os.stat(p).st_uid, os.stat(p).st_gid) for p in paths}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_what_root_restores_belongs_to_dedupd(bench):
    it = bench.dedupd()
    it.exposed("u1", ["a"])
    backup, back = os.path.join(it.directory, "backup"), os.path.join(it.directory, "restored")
    ctl(it, "backup", backup)
    for d, ds, fs in os.walk(backup):
        for name in [""] + fs:
            os.chown(os.path.join(d, name), 990, 991)
    ctl(None, "restore", backup, back)
    assert owners(back) == {(990, 991)}
    assert owners(backup) == {(990, 991)}
    # A directory that is there keeps its owner, and the backup its own.
    there = os.path.join(it.directory, "there")
    os.mkdir(there)
    os.chown(there, 992, 993)
    assert ctl_json(None, "restore", backup, there)["linked"] == 0
    assert owners(there) == {(992, 993)} and owners(backup) == {(990, 991)}
    assert bench.dedupd("two", data_dir=back).unseen("u1", ["a", "b"]) == ["b"]


def test_a_restored_store_is_a_new_incarnation(bench):
    """Cached sets of the time after the backup hold what the restored store never saw: they are not believed."""
    redis = bench.redis()
    direct = {"ingest.mode": "direct"}
    it = bench.dedupd(redis=redis, settings=direct)
    it.exposed("u1", ["a"])
    path, back = os.path.join(it.directory, "backup"), os.path.join(it.directory, "restored")
    ctl(it, "backup", path)
    it.exposed("u1", ["later"])
    assert it.unseen("u1", ["a", "later", "b"]) == ["b"]
    it.stop()
    ctl(None, "restore", path, back)
    two = bench.dedupd("two", redis=redis, data_dir=back, settings=direct)
    assert two.unseen("u1", ["a", "later", "b"]) == ["later", "b"]
    two.stop()
    # A stopped data directory may be the source too; what its clean stop saved is left behind.
    assert glob.glob(it.data_dir + "/change.table")
    third = os.path.join(it.directory, "third")
    ctl(None, "restore", it.data_dir, third)
    assert os.listdir(third) == ["db"]


# ---- verification

@pytest.fixture
def filled(bench):
    it = bench.dedupd()
    for i in range(50):
        it.exposed("u%d" % i, ["i%d" % k for k in range(400 if i % 10 == 0 else 5)])
    return it


def db(it):
    return os.path.join(it.data_dir, "db")


def flip_a_blob(it, user):
    """Puts the user's own set back with one bit flipped, in a whole block of a whole file."""
    export = it.admin.request("GET", "/users/%s/filter" % user, headers={"Accept": "application/octet-stream"})
    year, month = map(int, export.headers["Dedupd-Period"].split("-"))
    blob = bytearray(export.body)
    blob[len(blob) // 2] ^= 4
    it.stop()
    rocks.put(db(it), [(rocks.key_of(rocks.month_ordinal(year, month), "default", user), bytes(blob))])


def test_sound(filled):
    report = ctl_json(filled, "verify")
    assert (report["sets"], report["corrupt"], report["unreadable"], report["result"]) == (50, 0, 0, "ok")
    assert filled.admin.get("/admin/verify").json["sets"] == 50
    ctl(None, "verify", "--data-dir", filled.data_dir, status=1)  # in use
    filled.stop()
    assert ctl(None, "verify", "--data-dir", filled.data_dir).startswith("50 sets")
    filled.start()
    assert filled.admin.get("/admin/verify").status == 404


def test_a_flipped_blob_is_found(filled):
    flip_a_blob(filled, "u7")
    text = ctl(None, "verify", "--data-dir", filled.data_dir, status=1)
    assert "1 corrupt" in text and "user u7, scene default" in text
    filled.start()
    report = ctl_json(filled, "verify", status=1)
    assert report["sets"] == 50 and report["corrupt"] == 1 and report["quarantined"] == 0
    assert report["bad"][0]["user"] == "u7" and report["bad"][0]["scene"] == "default"
    report = ctl_json(filled, "verify", "--quarantine", status=1)
    assert report["quarantined"] == 1
    report = ctl_json(filled, "verify")
    assert report["corrupt"] == 0 and report["damaged"] == 1
    assert filled.filter("u7", ["x"])["history"] == "partial"
    assert filled.unseen("u8", ["i1", "x"]) == ["x"]


def test_quarantine_of_a_directory(filled):
    flip_a_blob(filled, "u7")
    ctl(None, "verify", "--data-dir", filled.data_dir, "--quarantine", status=1)
    assert "0 corrupt, 1 damaged" in ctl(None, "verify", "--data-dir", filled.data_dir)


def test_damaged_table_files_are_found(filled):
    filled.stop()
    files = sorted(glob.glob(db(filled) + "/*.sst"), key=os.path.getsize)
    assert files
    with open(files[-1], "r+b") as f:
        f.seek(100)
        byte = f.read(1)
        f.seek(100)
        f.write(bytes([byte[0] ^ 0x10]))
    report = ctl_json(None, "verify", "--data-dir", filled.data_dir, status=1)
    assert report["unreadable"] >= 1 and report["result"] == "ok"
    filled.start()
    assert ctl_json(filled, "verify", status=1)["unreadable"] >= 1
    assert filled.http.get("/health/live").status == 200
    filled.exposed("new", ["a"])
    assert filled.admin.request("DELETE", "/users/new").json["removed"]["sets"] == 1


def test_nothing_is_made_by_looking(bench, tmp_path):
    ctl(None, "verify", "--data-dir", tmp_path, status=1)
    assert os.listdir(tmp_path) == []
    assert "usage:" in ctl(None, "verify", "--help")
    ctl(None, "verify", "--data-dir", status=2)


def test_one_verification_at_a_time(filled):
    answers = [filled.admin.post("/admin/verify", {}) for _ in range(5)]
    assert answers[0].status == 202
    assert {a.status for a in answers} <= {202, 409}
    assert filled.admin.post("/admin/verify", {"quarantine": 1}).error["field"] == "quarantine"
