#!/bin/sh
# Builds the image of the Dockerfile with buildah from a base made by debootstrap, and runs it: it must answer /health,
# be healthy by its own check, run as somebody else than root, hold no compiler, and stop cleanly.
#   sh tests/image/image.sh           as root; needs buildah, debootstrap, curl and the network; some minutes
#   BASE_TAR=file                     a base made before is used, or kept there for the next time
# Everything lies in one temporary directory that is removed at the end. The last line is "N passed, N failed".
# Exit status 77: this machine cannot do it (not root, no tool, no mounts, no archive); the last line says what is missing.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname -- "$0")/../.."
skip() { echo "$*"; exit 77; }
mirror=http://deb.debian.org/debian
[ "$(id -u)" = 0 ] || skip "debootstrap needs root"
PATH=$PATH:/usr/sbin:/sbin
for tool in buildah debootstrap curl git; do
    command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || skip "root cannot mount here"
[ -s "${BASE_TAR:-}" ] || curl -sf --max-time 20 -o /dev/null "$mirror/dists/bookworm/InRelease" ||
    skip "$mirror cannot be reached"

dir=$(mktemp -d "${TMPDIR:-/tmp}/dedupd-image-XXXXXX")
pid='' passed=0 failed=0
# vfs copies each layer, but works in every kind of container.
b() { buildah --root "$dir/root" --runroot "$dir/run" --storage-driver "${DRIVER:-vfs}" "$@"; }
finish() {
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
    b rm --all >/dev/null 2>&1 || true
    umount -R "$dir/root" 2>/dev/null || true
    rm -rf --one-file-system "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

check() {
    what=$1
    shift
    if "$@" >"$dir/check" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $what"
    else
        failed=$((failed + 1))
        echo "FAIL  $what"
        sed 's/^/      /' "$dir/check"
    fi
}

# debian:bookworm-slim is a minimal Debian with its updates; so is this.
make_base() {
    debootstrap --variant=minbase bookworm "$dir/base" "$mirror" >"$dir/log" 2>&1 ||
        { tail -n 20 "$dir/log"; exit 1; }
    echo 'deb http://deb.debian.org/debian-security bookworm-security main' >>"$dir/base/etc/apt/sources.list"
    tar -C "$dir/base" -cf "$1" .
    rm -rf --one-file-system "$dir/base"
}

base=${BASE_TAR:-$dir/base.tar}
[ -s "$base" ] || make_base "$base"
container=$(b from scratch)
b add -q "$container" "$base" / >/dev/null
b config --cmd /bin/sh "$container"
b commit -q "$container" localhost/base >/dev/null
b rm "$container" >/dev/null

git -c safe.directory='*' ls-files | tar -cf "$dir/context.tar" -T -
mkdir "$dir/context"
tar -C "$dir/context" -xf "$dir/context.tar"
if ! b bud --isolation chroot --format docker --pull-never --build-arg BASE=localhost/base -t localhost/dedupd "$dir/context" \
    >"$dir/log" 2>&1; then
    tail -n 40 "$dir/log"
    echo "image: the build failed"
    exit 1
fi

container=$(b from --pull-never localhost/dedupd)
root=$(b mount "$container")
config=$(b inspect --type image localhost/dedupd)

no_compilers() {
    for tool in cc gcc g++ c++ clang as ld make; do
        ! find "$root/usr/bin" "$root/usr/local/bin" -name "$tool" | grep . || return 1
    done
    ! find "$root/usr/include" "$root/src" -name '*.h' 2>/dev/null | grep .
}
says() { echo "$config" | grep -q "$1"; }
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run() { b run --isolation chroot "$@"; }
alive() { kill -0 "$pid" 2>/dev/null; }
answers() { curl -sf --max-time 2 "http://127.0.0.1:$port/health" >"$dir/health"; }
wait_for() {
    left=$1
    shift
    while ! "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep .1
    done
}
start() {
    # chroot isolation shares the machine's network: the port is chosen, the entry point and its user are the image's.
    run --env "DEDUPD_HTTP_LISTEN=127.0.0.1:$port" --env DEDUPD_ADMIN_LISTEN=127.0.0.1:0 "$container" \
        dedupd --set http.drain_delay_s=0 >"$dir/dedupd.log" 2>&1 &
    pid=$!
    wait_for 300 answers || { cat "$dir/dedupd.log"; return 1; }
}
serves() { grep -q '"status":"ok"' "$dir/health"; }
works() {
    json='Content-Type: application/json'
    curl -sf -H "$json" "http://127.0.0.1:$port/exposed" -d '{"user":"u","items":["a"]}' &&
        curl -sf -H "$json" "http://127.0.0.1:$port/filter" -d '{"user":"u","candidates":["a","b"]}' |
        grep -F '"items":["b"]'
}
healthy() { run --env "DEDUPCTL_DATA=http://127.0.0.1:$port" "$container" dedupctl health; }
server() { pgrep -x dedupd | while read -r p; do grep -qz "DEDUPD_HTTP_LISTEN=127.0.0.1:$port" "/proc/$p/environ" && echo "$p"; done; }
not_root() { awk '/^Uid:/ { exit !($2 == 990 && $3 == 990) }' "/proc/$(server | head -n 1)/status"; }
stops() {
    kill -TERM "$(server | head -n 1)" && wait "$pid" && grep -q 'app.stopped' "$dir/dedupd.log"
}

check "the last stage holds no compiler and no headers" no_compilers
check "its user is 990" says '"User": "990:990"'
check "it stops by SIGTERM" says 'SIGTERM'
check "it has a health check" says '"dedupctl"'
check "it starts as a container and answers /health" start
check "/health says ok" serves
check "an exposure is remembered" works
check "its health check passes" healthy
check "it does not run as root" not_root
check "it stops cleanly" stops
echo "image: $(du -sm "$root" | cut -f1) MB, of which the base has $(du -m "$base" | cut -f1)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
