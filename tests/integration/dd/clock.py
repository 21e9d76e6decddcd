"""The time of servers under test: the middle of a month and of an hour, whatever the date is and however long a run
takes. Tests of the ends of periods set clock.offset_s themselves (test_rollover)."""
import calendar
import time


def middle(now):
    t = time.gmtime(now)
    return calendar.timegm((t.tm_year, t.tm_mon, 15, 12, 2, 0))


# Of a run, so that all servers of a test agree. An hour's slot ends 58 minutes after its beginning.
OFFSET_S = int(middle(time.time()) - time.time())


def now():
    """What the servers' clocks say, in seconds."""
    return time.time() + OFFSET_S


def now_ms():
    return int(now() * 1000)


def month_start_ms():
    t = time.gmtime(now())
    return calendar.timegm((t.tm_year, t.tm_mon, 1, 0, 0, 0)) * 1000


def later(seconds):
    """The setting that moves a server on."""
    return {"clock.offset_s": str(OFFSET_S + seconds)}
