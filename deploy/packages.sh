#!/bin/sh
# The one list of packages (Debian 12, Ubuntu), by what they are for.
#   sh deploy/packages.sh build run     prints the names, one a line
set -eu

names() {
    case $1 in
    build) # libraries come with their headers; nothing is vendored
        echo gcc libc6-dev make pkg-config libevent-dev libhiredis-dev librocksdb-dev libjansson-dev libxxhash-dev libcurl4-openssl-dev libsystemd-dev ;;
    run) # redis-server is optional: without it dedupd runs embedded
        echo curl redis-server ;;
    test) # procps: systemd-analyze looks for the kill of the unit; libc6-dbg: valgrind needs the symbols of the loader; gnuplot-nox: dedupctl filters --plot
        echo check gnuplot-nox python3 python3-pytest python3-pytest-timeout python3-pytest-xdist python3-redis python3-yaml valgrind libc6-dbg systemd procps ;;
    lint)
        echo clang clang-format clang-tidy cppcheck shellcheck python3-yaml ;;
    fuzz) # replaying a corpus needs only gcc; making one needs libFuzzer
        echo clang libclang-rt-dev ;;
    image) # building and running the image without Docker
        echo buildah debootstrap curl python3 git ;;
    bench)
        echo wrk nginx-light redis-server python3 python3-redis valgrind ;;
    *)
        echo "packages.sh: no group \"$1\" (build run test lint fuzz image bench)" >&2
        exit 2 ;;
    esac
}

for group in "$@"; do
    # shellcheck disable=SC2046 # the words are the lines
    printf '%s\n' $(names "$group")
done | sort -u
