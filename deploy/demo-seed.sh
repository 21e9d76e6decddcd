#!/bin/sh
# Fills a Redis with an exact store as many services have one: for each user a ZSet of the items he saw, with the
# time in seconds as score, over the last 60 days. For docs/moving-from-a-zset.md and for trying things out.
#
#   sh deploy/demo-seed.sh [USERS [KEY-PREFIX]]     10000 users, played_videos:
#
# Redis is the one of redis-cli's defaults; REDIS_CLI="redis-cli -p 6390" names another. The same call makes the same
# users and items; it adds to what is there.
set -eu
users=${1:-10000}
prefix=${2:-played_videos:}
now=$(date +%s)

# From 1 to about 400 entries a user, most have few; user 1 has 129 and user 2 has 5000.
awk -v users="$users" -v prefix="$prefix" -v now="$now" '
BEGIN {
    srand(7)
    for (u = 1; u <= users; u++) {
        n = int(exp(rand() * 6))
        if (u == 1) n = 129
        if (u == 2) n = 5000
        span = 86400 * (rand() < 0.6 ? 20 : 60)
        line = ""
        in_line = 0
        for (i = 1; i <= n; i++) {
            line = line " " (now - int(rand() * span)) " v" int(rand() * 1000000)
            if (++in_line == 500 || i == n) {
                print "ZADD " prefix "u" u line
                line = ""
                in_line = 0
            }
        }
    }
}' | ${REDIS_CLI:-redis-cli} --pipe
