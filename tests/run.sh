#!/bin/sh
# Runs the suites and sums up. `make test` calls it with "all", `make check-fast` with "fast".
#   sh tests/run.sh all|fast         everything; what takes a minute
#   sh tests/run.sh NAME...          some suites, by the names that are printed (unit-filter, asan-integration, lint, ...)
# Prints a line for each suite as it ends and, as the last line, "N passed, N failed". Exit status 1 when anything
# failed, could not be built, or nothing ran. Each suite's whole output is in build/test-logs/<suite>.log.
#
# Suites that only compute run side by side, as many as there are cores; those that measure or kill run alone.
# shellcheck disable=SC2317 # suites are called by name
set -u
LC_ALL=C.UTF-8
export LC_ALL
cd "$(dirname -- "$0")/.." || exit 1
PYTHON=${PYTHON:-/usr/bin/python3}
MAKE=${MAKE:-make}
MAKEFLAGS=''
export MAKEFLAGS
jobs=$(nproc 2>/dev/null || echo 2)
logs=build/test-logs

export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=86:detect_stack_use_after_return=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export TSAN_OPTIONS="exitcode=66:suppressions=$PWD/tests/tsan.txt"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.txt:print_suppressions=0"

ASAN=address,undefined
# RocksDB is not instrumented; tests/tsan.txt says what is left out.
TSAN_MODULES='store hot loop stats'
VALGRIND_MODULES='filter api'

modules() { for m in tests/unit/*/main.c; do basename "$(dirname "$m")"; done; }
fuzz_targets() { for f in tests/fuzz/fuzz_*.c; do basename "$f" .c | sed 's/^fuzz_//'; done; }
# each PREFIX WORD...
each() {
    prefix=$1
    shift
    for word in "$@"; do echo "$prefix$word"; done
}
make_() { $MAKE -s -j"$jobs" "$@"; }

# How many times longer than on a quick machine what must come may take: Python's waits, those of tests/unit/unit.h, the
# time check gives each unit test, and pytest-timeout's for a test. Never a DEDUPD_*: those are configuration.
be_patient() {
    case $1 in
    asan-* | tsan-* | valgrind-*) PATIENCE=${PATIENCE:-3} ;;
    *) PATIENCE=${PATIENCE:-2} ;;
    esac
    CK_TIMEOUT_MULTIPLIER=$PATIENCE
    export PATIENCE CK_TIMEOUT_MULTIPLIER
}

# pytest_ BINARY ARGUMENT...: with more workers than cores where python3-pytest-xdist is, for most tests wait.
pytest_() {
    binary=$1
    shift
    workers=''
    "$PYTHON" -c 'import xdist' 2>/dev/null && workers="-n $((jobs + 1)) --dist loadgroup"
    # shellcheck disable=SC2086 # words
    DEDUPD=$PWD/$binary "$PYTHON" -m pytest -q -p no:cacheprovider --durations=10 -o timeout=$((180 * PATIENCE)) $workers "$@"
}

replays() {
    for f in $(fuzz_targets); do
        "build-address-undefined/fuzz/replay-$f" "tests/fuzz/corpus/$f" && echo "1 passed" || echo "1 failed"
    done
}

# What a suite's name stands for.
run() {
    be_patient "$1"
    case $1 in
    unit-*) make_ "$1" ;;
    asan-unit-*) make_ SANITIZER=$ASAN "${1#asan-}" ;;
    tsan-unit-*) make_ SANITIZER=thread "${1#tsan-}" ;;
    valgrind-*) make_ "$1" ;;
    fuzz-replay) replays ;;
    integration) pytest_ build/dedupd tests/integration ;;
    integration-fast) pytest_ build/dedupd -m 'not slow' tests/integration ;;
    asan-integration) pytest_ build-address-undefined/dedupd -m 'not slow' tests/integration ;;
    hostile) make_ test-hostile ;;
    crash) DEDUPD=$PWD/build/dedupd "$PYTHON" tests/crash/lanes.py ;;
    asan-crash) ROUNDS=4 DEDUPD=$PWD/build-address-undefined/dedupd "$PYTHON" tests/crash/lanes.py ;;
    instructions) make_ bench-replay ;;
    image) timeout -k 10 900 sh tests/image/image.sh ;;
    lint) make_ lint ;;
    lint-fast) make_ lint CHECKS='layers lengths format paths schema' ;;
    *) echo "no suite $1"; return 1 ;;
    esac
}

# Counts in a log: of check ("100%: Checks: 9, Failures: 0, Errors: 0"), of pytest and of lint ("9 passed, 1 failed").
count() {
    awk '
        match($0, /^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/) {
            gsub(/,/, ""); bad = $5 + $7; good += $3 - bad; wrong += bad
        }
        /(^|[ :])[0-9]+ (passed|failed|error)/ && !/^[0-9]+%/ {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) good += $i
                if ($(i + 1) ~ /^(failed|error)/) wrong += $i
            }
        }
        END { print good + 0, wrong + 0 }' "$1"
}

# One suite: a command that fails without a counted failure counts as one, and so does one that ran nothing.
one() {
    name=$1
    start=$(date +%s)
    run "$name" >"$logs/$name.log" 2>&1 </dev/null
    status=$?
    # shellcheck disable=SC2046 # two numbers
    set -- $(count "$logs/$name.log")
    good=$1 wrong=$2
    if [ $status = 77 ]; then # cannot run on this machine; the log says why
        echo "0 0" >"$logs/$name.count"
        printf '%-28s skipped: %s\n' "$name" "$(tail -n 1 "$logs/$name.log")"
        return 0
    fi
    [ $status = 0 ] || [ "$wrong" != 0 ] || wrong=1
    if [ $status = 0 ] && [ "$good" = 0 ] && [ "$wrong" = 0 ]; then
        wrong=1
        echo "no test ran" >>"$logs/$name.log"
    fi
    echo "$good $wrong" >"$logs/$name.count"
    line=$(printf '%-28s %5d passed %3d failed %5d s' "$name" "$good" "$wrong" $(($(date +%s) - start)))
    [ "$wrong" = 0 ] || line=$(echo "$line" && tail -n 40 "$logs/$name.log" | sed 's/^/    /')
    echo "$line"
}

# group HOW_MANY NAME...: suites, so many at a time. Each is a process of its own.
group() {
    at_once=$1
    shift
    printf '%s\n' "$@" | xargs -P "$at_once" -n 1 sh tests/run.sh --one
}

# build NAME TARGET...: not a test, so silent; what cannot be built fails here by name, and its suites fail too.
build() {
    name=build-$1
    shift
    start=$(date +%s)
    if make_ -k "$@" >"$logs/$name.log" 2>&1 </dev/null; then
        printf '%-28s %30d s\n' "$name" $(($(date +%s) - start))
    else
        echo "0 1" >"$logs/$name.count"
        printf '%-28s FAILED\n' "$name"
        tail -n 40 "$logs/$name.log" | sed 's/^/    /'
    fi
}

# shellcheck disable=SC2046 # lists of words
fast() {
    build release all $(each build/tests/unit- $(modules))
    group "$jobs" $(each unit- $(modules)) lint-fast
    group 1 integration-fast
}

# shellcheck disable=SC2046,SC2086 # lists of words
all() {
    build release all $(each build/tests/unit- $(modules)) build/bench/replay build/tests/offer
    build asan SANITIZER=$ASAN all $(each build-address-undefined/tests/unit- $(modules)) \
        $(each build-address-undefined/fuzz/replay- $(fuzz_targets))
    build tsan SANITIZER=thread $(each build-thread/tests/unit- $TSAN_MODULES)
    # The long ones first, so that the end is shared evenly.
    group "$jobs" $(each tsan-unit- $TSAN_MODULES) $(each valgrind- $VALGRIND_MODULES) $(each asan-unit- $(modules)) \
        $(each unit- $(modules)) fuzz-replay instructions
    group 1 integration asan-integration hostile crash asan-crash lint image
}

if [ "${1:-}" = --one ]; then
    one "$2"
    exit 0
fi
mkdir -p $logs
rm -f $logs/*.log $logs/*.count
case ${1:-} in
all) all ;;
fast) fast ;;
'' | -*) sed -n '3,4s/^# *//p' "$0" >&2; exit 2 ;;
*) group 1 "$@" ;;
esac
# shellcheck disable=SC2046 # two numbers
set -- $(cat $logs/*.count 2>/dev/null | awk '{ good += $1; wrong += $2 } END { print good + 0, wrong + 0 }')
[ "$2" = 0 ] || echo "whole output of each suite: $logs/"
echo "$1 passed, $2 failed"
[ "$2" = 0 ] && [ "$1" != 0 ]
