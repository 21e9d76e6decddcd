#!/bin/sh
# What one POST of 2.5 KB costs in each of the servers $@ (tests/bench/bench_http.c): three runs of SECONDS each.
set -eu
seconds=${SECONDS_EACH:-3}
dir=$(mktemp -d)
pid=''
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
printf 'wrk.method = "POST"\nwrk.body = string.rep("x", 2500)\n' >"$dir/post.lua"

# The address that the server has printed.
address() { sed -n 1p "$dir/out"; }

for server in "$@"; do
    for run in 1 2 3; do
        : >"$dir/out"
        case $server in
        *evhttp) "$server" 8099 >"$dir/out" & ;;
        *) "$server" 127.0.0.1:0 >"$dir/out" & ;;
        esac
        pid=$!
        left=100
        while [ -z "$(address)" ] && [ $left -gt 0 ]; do
            left=$((left - 1))
            sleep 0.05
        done
        wrk -t1 -c16 -d"$seconds" -s "$dir/post.lua" "http://$(address)/" >"$dir/wrk"
        kill -INT "$pid"
        wait "$pid" || true
        pid=''
        echo "$(basename "$server") run $run: $(sed -n 2p "$dir/out")"
    done
done
