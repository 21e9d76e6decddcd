#!/usr/bin/python3
"""`make bench`: what a request costs, beside nginx's static reply to the same requests in the same run.

Every row is measured three times, the rows taking turns, first at capacity (32 connections, each sends when it has its
answer), then at half of that as an open load. Figures are medians of the three. CPU is user and system time of all
server processes, Redis included, per answered request at capacity. tests/bench/README.md explains the rows.

usage: bench.py [--seconds S] [--users N] [--items N] [--rounds N] [--json FILE] [--only TEXT]
Exit status 1 when any answer was wrong or missing; a target that is missed is printed and is not an error.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import machines as m
from machines import Dedupd, Nginx, Redis, address, load


class Row:
    def __init__(self, name, processes, shape, n=100, base=None, advance=False, order="zipf", window=(0, 1), cold=False,
                 **options):
        self.name, self.processes, self.shape, self.n, self.base = name, processes, shape, n, base
        self.server = processes[0]
        self.options = dict(options, order=order)
        self.window = window  # the part of all users that it asks for
        self.advance = advance  # every request another user, over all its runs
        self.cold = cold  # the tables leave the page cache before each round
        self.next = 0
        self.capacity, self.half, self.rounds = [], [], 0

    def run(self, users, seconds, rate=None):
        low, high = (int(users * part) for part in self.window)
        before = m.cpu_ns(self.processes)
        reads = m.disk(self.server)
        got = load(address(self.server), self.shape, n=self.n, seconds=seconds, rate=rate, seed=self.rounds * 2 + 1,
                   users=high - low, base=low, first=self.next, **self.options)
        self.next += got["requests"] if self.advance else 0
        self.rounds += 1
        answered = max(got["requests"], 1)
        got["cpu_us"] = (m.cpu_ns(self.processes) - before) / 1000 / answered
        now = m.disk(self.server)
        got["read_calls"], got["disk_bytes"] = ((b - a) / answered for a, b in zip(reads, now))
        return got

    def measure(self, users, seconds):
        if self.cold:
            m.forget_pages(self.server.data_dir)
        if not self.advance:
            self.run(users, .3)  # the rows before it left other users in the caches
        self.capacity.append(self.run(users, seconds))
        self.half.append(self.run(users, seconds, rate=statistics.median(r["per_s"] for r in self.capacity) / 2))

    def result(self):
        def mid(rows, field):
            return statistics.median(r[field] for r in rows)

        bad = sum(r["wrong"] + r["broken"] + r["missing"] for r in self.capacity + self.half)
        return {"name": self.name, "cpu_us": mid(self.capacity, "cpu_us"), "per_s": mid(self.capacity, "per_s"),
                "half_cpu_us": mid(self.half, "cpu_us"), "p50_us": mid(self.half, "p50_us"),
                "p99_us": mid(self.half, "p99_us"), "p999_us": mid(self.half, "p999_us"),
                "partial": sum(r["partial"] for r in self.capacity + self.half), "bad": bad,
                "read_calls": mid(self.half, "read_calls"), "disk_bytes": mid(self.half, "disk_bytes"),
                "ratio": mid(self.capacity, "cpu_us") / mid(self.base.capacity, "cpu_us") if self.base else None}


HOT, TOUCHED, COLD = (0, .1), (.1, .2), (.2, 1)  # parts of the users: asked often, written to, asked once


class Bench:
    def __init__(self, args, directory):
        self.args, self.dir, self.started, self.extra = args, directory, [], {}

    def begin(self, process):
        self.started.append(process)
        process.start()
        return process

    def end(self):
        for p in self.started:
            p.kill9()

    def dedupd(self, name, redis=None, **settings):
        data = os.path.join(self.dir, name + "-data")
        if not os.path.exists(data):
            m.clone(os.path.join(self.dir, "data"), data)
        return Dedupd(self.dir, name, redis=redis, data_dir=data, settings=dict(m.SETTINGS, **settings))

    # ---- before the rows

    def prepare(self):
        seconds, sets, blobs, files = m.bulk_load(os.path.join(self.dir, "data"), self.args.users, self.args.items)
        say("%d sets of %d items by dedupctl load in %.0f s: %.0f bytes each, %.0f on disk" % (
            sets, self.args.items, seconds, blobs / sets, files / sets))
        self.extra.update(load_s=seconds, sets=sets, blob_bytes=blobs / sets, disk_bytes_per_set=files / sets)
        self.nginx = self.begin(Nginx(self.dir))
        self.plain = self.begin(Redis(self.dir, "plain", options={"appendonly": "no", "maxmemory": "1gb"}))
        self.redis = self.begin(Redis(self.dir, "redis", options={"maxmemory": "1gb"}))
        self.embedded = self.begin_timed("embedded")
        self.hot = self.begin(self.dedupd("hot", self.redis))
        self.small = self.begin(self.dedupd("small", **{"store.block_cache_bytes": str(max(files // 4, 1 << 20))}))
        self.hot.wait_staging()
        self.hot.wait_full()
        self.fill_plain()

    def begin_timed(self, name):
        server = self.dedupd(name)
        begun = time.monotonic()
        self.begin(server)
        self.extra["cold_start_ms"] = (time.monotonic() - begun) * 1000
        self.extra["rest_mb"] = server.rss_bytes() / 1e6
        return server

    def fill_plain(self):
        """100 users: a string of a set's size, a ZSet and a Set of 3,000 items each."""
        with self.plain.client() as c:
            for u in range(100):
                items = ["item-%019d" % (i * 33) for i in range(3000)]
                p = c.pipeline()
                p.set("s:%09d" % u, b"x" * 2000)
                p.zadd("z:%09d" % u, {item: 1 for item in items})
                p.sadd("m:%09d" % u, *items)
                p.execute()

    def warm(self):
        """The sets of users that are asked often or written to into the caches."""
        many = max(int(self.args.users * TOUCHED[1]), 1)
        with self.redis.client() as c:
            before = c.info("memory")["used_memory"]
            load(address(self.hot), "filter", n=10, users=many, order="each", requests=many)
            self.extra["cached_user_bytes"] = (c.info("memory")["used_memory"] - before) / many
        for users in (self.args.users, many):
            load(address(self.embedded), "filter", n=10, users=users, order="each", requests=users)
        self.extra["warm_mb"] = self.embedded.rss_bytes() / 1e6

    def rows(self):
        base = {n: Row("nginx static POST of %d" % n, [self.nginx], "filter", n) for n in (1, 10, 100, 1000, 5000)}
        yield Row("nginx static GET", [self.nginx], "get")
        yield from base.values()
        for shape, name in (("rget", "redis GET of 2 KB"), ("zmscore", "redis ZMSCORE 100 of 3,000"),
                            ("smismember", "redis SMISMEMBER 100 of 3,000")):
            row = Row(name, [self.plain], shape, base=base[100])
            row.window = (0, 100 / self.args.users)
            yield row
        embedded, hot = [self.embedded], [self.hot, self.redis]
        for n in (10, 100, 1000, 5000):
            yield Row("/filter %d, embedded" % n, embedded, "filter", n, base[n], window=HOT)
        yield Row("/filter 100, embedded, all users", embedded, "filter", 100, base[100])
        for n in (10, 100, 1000, 5000):
            yield Row("/filter %d, Redis, hot" % n, hot, "filter", n, base[n], window=HOT)
        walk = {"order": "each", "advance": True}
        yield Row("/filter 100, Redis, misses", hot, "filter", 100, base[100], window=COLD, **walk)
        for processes, name in ((embedded, "embedded"), (hot, "Redis")):
            yield Row("/filter 100, claim 10, " + name, processes, "filter", 100, base[100], window=TOUCHED, claim=True,
                      **walk)
        for processes, name in ((embedded, "direct"), (hot, "staged")):
            for n in (1, 10):
                yield Row("/exposed %d, %s" % (n, name), processes, "exposed", n, base[n], window=TOUCHED, **walk)
        yield Row("/filter 100, cold, cache a quarter", [self.small], "filter", 100, base[100], cold=True, **walk)

    # ---- after the rows

    def wheel(self):
        """Users with 20 pending items each, emptied into the store."""
        with self.redis.client() as c:
            self.hot.flush(everything=True)
            many = max(min(self.args.users // 5, 20000), 1)
            low = int(self.args.users * TOUCHED[0])
            before = c.info("memory")["used_memory"]
            load(address(self.hot), "exposed", n=20, users=many, base=low, order="each", requests=many)
            self.extra["pending_user_bytes"] = (c.info("memory")["used_memory"] - before) / many
        cpu, begun = m.cpu_ns([self.hot, self.redis]), time.monotonic()
        cpu_dedupd = m.cpu_ns([self.hot])
        done = self.hot.flush(everything=True)
        seconds = time.monotonic() - begun
        used = m.cpu_ns([self.hot, self.redis]) - cpu
        self.extra.update(wheel_users=done["users"], wheel_users_per_s=done["users"] / seconds,
                          wheel_cpu_us=used / 1000 / max(done["users"], 1),
                          wheel_dedupd_cpu_us=(m.cpu_ns([self.hot]) - cpu_dedupd) / 1000 / max(done["users"], 1))

    def connections(self, many=900):
        """Resident bytes for each idle connection that has asked once."""
        server = self.begin(Dedupd(self.dir, "fresh", settings=m.SETTINGS))
        before, idle = server.rss_bytes(), []
        for _ in range(many):
            s = socket.create_connection((server.http.host, server.http.port))
            s.sendall(b"GET /health/live HTTP/1.1\r\nHost: bench\r\n\r\n")
            s.recv(4096)
            idle.append(s)
        self.extra["connection_bytes"] = (server.rss_bytes() - before) / many
        for s in idle:
            s.close()


    def two_loops(self, cores=4):
        """Requests a second of two worker loops, times those of one. The load needs as many cores again."""
        if os.cpu_count() < cores:
            return
        per_s, users = [], int(self.args.users * HOT[1])
        for workers in (1, 2):
            server = self.begin(self.dedupd("loops%d" % workers, **{"http.workers": str(workers)}))
            load(address(server), "filter", n=10, users=users, order="each", requests=users)
            with ThreadPoolExecutor(2) as pool:
                got = pool.map(lambda seed: load(address(server), "filter", users=users, seconds=self.args.seconds, seed=seed), (1, 2))
                per_s.append(sum(g["per_s"] for g in got))
            server.kill9()
        self.extra["two_loops"] = per_s[1] / per_s[0]


def say(text):
    print(text, file=sys.stderr, flush=True)


def print_rows(rows):
    print("%-36s %8s %6s %8s %8s %8s %8s %8s" % ("", "CPU us", "ratio", "req/s", "p50 us", "p99 us", "p99.9", "CPU half"))
    for r in rows:
        notes = "".join([" %d partial" % r["partial"] if r["partial"] else "", " %d BAD" % r["bad"] if r["bad"] else ""])
        print("%-36s %8.1f %6s %8.0f %8.0f %8.0f %8.0f %8.1f%s" % (
            r["name"], r["cpu_us"], "%.2f" % r["ratio"] if r["ratio"] else "", r["per_s"], r["p50_us"], r["p99_us"],
            r["p999_us"], r["half_cpu_us"], notes))


def print_extra(x, rows):
    cold = next((r for r in rows if "cold" in r["name"]), None)
    lines = [("cold start, until ready", "%.0f ms", x.get("cold_start_ms")), ("memory at rest", "%.1f MB", x.get("rest_mb")),
             ("memory, every user's sets read once", "%.1f MB", x.get("warm_mb")),
             ("memory of an idle connection", "%.0f bytes", x.get("connection_bytes")),
             ("Redis, of a cached user (3 sets)", "%.0f bytes", x.get("cached_user_bytes")),
             ("Redis, of a user with 20 pending", "%.0f bytes", x.get("pending_user_bytes")),
             ("wheel", "%.0f users/s", x.get("wheel_users_per_s")), ("wheel, CPU of a user", "%.1f us", x.get("wheel_cpu_us")),
             ("wheel, of which dedupd", "%.1f us", x.get("wheel_dedupd_cpu_us")),
             ("cold: read calls of a request", "%.2f", cold and cold["read_calls"]),
             ("cold: bytes from the disk itself", "%.0f", cold and cold["disk_bytes"])]
    for name, form, value in lines:
        if value is not None:
            print("%-36s %s" % (name, form % value))


def targets(rows, x):
    """(what, figure, limit); a figure of None was not measured, a limit of None stands there to compare with."""
    by = {r["name"]: r for r in rows}

    def of(name, field):
        return by[name][field] if name in by else None

    def times(a, b, field="cpu_us"):
        return by[a][field] / by[b][field] if a in by and b in by else None

    def tail(name):
        return by[name]["p99_us"] / by[name]["p50_us"] if name in by else None

    yield "/filter 100 embedded, times nginx", of("/filter 100, embedded", "ratio"), 3.0
    yield "/filter 100 Redis hot, times nginx", of("/filter 100, Redis, hot", "ratio"), 5.5
    yield "1,000 candidates, times 100, embedded", times("/filter 1000, embedded", "/filter 100, embedded"), 3.0
    yield "1,000 candidates, times 100, Redis", times("/filter 1000, Redis, hot", "/filter 100, Redis, hot"), 3.0
    yield "/exposed 10 direct, times nginx", of("/exposed 10, direct", "ratio"), 3.0
    yield "/exposed 10 staged, times nginx", of("/exposed 10, staged", "ratio"), 3.5
    yield "wheel, us of a user with 20 items", x.get("wheel_cpu_us"), 15
    yield "p99 / p50 at half load, embedded", tail("/filter 100, embedded"), 4
    yield "p99 / p50 at half load, Redis hot", tail("/filter 100, Redis, hot"), 4
    yield "p99 / p50 at half load, nginx itself", tail("nginx static POST of 100"), None
    yield "one loop's rate / two loops' rate", 1 / x["two_loops"] if "two_loops" in x else None, 1 / 1.6
    yield "disk bytes of a set / its bytes", x.get("disk_bytes_per_set", 0) / x.get("blob_bytes", 1), 1.3
    yield "KB of an idle connection", x["connection_bytes"] / 1024 if "connection_bytes" in x else None, 8


def print_targets(found):
    for what, value, limit in found:
        if value is None:
            verdict = "        at most %-5.3g not measured" % limit
        elif limit is None:
            verdict = "%6.2f" % value
        else:
            verdict = "%6.2f, at most %-5.3g %s" % (value, limit, "met" if value <= limit else "MISSED")
        print("%-40s %s" % (what, verdict))


def run(b, args):
    say("loading %d users" % args.users)
    b.prepare()
    say("warming the caches")
    b.warm()
    rows = [r for r in b.rows() if not args.only or args.only in r.name or "nginx" in r.name]
    for r in rows:
        r.run(args.users, .3)
    for n in range(args.rounds):
        for i, r in enumerate(rows):
            if sys.stderr.isatty():
                print("\rround %d of %d, row %d of %d \033[K" % (n + 1, args.rounds, i + 1, len(rows)), end="", file=sys.stderr)
            r.measure(args.users, args.seconds)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    say("wheel and connections")
    b.wheel()
    b.connections()
    b.two_loops()
    return [r.result() for r in rows]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1.2, help="of each run; there are six for each row")
    p.add_argument("--users", type=int, default=int(os.environ.get("USERS", 100000)))
    p.add_argument("--items", type=int, default=1000, help="of each user in each of three months")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", help="rows whose name holds this, and nginx's")
    p.add_argument("--json", default="build/bench.json")
    args = p.parse_args()
    directory = tempfile.mkdtemp(prefix="dedupd-bench-")
    b = Bench(args, directory)
    here = m.machine()
    begun = time.monotonic()
    try:
        rows = run(b, args)
    finally:
        b.end()
        shutil.rmtree(directory, ignore_errors=True)
    print("%(cpu)s, %(cores)d cores, Linux %(kernel)s, %(date)s; load average at the start %(load_average).1f" % here)
    print("%d users, 3 months of %d items; %.0f s\n" % (args.users, args.items, time.monotonic() - begun))
    print_rows(rows)
    print()
    print_extra(b.extra, rows)
    print()
    found = list(targets(rows, b.extra))
    print_targets(found)
    with open(args.json, "w", encoding="utf-8") as f:
        json.dump({"machine": here, "users": args.users, "items": args.items, "rows": rows, "figures": b.extra,
                   "targets": [{"what": w, "value": v, "limit": t} for w, v, t in found]}, f, indent=2)
    return 1 if any(r["bad"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
