#!/bin/sh
# All checks of style and of suspicious code. Called by `make lint`, which sets DEPS and CPPFLAGS.
#   sh tests/lint/lint.sh [CHECK...]     names of checks below; default: all (ANALYZER=deep: clang-tidy looks longer)
# Prints a line for each check, its complaints if any, and "lint: N passed, N failed".
# shellcheck disable=SC2317 # checks are called by name
set -u
LC_ALL=C.UTF-8
export LC_ALL
jobs=$(nproc 2>/dev/null || echo 2)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
passed=0 failed=0

# files NAME...: our files with such names, outside of what is built. Not from git: a checkout may come without it.
files() {
    pattern=''
    for name in "$@"; do pattern="$pattern -o -name $name"; done
    # shellcheck disable=SC2086 # words; without file name expansion
    (set -f && find . \( -name .git -o -name 'build' -o -name 'build-*' -o -name __pycache__ \) -prune -o -type f \
        \( ${pattern# -o} \) -print) | sed 's|^\./||' | sort
}
sources() { files '*.c' '*.h'; }
program() { files '*.c' | grep -E '^(lib|cmd)/'; }

check() {
    name=$1
    shift
    case " $wanted " in *" $name "* | "  ") ;; *) return 0 ;; esac
    start=$(date +%s)
    if "$@" >"$out" 2>&1; then
        passed=$((passed + 1))
        echo "lint $name: ok ($(($(date +%s) - start)) s)"
    else
        failed=$((failed + 1))
        echo "lint $name: FAILED"
        sed 's/^/  /' "$out"
    fi
}

layers() { sources | xargs /usr/bin/python3 tests/lint/layers.py; }
lengths() { sources | xargs /usr/bin/python3 tests/lint/lengths.py; }

# Names the files; `make format` mends them.
format() {
    ! sources | xargs clang-format --dry-run -Werror 2>&1 |
        sed -n 's/^\([^ ].*\):[0-9]*:[0-9]*: error: /\1: /p' | sort -u | grep .
}

# tests/lint/cppcheck.txt says what is not reported, and why. jansson's loops look like calls without its header.
cpp() {
    program | xargs cppcheck -j "$jobs" -q --std=c11 --enable=warning,performance,portability \
        --inline-suppr --suppressions-list=tests/lint/cppcheck.txt --error-exitcode=1 -D_GNU_SOURCE -Ilib \
        '-Djson_object_foreach(o,k,v)=while((v=json_next(o,&k)))' \
        '-Djson_array_foreach(a,i,v)=while((v=json_next(a,&i)))'
}

# One process a few files, each with its own output file, so that lines of parallel runs do not mix.
tidy() { program | xargs -P "$jobs" -n 3 sh tests/lint/tidy.sh; }

shells() { files '*.sh' run | xargs shellcheck -x; }

# Nothing may depend on, or tell of, the machine it was written on.
paths() {
    ! files '*' | grep -v '^tests/lint/lint.sh$' |
        xargs grep -nIE '/home/[a-z]|/root/|/work/' /dev/null
}

schema() { /usr/bin/python3 tests/lint/schema.py; }

[ -n "${DEPS:-}" ] || { echo "lint: run it as make lint" >&2; exit 2; }
wanted="$*"
program | grep -q '^lib/base/' || { echo "lint: no sources here" >&2; exit 2; }
check layers layers
check lengths lengths
check format format
check paths paths
check shell shells
check schema schema
check cppcheck cpp
check clang-tidy tidy
echo "lint: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
