#!/usr/bin/python3
"""Instructions per request of a fixed replay (replay.c), against what was recorded for this compiler.

Fails when a count is more than a tenth above the recorded one. A compiler without a record is reported and passes.
usage: replay.py PROGRAM CC [--record]        (`make bench-replay`; RECORD=--record writes tests/bench/instructions.json)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
REQUESTS = 200
NAMES = ("replay_filter", "replay_claim", "replay_exposed")
TOLERANCE = 1.10


def compiler(cc):
    version = subprocess.run([cc, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=True)
    first = subprocess.run([cc, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    name = "clang" if "clang" in first else "gcc"
    return "%s %s %s" % (name, version.stdout.split("\n")[0].split(".")[0], os.uname().machine)


def count(program):
    """Instructions of one request, by name."""
    directory = tempfile.mkdtemp(prefix="dedupd-replay-")
    try:
        out = os.path.join(directory, "callgrind")
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + out,
                        *("--toggle-collect=" + n for n in NAMES), program, os.path.join(directory, "data"),
                        str(REQUESTS)], check=True, stdout=subprocess.DEVNULL)
        table = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out], check=True,
                               capture_output=True, text=True).stdout
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found = {}
    for number, name in re.findall(r"^\s*([\d,]+) .*?:(replay_\w+) ", table, re.M):
        found[name] = max(found.get(name, 0), int(number.replace(",", "")) // REQUESTS)
    return {n: found[n] for n in NAMES}


def main():
    program, cc = sys.argv[1], sys.argv[2]
    with open(RECORDED, encoding="utf-8") as f:
        recorded = json.load(f)
    key, now = compiler(cc), count(program)
    before = recorded.get(key, {})
    failed = 0
    for name, n in now.items():
        old = before.get(name)
        bad = old is not None and n > old * TOLERANCE
        failed += bad
        print("%-16s %8d instructions, %s%s" % (name, n, "recorded %d (%+.1f %%)" % (old, 100 * (n / old - 1)) if old
                                                else "nothing recorded for " + key, ": MORE" if bad else ""))
    if "--record" in sys.argv:
        recorded[key] = now
        with open(RECORDED, "w", encoding="utf-8") as f:
            json.dump(recorded, f, indent=2, sort_keys=True)
            f.write("\n")
        failed = 0
    print("%d passed, %d failed" % (len(now) - failed, failed))
    return 1 if failed else 0


sys.exit(main())
