#!/bin/sh
# clang-tidy on some files, with CPPFLAGS from the environment. Prints complaints only; exit status 1 if there are any.
# ANALYZER=deep follows calls further: five times the time, for before a release; shallow by default.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck disable=SC2086 # CPPFLAGS are words
clang-tidy --quiet "$@" -- $CPPFLAGS -DDD_VERSION='"lint"' -Xclang -analyzer-config \
    -Xclang "mode=${ANALYZER:-shallow}" >"$out" 2>/dev/null && exit 0
cat "$out"
exit 1
