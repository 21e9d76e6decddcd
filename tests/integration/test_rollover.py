"""The turn of a period, rehearsed with clock.offset_s: exposures of both sides land in their own months, what is pending
over the turn is seen and moved to its own month, and a month that has left the window leaves the disk."""
import calendar
import json
import os
import signal
import time

import pytest

from dd.wait import wait_until

DAY_S = 86400


def offset_to(year, month, day, hour=0, minute=0, second=0):
    """The option that makes it that time now."""
    return str(calendar.timegm((year, month, day, hour, minute, second)) - int(time.time()))


class Clock:
    """The clock of a dedupd, moved while it runs: from a file, for what is on the command line stays."""

    def __init__(self, it):
        self.it, self.offset_s = it, 0
        path, argv = os.path.join(it.directory, "clock.json"), it.argv
        it.settings["clock.offset_s"] = None
        it.argv = lambda: [*argv(), "--config", path]
        self.path = path

    def set(self, *when):
        self.offset_s = int(offset_to(*when))
        with open(self.path, "w", encoding="ascii") as f:
            json.dump({"clock": {"offset_s": self.offset_s}}, f)
        if self.it.running():
            before = self.it.log().count("config.reloaded")
            self.it.signal(signal.SIGHUP)
            wait_until(lambda: self.it.log().count("config.reloaded") > before, 20, "it is read again")

    def wait_for(self, at):
        wait_until(lambda: time.time() + self.offset_s >= at, 30, "the clock reaches %d" % at)


def reasons(it, user, candidates):
    answer = it.filter(user, candidates, explain=True)
    assert answer["history"] == "full", answer
    return {e["item"]: e["reason"] for e in answer["explain"]}


TURN = calendar.timegm((2031, 3, 1, 0, 0, 0))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["staged", "embedded"])
def test_both_sides_of_the_turn(bench, mode):
    """By a clock that ticks, under a server that runs and has what it needs of the old month in memory."""
    it = bench.dedupd(start=False, redis=None if mode == "embedded" else bench.redis(),
                      settings={"wheel.tick_s": "1", "ingest.grace_s": "3600"})
    clock = Clock(it)
    clock.set(2031, 2, 28, 23, 30)
    it.start()
    if mode == "staged":
        it.wait_staging()
    it.wait_full()
    it.exposed("u1", ["before", "both"])
    clock.set(2031, 2, 28, 23, 59, 58)
    assert it.unseen("u1", ["before", "x"]) == ["x"]
    clock.wait_for(TURN + 1)
    it.exposed("u1", ["after", "both"])
    asked = ["before", "after", "both", "x"]
    if mode == "staged":
        assert set(reasons(it, "u1", asked).values()) == {"pending"}
        assert it.unseen("u1", asked) == ["x"]
        assert it.flush(everything=True)["items"] == 4
        assert it.redis.command("KEYS", "dd:*:p:*") == []
    assert reasons(it, "u1", asked) == {"before": "2031-02", "after": "2031-03", "both": "2031-03"}
    assert it.unseen("u1", asked, window=1) == ["before", "x"], "each in its own month"
    it.restart()
    it.wait_full()
    assert it.unseen("u1", asked, window=1) == ["before", "x"]
    assert it.unseen("u1", asked) == ["x"]


def test_pending_of_the_old_month_is_seen_until_it_moves_to_the_old_month(bench):
    """The wheel stands still over the turn and well into the new month."""
    it = bench.dedupd(start=False, redis=bench.redis(), settings={"wheel.tick_s": "1", "wheel.paused": "true"})
    it.start({"clock.offset_s": offset_to(2031, 2, 28, 23, 0, 0)}).wait_staging()
    it.exposed("u1", ["old"])
    for end, when in ((it.restart, (2031, 3, 1, 0, 30)), (it.kill9, (2031, 3, 20)), (it.restart, (2031, 4, 30))):
        if end == it.kill9:
            it.kill9()
            it.start({"clock.offset_s": offset_to(*when)})
        else:
            it.restart({"clock.offset_s": offset_to(*when)})
        it.wait_staging()
        it.wait_full()
        assert reasons(it, "u1", ["old", "x"]) == {"old": "pending"}
        assert it.unseen("u1", ["old", "x"]) == ["x"]
    it.exposed("u1", ["new"])
    it.restart({"wheel.paused": "false"})  # the slot of February has ended long ago
    wait_until(lambda: reasons(it, "u1", ["old", "x"]) == {"old": "2031-02"}, 10, "it moved to its own month")
    assert it.flush(everything=True)["items"] == 1
    assert reasons(it, "u1", ["old", "new"]) == {"old": "2031-02", "new": "2031-04"}
    it.restart({"clock.offset_s": offset_to(2031, 5, 1, 1)})
    it.wait_full()
    assert it.unseen("u1", ["old", "new", "x"]) == ["old", "x"], "out of the window"


def test_event_times_of_both_months_in_one_batch(bench):
    it = bench.dedupd(start=False, redis=bench.redis(), settings={"wheel.tick_s": "1"})
    it.start({"clock.offset_s": offset_to(2031, 3, 1, 0, 10)}).wait_staging()
    answer = it.call("/exposed", {"events": [
        {"user": "u1", "items": ["a"], "ts": (TURN - 2) * 1000},
        {"user": "u1", "items": ["b"], "ts": (TURN + 2) * 1000},
        {"user": "u1", "items": ["c"], "ts": (TURN - 80 * DAY_S) * 1000},
        {"user": "u1", "items": ["d"], "ts": (TURN - 20 * DAY_S) * 1000},
    ]})
    assert answer == {"accepted": 3, "durability": "staged", "expired": 1}
    it.flush(everything=True)
    assert reasons(it, "u1", ["a", "b", "c", "d"]) == {"a": "2031-02", "b": "2031-03", "d": "2031-02"}


def bytes_on_disk(directory):
    total = 0
    for path, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.path.getsize(os.path.join(path, name))
            except FileNotFoundError:
                pass
    return total


USERS = ["u%d" % n for n in range(400)]
OLD = ["old-%d" % n for n in range(1500)]
NEW = ["new-%d" % n for n in range(50)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["staged", "embedded"])
def test_a_dropped_month_is_gone_from_disk(bench, mode):
    it = bench.dedupd(start=False, redis=None if mode == "embedded" else bench.redis(),
                      settings={"expiry.hold_s": "0", "wheel.tick_s": "1"})
    it.start({"clock.offset_s": offset_to(2031, 2, 10)})
    for user in USERS:
        it.exposed(user, OLD)
    if mode == "staged":
        it.wait_staging()
        it.flush(everything=True)
    it.restart({"clock.offset_s": offset_to(2031, 4, 10)})  # two months later: in the window
    for user in USERS:
        it.exposed(user, NEW)
    if mode == "staged":
        it.wait_staging()
        it.flush(everything=True)
    it.restart()
    it.wait_full()
    before = bytes_on_disk(it.data_dir)
    assert before > 1000000, before
    assert it.unseen("u7", ["old-3", "new-3", "x"]) == ["x"]
    assert it.exposed("u7", ["late"], ts=calendar.timegm((2031, 2, 20, 0, 0, 0)) * 1000)["accepted"] == 1
    it.restart({"clock.offset_s": offset_to(2031, 6, 10)})
    it.wait_full()
    wait_until(lambda: "expiry.dropped" in it.log(), 10, "it is dropped")
    wait_until(lambda: bytes_on_disk(it.data_dir) < before / 2, 20, "the disk has it back")
    print("%s: %d bytes with the month, %d without" % (mode, before, bytes_on_disk(it.data_dir)))
    late = it.exposed("u7", ["too-late"], ts=calendar.timegm((2031, 2, 20, 0, 0, 0)) * 1000)
    assert late["accepted"] == 0 and late["expired"] == 1
    assert it.metrics()["dedupd_dedup_expired_items_total"] == 1
    assert it.unseen("u7", ["old-3", "late", "too-late", "new-3", "x"]) == ["old-3", "late", "too-late", "x"]
    for user in USERS[::40]:
        assert it.unseen(user, [*NEW, "x"]) == ["x"], "the months that count are all there"
