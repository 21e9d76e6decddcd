"""Kills processes under load and counts what is missing afterwards. `make crash` runs it.

  lanes.py [LANE...]         all lanes, two at a time, or those named
  ROUNDS=n                   kills a lane (20)
  CRASH_SEED=n               repeats a run's choices; the seed of each lane is printed

A lane has its own dedupd and Redis, clients that expose and ask without pause, and an oracle of what was acknowledged,
which is in this process and outlives all of them. Each round kills after a random number of acknowledgements, starts
again what was killed and asks /filter for everything that was ever acknowledged. At the end of a lane everything is
moved to the store and asked for again, and once more after a clean restart. Prints rounds, acknowledged and missing of
each lane; as the last line "N passed, N failed".
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from dd.dedupd import Dedupd  # noqa: E402
from dd.load import Load  # noqa: E402
from dd.redisd import Redis  # noqa: E402
from dd.wait import PATIENCE, wait_until  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "20"))
TRIES_A_ROUND = 5
AT_ONCE = 2
LANE_S = 600

# Slots of a second: there is always something that the wheel moves while processes die.
STAGED = {"ingest.slot_s": "1", "ingest.grace_s": "0", "wheel.tick_s": "1"}
# Nothing is sealed until it is asked for; then a few users a commit, so that a flush has many steps.
SLOW_FLUSH = {"ingest.slot_s": "86400", "wheel.tick_s": "1", "wheel.batch_users": "4", "wheel.rate_users_s": "400"}


class Lane:
    settings = STAGED
    users_each = 10
    with_redis = True

    def __init__(self, directory, seed):
        self.rng = random.Random(seed)
        self.redis = Redis(directory) if self.with_redis else None
        self.it = Dedupd(directory, redis=self.redis, settings=dict(self.settings, **{"log.level": "info"}))
        self.load = Load(self.it, users_each=self.users_each, seed=seed)
        self.rounds = 0

    def run(self):
        if self.redis:
            self.redis.start()
        self.it.start()
        if self.redis:
            self.it.wait_staging()
        self.load.start()
        self.load.more(10)
        tries = 0
        while self.rounds < ROUNDS and not self.load.violations:
            tries += 1
            assert tries <= ROUNDS * TRIES_A_ROUND, "%d rounds in %d tries" % (self.rounds, tries - 1)
            if self.round():
                self.rounds += 1
            missing = self.load.missing()
            if missing:
                return missing
        self.load.stop()
        return self.finish()

    def finish(self):
        missing = self.load.missing()
        if self.redis and not missing:
            wait_until(lambda: self.it.flush(everything=True), 60, "everything is flushed")
            missing = self.load.missing()
        if not missing:
            self.it.restart()
            missing = self.load.missing()
        self.it.stop()
        return missing

    def end(self):
        self.load.stop_.set()
        for p in (self.it, self.redis):
            if p:
                p.kill9()
        self.load.stop()

    def round(self):
        """Kills and starts again; whether it counts."""
        self.load.more(self.rng.randrange(5, 120))
        self.kill(self.victims())
        return True

    def kill(self, victims):
        for p in victims:
            p.kill9()
        for p in sorted(victims, key=lambda p: isinstance(p, Dedupd)) if self.rng.random() < .7 else victims:
            p.start()

    def both(self):
        pair = [self.it, self.redis]
        self.rng.shuffle(pair)
        return pair


class DedupdLane(Lane):
    """kill -9 of dedupd"""

    def victims(self):
        return [self.it]


class RedisLane(Lane):
    """kill -9 of Redis; dedupd goes on meanwhile"""

    def victims(self):
        return [self.redis]

    def kill(self, victims):
        self.redis.kill9()
        if self.rng.random() < .5:
            self.load.more(self.rng.randrange(1, 40))  # direct writes during the outage
        self.redis.start()
        wait_until(self.it.redis_up, 20, "dedupd is connected")


class BothLane(Lane):
    """kill -9 of both, one right after the other"""

    def victims(self):
        return self.both()


class FlushLane(Lane):
    """kill -9 of one or both in the middle of a flush; a round counts only if the flush was under way"""
    settings = SLOW_FLUSH
    users_each = 30

    def round(self):
        self.load.more(self.rng.randrange(60, 160))
        flush = Flush(self.it)
        target = flush.pages() + self.rng.randrange(0, 20)
        flush.start()
        wait_until(lambda: flush.ended or flush.pages() >= target, 20, "some of the flush is done")
        victims = self.rng.choice([[self.it], [self.redis], self.both()])
        for p in victims:
            p.kill9()
        flush.thread.join(60 * PATIENCE)
        assert not flush.thread.is_alive(), "a flush neither ends nor fails"
        self.kill(victims)
        return flush.answer is None or flush.answer.status != 200


class Flush:
    """A flush of everything, asked for in a thread of its own."""

    def __init__(self, it):
        self.it = it
        self.answer = None
        self.ended = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        self.thread.start()

    def run(self):
        try:
            self.answer = self.it.admin.post("/admin/flush", {"all": True})
        except OSError:
            pass
        self.ended = True

    def pages(self):
        return self.it.metrics()["dedupd_wheel_pages_total"]


class EmbeddedLane(Lane):
    """kill -9 of dedupd without a Redis"""
    settings = {}
    with_redis = False

    def victims(self):
        return [self.it]


LANES = {"dedupd": DedupdLane, "redis": RedisLane, "both": BothLane, "flush": FlushLane, "embedded": EmbeddedLane}


def run_lane(name, seed):
    directory = tempfile.mkdtemp(prefix="dedupd-crash-")
    lane = LANES[name](directory, seed)
    began = time.monotonic()
    try:
        missing = lane.run()
        print("%-9s rounds %3d  acknowledged %7d  missing %d  (seed %d, %.0f s)"
              % (name, lane.rounds, lane.load.items, len(missing), seed, time.monotonic() - began))
        for user, item in missing[:5]:
            print("    missing: user %s item %s" % (user, item))
        good = not missing and lane.rounds >= ROUNDS
        if not good:
            print(lane.it.log_tail(20))
        return good
    finally:
        lane.end()
        shutil.rmtree(directory, ignore_errors=True)


def run_lanes(names, seed):
    """Each in a process of its own; how many failed. None outlives this."""
    waiting, running, failed = list(names), [], 0
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", waiting.pop(0),
                                                 str(seed)]))
            ended = wait_until(lambda: [p for p in running if p.poll() is not None], LANE_S, "a lane ends")
            failed += sum(p.returncode != 0 for p in ended)
            running = [p for p in running if p not in ended]
    except AssertionError as e:
        print(e)
        failed += len(waiting) + len(running)
    finally:
        end(running)
    return failed


def end(children):
    """By SIGTERM, upon which a lane ends its own processes and removes its directory; else by SIGKILL."""
    for p in children:
        p.terminate()
    for p in children:
        try:
            p.wait(20 * PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended on the way out
    if sys.argv[1:2] == ["--one"]:
        return 0 if run_lane(sys.argv[2], int(sys.argv[3])) else 1
    names = sys.argv[1:] or list(LANES)
    seed = int(os.environ.get("CRASH_SEED", random.randrange(1000000)))
    failed = run_lanes(names, seed)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
