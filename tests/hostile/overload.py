"""Three times the load that one worker can serve. Capacity is measured in the same run by the same client (offer.c), so
that what counts is a ratio. A machine that is busy with something else moves the two rates apart, so the ratio is taken
twice, of answers a second and of answers for a second of the server's CPU time, and the better of a few tries counts:
other work can spoil a try, but not make a good one."""
import os
import subprocess

from dd.dedupd import ROOT
from flood import need_descriptors
from row import Skip, row
from wire import Wire, ask, post

OFFER = os.environ.get("OFFER") or os.path.join(ROOT, "build", "tests", "offer")
TRIES = 5
WANTED = .80
CONNECTIONS = 2000
# Costs the server much and the client little: many candidates, all of them seen, so that the answer is short.
ITEMS = list(range(1000, 6000))


def attempt(server, path):
    """The line of a try, as a dict of numbers."""
    ended = subprocess.run([OFFER, str(server.http.port), str(server.pid), path, str(CONNECTIONS), "1.5", "3", "4"], capture_output=True,
                           text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    t = {k: float(v) for k, v in (word.split("=") for word in ended.stdout.split())}
    t["share"], t["share_cpu"] = t["good"] / t["capacity"], t["good_cpu"] / t["capacity_cpu"]
    t["times"] = t["offered"] / t["capacity"]
    return t


def served(t):
    return max(t["share"], t["share_cpu"]) if t["times"] > 2.5 else 0


SAID = ("{share:.0%} of a capacity of {capacity:.0f}/s served ({share_cpu:.0%} by CPU time), {times:.1f} times offered; "
        "{refused:.0f}/s turned away, {lost:.0f}/s lost, {unsent:.0f}/s without a connection; p99 {p99_ms:.0f} ms")


@row("overload", "three times the load that can be served", "80 % of capacity served, memory flat, then recovers",
     peak_mb=150)
def goodput(server):
    need_descriptors(CONNECTIONS + 200)
    if not os.access(OFFER, os.X_OK):
        raise Skip("no %s: make build/tests/offer" % OFFER)
    with Wire(server.address) as w:
        for i in range(0, len(ITEMS), 1000):
            w.send(post(b"/exposed", ('{"user":"u","items":%s}' % ITEMS[i:i + 1000]).encode()))
            w.expect(200)
    path = os.path.join(server.directory, "request")
    with open(path, "wb") as f:
        f.write(ask(ITEMS))
    tries = []
    while len(tries) < TRIES and max(map(served, tries), default=0) < WANTED:
        tries.append(attempt(server, path))
        server.check_serves()
        print("      " + SAID.format(**tries[-1]))
    best = max(tries, key=served)
    assert served(best) >= WANTED, SAID.format(**best)
    return SAID.format(**best)
