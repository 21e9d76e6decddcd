"""Plays hostile clients against a real dedupd, a row each. `make test-hostile` runs it.

  hostile.py [WORD...]     rows whose group or name contains a word; default: all
  DEDUPD=path              the binary

Each row says what the server must answer. Around each row the server's memory and descriptors are measured: memory may
rise above its level only by what the row allows, descriptors must come back to where they were, and the server must
still serve. Prints a line for each row and, last, "N passed, N failed".
"""
import os
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dd.wait import wait_until  # noqa: E402
from row import ROWS, Skip  # noqa: E402
from server import MEASURES_MEMORY, Server  # noqa: E402
import grammar, slow, flood, backend, overload  # noqa: E402,F401,E401

MB = 1e6


def measured(server, row):
    """Runs a row; its result, and how memory and descriptors moved."""
    before = server.rss_bytes()
    server.reset_peak()
    said = row.run(server)
    server.settle()
    server.check_serves()
    server.settle()
    level = server.level[1]
    wait_until(lambda: server.descriptors() <= level + 4, 5, "descriptors come back")  # +4: files of the store
    fds = server.descriptors() - level
    end = time.monotonic() + 4  # memory is given back a moment after a flood
    while server.rss_bytes() > before + row.grow_mb * MB and time.monotonic() < end:
        time.sleep(.05)
    peak, grown = (server.peak_bytes() - before) / MB, (server.rss_bytes() - before) / MB
    if MEASURES_MEMORY:
        assert peak <= row.peak_mb, "memory rose by %.1f MB; %d are allowed" % (peak, row.peak_mb)
        assert grown <= row.grow_mb, "%.1f MB more than before stay; %d are allowed" % (grown, row.grow_mb)
    return said, "peak %+.1f MB, after %+.1f MB, descriptors %+d" % (peak, grown, fds)


def check_level(server, rows):
    """Over all rows of a group memory grows by no more than its greediest row may leave behind, and a little."""
    grown, allowed = (server.rss_bytes() - server.level[0]) / MB, max(r.grow_mb for r in rows) + 16
    print("      %s: %+.1f MB over all rows" % (rows[0].group, grown))
    if MEASURES_MEMORY:
        assert grown <= allowed, "%.1f MB over all rows; %d are allowed" % (grown, allowed)


def play(server, row):
    """Prints the row's line; None when it was skipped."""
    began = time.monotonic()
    try:
        said, moved = measured(server, row)
    except Skip as e:
        print("skip  %-9s %-50s %s" % (row.group, row.name, e))
        return None
    except (AssertionError, OSError, ValueError, KeyError, SystemError) as e:
        where = traceback.extract_tb(e.__traceback__)[-1]
        print("FAIL  %-9s %-50s expected: %s; %s (%s:%d)" % (row.group, row.name, row.expected, e or repr(e),
                                                            os.path.basename(where.filename), where.lineno))
        return False
    print("ok    %-9s %-50s %s  [%s; %.1f s]" % (row.group, row.name, said, moved, time.monotonic() - began))
    return True


def play_group(group, rows):
    directory = tempfile.mkdtemp(prefix="dedupd-ho-")
    server, results = Server(directory, group), []
    try:
        server.begin()
        for row in rows:
            results.append(play(server, row))
            sys.stdout.flush()
            if not server.running():
                print("FAIL  %-9s the server ended:\n%s" % (group, server.log_tail(40)))
                return results + [False]
        check_level(server, rows)
        server.end()
    except AssertionError as e:
        print("FAIL  %-9s %-50s %s" % (group, "memory, and a clean stop", e))
        results.append(False)
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    return results


def main():
    words = sys.argv[1:]
    rows = [r for r in ROWS if not words or any(w in r.name or w == r.group for w in words)]
    results, began = [], time.monotonic()
    for group in dict.fromkeys(r.group for r in rows):
        results += play_group(group, [r for r in rows if r.group == group])
    skipped = sum(r is None for r in results)
    print("%d rows, %d skipped, %.0f s" % (len(rows), skipped, time.monotonic() - began))
    failed = sum(r is False for r in results)
    print("%d passed, %d failed" % (sum(r is True for r in results), failed))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
