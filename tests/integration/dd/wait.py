"""Waiting for a condition with a deadline instead of sleeping."""
import os
import time

# How many times longer slow machines and sanitizer builds may take; tests/run.sh sets it.
PATIENCE = float(os.environ.get("PATIENCE", "1"))


def wait_until(condition, seconds=10.0, what=None):
    """Calls condition() until it is true and returns its value; fails the test when the time is over.

    An exception of the last try is part of the failure.
    """
    end = time.monotonic() + seconds * PATIENCE
    while True:
        why = None
        try:
            value = condition()
            if value:
                return value
        except (OSError, AssertionError) as e:
            why = e
        if time.monotonic() > end:
            name = what or getattr(condition, "__name__", "condition")
            raise AssertionError("not within %g s: %s%s" % (seconds, name, " (%r)" % why if why else ""))
        time.sleep(0.005)
