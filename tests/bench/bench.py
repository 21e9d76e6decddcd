#!/usr/bin/python3
"""Throughput, latency and CPU per request of the shipped build, embedded and with Redis.

Starts its own processes, loads users with three months of history, runs wrk with the scripts beside this file, and
prints a row for each. CPU is user + system of all server processes (Redis included) from /proc, per answered request.
Exit status 1 if any answer was not 2xx. Figures of a machine that does other work meanwhile mean little.
usage: bench.py [--seconds N] [--users N] [--items N] [--json FILE]     (from the root of the tree, or `make bench`)
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from dd.dedupd import ROOT, Dedupd  # noqa: E402
from dd.redisd import Redis  # noqa: E402

SETTINGS = {"log.level": "info", "http.workers": None, "http.deadline_ms": None, "redis.timeout_ms": None,
            "store.block_cache_bytes": None, "store.write_buffer_bytes": None, "store.change_cells": None,
            "store.min_free_bytes": None}

# Name of the row, script, arguments after the number of users.
ROWS = [("/filter, 100 candidates", "filter.lua", ["100"]),
        ("/filter, 100 candidates, claim", "filter.lua", ["100", "claim"]),
        ("/exposed, 10 items", "exposed.lua", ["10"])]


def load(server, users, items):
    """Each user gets `items` exposures in each of the last three months, in batches of events."""
    rng = random.Random(1)
    now = int(time.time() * 1000)
    for month in range(3):
        for first in range(1, users + 1, 50):
            events = [{"user": "user-%08d" % u, "ts": now - month * 30 * 86400000,
                       "items": ["item-%019d" % rng.randrange(1000000) for _ in range(items)]}
                      for u in range(first, min(first + 50, users + 1))]
            for event in split(events, 10000):
                server.call("/exposed", {"events": event})


def split(events, most):
    """Groups of events with at most so many items together."""
    group, size = [], 0
    for e in events:
        if group and size + len(e["items"]) > most:
            yield group
            group, size = [], 0
        group.append(e)
        size += len(e["items"])
    yield group


def number(text, unit):
    return float(text) * {"us": 1, "ms": 1000, "s": 1000000}[unit]


def wrk(server, script, seconds, arguments):
    """Runs wrk; returns its figures."""
    command = ["wrk", "-t2", "-c32", "-d%ds" % seconds, "--latency", "-s", os.path.join(HERE, script),
               "http://%s:%d" % (server.http.host, server.http.port), "--", *arguments]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    percentiles = {p: number(v, u) for p, v, u in re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s)$", out, re.M)}
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: (.*)", out)
    return {"requests": requests, "per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
            "p50_us": percentiles["50"], "p99_us": percentiles["99"],
            "non_2xx": int(bad.group(1)) if bad else 0, "socket_errors": errors.group(1) if errors else ""}


def measure(processes, server, script, seconds, arguments):
    wrk(server, script, 1, arguments)  # caches warm, connections' buffers grown
    before = sum(p.cpu_seconds() for p in processes)
    row = wrk(server, script, seconds, arguments)
    row["cpu_us"] = (sum(p.cpu_seconds() for p in processes) - before) * 1e6 / max(row["requests"], 1)
    row["rss_mb"] = sum(p.rss_bytes() for p in processes) / 1e6
    return row


def run_mode(directory, mode, args):
    redis = Redis(directory, "redis-" + mode).start() if mode == "redis" else None
    server = Dedupd(directory, "dedupd-" + mode, redis=redis, settings=dict(SETTINGS))
    processes = [p for p in (server, redis) if p]
    try:
        server.start()
        load(server, args.users, args.items)
        for name, script, more in ROWS:
            row = measure(processes, server, script, args.seconds, [str(args.users), *more])
            yield dict(row, mode=mode, name=name)
        server.stop()
        if redis:
            redis.stop()
    finally:
        for p in processes:
            p.kill9()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--users", type=int, default=2000)
    p.add_argument("--items", type=int, default=100, help="exposures of a user in each of three months")
    p.add_argument("--json")
    args = p.parse_args()
    directory = tempfile.mkdtemp(prefix="dedupd-bench-")
    rows = []
    print("%-9s %-32s %9s %9s %9s %9s %8s %8s" % ("mode", "request", "req/s", "p50 us", "p99 us", "CPU us", "RSS MB",
                                                  "non-2xx"))
    try:
        for mode in ("embedded", "redis"):
            for row in run_mode(directory, mode, args):
                rows.append(row)
                print("%(mode)-9s %(name)-32s %(per_s)9.0f %(p50_us)9.0f %(p99_us)9.0f %(cpu_us)9.1f %(rss_mb)8.0f "
                      "%(non_2xx)8d %(socket_errors)s" % row, flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"cores": os.cpu_count(), "users": args.users, "items": args.items, "rows": rows}, f, indent=2)
    return 1 if any(r["non_2xx"] or r["socket_errors"] for r in rows) else 0


sys.exit(main())
