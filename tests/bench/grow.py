#!/usr/bin/python3
"""`make bench-grow`: how a /filter request's cost grows with users, items of a user, candidates and window; embedded.

Each data set is loaded by dedupctl load and then served. Requests choose among so many users by Zipf ("asked"): of all of
them, and for the lines that grow in users also of the same 10,000 whatever the size, who are hot then. 100 candidates
unless they vary. What is cold waits for files; what is hot must not care how many others there are, which is a target.
usage: grow.py [--users LIST] [--items LIST] [--candidates LIST] [--windows LIST] [--seconds S] [--json FILE]
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

import machines as m
from machines import Dedupd, address, load


HOT = 10000
HOT_LIMIT = 1.5  # times what it is with 100,000 users


def measure(users, items, months, asked, seconds):
    """A row for each (users asked, candidates) of asked."""
    directory = tempfile.mkdtemp(prefix="dedupd-grow-")
    try:
        data = os.path.join(directory, "data")
        load_s, sets, blobs, files = m.bulk_load(data, users, items, months, ("--window", str(months)))
        server = Dedupd(directory, data_dir=data, settings=dict(m.SETTINGS, **{"scenes.default.window": str(months)}))
        try:
            server.start()
            rows = [measure_one(server, n, candidates, seconds) for n, candidates in asked]
        finally:
            server.kill9()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    shared = {"users": users, "items": items, "months": months, "set_bytes": blobs / sets, "disk_mb": files / 1e6,
              "load_s": load_s}
    return [dict(shared, asked=n, candidates=c, **row) for (n, c), row in zip(asked, rows)]


def measure_one(server, users, candidates, seconds):
    where = address(server)
    # Into the cache: every user's sets while they may fit, then those that are asked most.
    load(where, "filter", users=min(users, 2 * HOT), n=10, order="each", requests=min(users, 2 * HOT))
    load(where, "filter", users=users, n=candidates, seconds=seconds)
    before = m.cpu_ns([server])
    full = load(where, "filter", users=users, n=candidates, seconds=seconds, seed=2)
    cpu = (m.cpu_ns([server]) - before) / 1000 / full["requests"]
    half = load(where, "filter", users=users, n=candidates, seconds=seconds, seed=3, rate=full["per_s"] / 2)
    return {"cpu_us": cpu, "per_s": full["per_s"], "p50_us": half["p50_us"], "p99_us": half["p99_us"],
            "rss_mb": server.rss_bytes() / 1e6, "wrong": full["wrong"] + half["wrong"]}


def plan(args):
    """(users, items, months, [(users asked, candidates)])"""
    for users in args.users:
        yield users, 100, 3, [(n, 100) for n in sorted({min(users, HOT), users})]
    for items in args.items:
        users = max(100, min(2000000 // items, 20000))
        yield users, items, 3, [(users, 100)]
    yield 5000, 1000, 3, [(5000, n) for n in args.candidates]
    for months in args.windows:
        yield 5000, 300, months, [(5000, 100)]


def print_target(rows):
    """Against the line of 100,000 users, of those that are hot."""
    hot = {r["users"]: r for r in rows if r["asked"] == HOT and r["items"] == 100 and r["months"] == 3}
    if 100000 not in hot or len(hot) < 2:
        return
    most = max(hot)
    for field in ("cpu_us", "p50_us", "p99_us"):
        times = hot[most][field] / hot[100000][field]
        print("%s of hot users among %d, times among 100,000: %.2f, at most %g %s" % (
            field, most, times, HOT_LIMIT, "met" if times <= HOT_LIMIT else "MISSED"))


def main():
    def numbers(text):
        return [int(x) for x in text.split(",") if x]

    p = argparse.ArgumentParser()
    p.add_argument("--users", type=numbers, default="10000,100000,1000000,3000000")
    p.add_argument("--items", type=numbers, default="10,100,1000,5000,20000")
    p.add_argument("--candidates", type=numbers, default="10,100,1000,5000")
    p.add_argument("--windows", type=numbers, default="1,3,6,12")
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--json", default="build/bench-grow.json")
    args = p.parse_args()
    print("%9s %9s %7s %7s %10s %9s %9s %8s %8s %8s %8s %8s" % ("users", "asked", "items", "months", "candidates", "CPU us", "req/s",
                                                            "p50 us", "p99 us", "bytes", "disk MB", "RSS MB"))
    rows = []
    for users, items, months, asked in plan(args):
        for row in measure(users, items, months, asked, args.seconds):
            rows.append(row)
            print("%(users)9d %(asked)9d %(items)7d %(months)7d %(candidates)10d %(cpu_us)9.1f %(per_s)9.0f %(p50_us)8.0f "
                  "%(p99_us)8.0f %(set_bytes)8.0f %(disk_mb)8.0f %(rss_mb)8.0f" % row, flush=True)
    print_target(rows)
    with open(args.json, "w", encoding="utf-8") as f:
        json.dump({"machine": m.machine(), "rows": rows}, f, indent=2)
    return 1 if any(r["wrong"] for r in rows) else 0


sys.exit(main())
