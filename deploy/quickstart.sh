#!/bin/sh
# From a bare Debian 12 or Ubuntu to a running dedupd.
#   sh deploy/quickstart.sh              install, build, start Redis and dedupd, show one exposure and one filter request
#   sh deploy/quickstart.sh --embedded   the same without Redis
#   sh deploy/quickstart.sh test         install what tests need and run all of them
# Runs as root or with sudo (only to install packages). Everything it starts lives in one temporary directory and
# ends with it: Ctrl-C (or SIGTERM) stops both processes cleanly and removes the directory.
# shellcheck disable=SC2317 # conditions are called by wait_for
set -eu
LC_ALL=C
PATH="${PATH:-/usr/bin}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export LC_ALL PATH
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

say() { echo "quickstart: $*"; }
die() { say "$*" >&2; exit 1; }
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0"; }

jobs=$(nproc 2>/dev/null || echo 2)
redis_pid='' dedupd_pid='' dir='' http='' admin=''

build() {
    say "building (make -j$jobs)"
    make -s -j"$jobs" all || die "the build failed"
}

alive() { kill -0 "$1" 2>/dev/null; }

# wait_for TENTHS COMMAND...: until the command succeeds. Fails after that many tenths of a second.
wait_for() {
    left=$1
    shift
    while ! "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.1
    done
}

# Ends process $1 by SIGTERM and waits for it; by SIGKILL if it has not gone after 20 s.
end() {
    [ -n "$1" ] || return 0
    kill -TERM "$1" 2>/dev/null || true
    gone() { ! alive "$1"; }
    wait_for 200 gone "$1" || kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

finish() {
    trap '' INT TERM HUP
    trap - EXIT
    [ -z "$dedupd_pid$redis_pid" ] || say "stopping"
    end "$dedupd_pid"
    end "$redis_pid"
    [ -z "$dir" ] || rm -rf "$dir"
    exit "$1"
}

redis_answers() { [ -S "$dir/redis.sock" ] && redis-cli -s "$dir/redis.sock" ping 2>/dev/null | grep -q PONG; }
redis_settled() { redis_answers || ! alive "$redis_pid"; }

# Sets redis_pid and url, or leaves url empty. setsid: Ctrl-C must reach only this script, which stops both in order.
start_redis() {
    url=''
    command -v redis-server >/dev/null 2>&1 || { say "no redis-server here: running embedded"; return 0; }
    mkdir "$dir/redis"
    setsid redis-server deploy/redis.conf --unixsocket "$dir/redis.sock" --dir "$dir/redis" \
        >"$dir/redis.log" 2>&1 </dev/null &
    redis_pid=$!
    if wait_for 100 redis_settled && redis_answers; then
        url="unix://$dir/redis.sock"
        return 0
    fi
    say "Redis did not start: running embedded. Its last words:"
    tail -n 3 "$dir/redis.log" || true
    end "$redis_pid"
    redis_pid=''
}

# The port is free if a connection to it is refused (curl exits with 7).
port_free() {
    status=0
    curl -s -o "$dir/probe" --max-time 2 "http://127.0.0.1:$1/" || status=$?
    [ "$status" = 7 ]
}

ready_line() { grep 'app\.ready' "$dir/dedupd.log" | tail -n 1; }
dedupd_settled() { [ -n "$(ready_line)" ] || ! alive "$dedupd_pid"; }
field() { ready_line | tr ' ' '\n' | sed -n "s/^$1=//p"; }

# start_dedupd HTTP_PORT ADMIN_PORT; sets http and admin to the real addresses.
start_dedupd() {
    : >"$dir/dedupd.log"
    setsid build/dedupd --set "http.listen=127.0.0.1:$1" --set "admin.listen=127.0.0.1:$2" \
        --set "data_dir=$dir/data" --set "redis.url=$url" --set http.drain_delay_s=0 2>"$dir/dedupd.log" </dev/null &
    dedupd_pid=$!
    wait_for 300 dedupd_settled && [ -n "$(ready_line)" ] || return 1
    http=$(field http)
    admin=$(field admin)
}

start() {
    if port_free 8080 && port_free 8081 && start_dedupd 8080 8081; then return 0; fi
    end "$dedupd_pid"
    dedupd_pid=''
    say "port 8080 or 8081 is taken: choosing free ones"
    start_dedupd 0 0 && return 0
    tail -n 20 "$dir/dedupd.log" >&2
    say "dedupd did not start" >&2
    return 1
}

# Shows a POST and its answer as a line to paste.
show() {
    echo "  curl -s http://$http$1 -H 'Content-Type: application/json' -d '$2'"
    answer=$(curl -sS --fail-with-body --max-time 10 "http://$http$1" -H 'Content-Type: application/json' -d "$2") || {
        say "the request failed: $answer" >&2
        return 1
    }
    echo "  $answer"
    echo
}

serve() {
    dir=$(mktemp -d "${TMPDIR:-/tmp}/dedupd-XXXXXX")
    trap 'finish $?' EXIT
    trap 'finish 0' INT TERM
    trap 'finish 129' HUP
    if [ "$embedded" = yes ]; then
        url=''
        say "running embedded, as asked (no Redis)"
    else
        start_redis
    fi
    start
    mode=embedded
    [ -z "$url" ] || mode="with Redis at $url"
    say "dedupd serves on http://$http, admin on http://$admin, $mode; data and logs in $dir"
    echo
    echo "user u1 saw two items; then four candidates are filtered:"
    echo
    show /exposed '{"user":"u1","items":["news-1",42]}'
    show /filter '{"user":"u1","candidates":["news-1","news-2",42,43]}'
    echo "for more, in another terminal (dedupctl --help):"
    echo
    echo "  export PATH=\"$root/build:\$PATH\""
    [ "$http $admin" = "127.0.0.1:8080 127.0.0.1:8081" ] ||
        echo "  export DEDUPCTL_DATA=http://$http DEDUPCTL_ADMIN=http://$admin"
    echo "  dedupctl user u1"
    echo
    say "serving until Ctrl-C; then everything above is removed"
    # `wait` returns when dedupd ends by itself or when a trap has run.
    wait "$dedupd_pid" || true
    dedupd_pid=''
    tail -n 5 "$dir/dedupd.log" >&2
    say "dedupd ended by itself" >&2
    finish 1
}

embedded=no
case ${1:-} in
'') ;;
--embedded) embedded=yes ;;
test)
    sh deploy/install.sh build run test lint image
    # The suites print their own lines; the last one is the sum.
    exec make -s test ;;
-h | --help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

sh deploy/install.sh build run
build
serve
