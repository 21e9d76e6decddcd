#!/bin/sh
# Runs the suites and sums up. `make test` calls it with "all", `make check-fast` with "fast".
#   sh tests/run.sh all|fast
# Prints a line for each suite as it ends and, as the last line, "N passed, N failed". Exit status 1 when anything
# failed, could not be built, or nothing ran. Each suite's whole output is in build/test-logs/<suite>.log.
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
mkdir -p $logs
rm -f $logs/*.log
passed=0 failed=0

export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=86:detect_stack_use_after_return=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export TSAN_OPTIONS="exitcode=66:suppressions=$PWD/tests/tsan.txt"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.txt:print_suppressions=0"

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

# suite NAME COMMAND...: a command that fails without a counted failure counts as one.
suite() {
    name=$1
    shift
    start=$(date +%s)
    "$@" >"$logs/$name.log" 2>&1 </dev/null
    status=$?
    # shellcheck disable=SC2046 # two numbers
    set -- $(count "$logs/$name.log")
    good=$1 wrong=$2
    [ $status = 0 ] || [ "$wrong" != 0 ] || wrong=1
    if [ $status = 0 ] && [ "$good" = 0 ] && [ "$wrong" = 0 ]; then
        wrong=1
        echo "no test ran" >>"$logs/$name.log"
    fi
    passed=$((passed + good)) failed=$((failed + wrong))
    printf '%-34s %5d passed %3d failed %5d s\n' "$name" "$good" "$wrong" $(($(date +%s) - start))
    [ "$wrong" = 0 ] || { tail -n 40 "$logs/$name.log" | sed 's/^/    /'; }
}

# A step that is not a test: silent unless it fails.
build() {
    name=build-$1
    shift
    start=$(date +%s)
    if "$@" >"$logs/$name.log" 2>&1 </dev/null; then
        printf '%-34s %28d s\n' "$name" $(($(date +%s) - start))
        return 0
    fi
    failed=$((failed + 1))
    printf '%-34s FAILED\n' "$name"
    tail -n 40 "$logs/$name.log" | sed 's/^/    /'
    return 1
}

modules() { for m in tests/unit/*/main.c; do basename "$(dirname "$m")"; done; }
make_() { $MAKE -s -j"$jobs" "$@"; }

# units SANITIZER MODULE...: builds all first, with all cores; a failure shows again, by name, in its suite.
units() {
    san=$1
    shift
    bins=''
    for m in "$@"; do
        bins="$bins build${san:+-$(echo "$san" | tr , -)}/tests/unit-$m"
    done
    # shellcheck disable=SC2086 # a list of words
    make_ -k SANITIZER="$san" $bins >"$logs/build-units-$san.log" 2>&1
    for m in "$@"; do
        suite "unit-$m${san:+-$san}" make_ SANITIZER="$san" "unit-$m"
    done
}

valgrind_() {
    command -v valgrind >/dev/null 2>&1 || { echo "valgrind is not installed"; return 1; }
    make_ "valgrind-$1"
}

pytest_() {
    binary=$1
    shift
    DEDUPD=$PWD/$binary "$PYTHON" -m pytest -q -p no:cacheprovider --durations=10 "$@"
}

replays() {
    for f in tests/fuzz/fuzz_*.c; do
        f=$(basename "$f" .c)
        f=${f#fuzz_}
        make_ SANITIZER=address,undefined "build-address-undefined/fuzz/replay-$f" &&
            "build-address-undefined/fuzz/replay-$f" "tests/fuzz/corpus/$f" && echo "1 passed" || echo "1 failed"
    done
}

fast() {
    # shellcheck disable=SC2046
    units '' $(modules)
    build all make_ all && suite integration-fast pytest_ build/dedupd -m 'not slow' tests/integration
    suite lint-fast make_ lint CHECKS='layers lengths format paths schema'
}

all() {
    # shellcheck disable=SC2046
    units '' $(modules)
    build all make_ all && suite integration pytest_ build/dedupd tests/integration
    suite hostile make_ test-hostile
    suite crash env "DEDUPD=$PWD/build/dedupd" "$PYTHON" tests/crash/lanes.py
    # shellcheck disable=SC2046
    units address,undefined $(modules)
    build all-address-undefined make_ SANITIZER=address,undefined all &&
        suite integration-address-undefined pytest_ build-address-undefined/dedupd -m 'not slow' tests/integration &&
        suite crash-address-undefined env ROUNDS=4 "DEDUPD=$PWD/build-address-undefined/dedupd" \
            "$PYTHON" tests/crash/lanes.py
    if ls tests/fuzz/fuzz_*.c >/dev/null 2>&1; then suite fuzz-replay replays; fi
    # RocksDB is not instrumented; tests/tsan.txt says what is left out.
    units thread loop stats store hot
    suite valgrind-filter valgrind_ filter
    suite valgrind-api valgrind_ api
    suite instructions make_ bench-replay
    suite lint make_ lint
}

case ${1:-} in
all) all ;;
fast) fast ;;
*) echo "usage: sh tests/run.sh all|fast" >&2; exit 2 ;;
esac
[ $failed = 0 ] || echo "whole output of each suite: $logs/"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
