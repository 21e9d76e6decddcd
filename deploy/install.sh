#!/bin/sh
# Installs the packages of the named groups (deploy/packages.sh) on Debian 12 or Ubuntu, as root or through sudo.
#   sh deploy/install.sh build run
# Does nothing, and needs no network, when all are there. Never asks, never starts a service.
set -eu
LC_ALL=C
export LC_ALL
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

say() { echo "install: $*" >&2; }
die() { say "$*"; exit 1; }

# Debian's libevent before this version accepts requests with conflicting framing (request smuggling).
LIBEVENT_MIN=2.1.12-stable-8+deb12u1

# Prints those of the packages $@ that are not installed.
missing() {
    for p in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null) in
        installed) ;;
        *) echo "$p" ;;
        esac
    done
}

is_bookworm() { grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; }

libevent_ok() {
    is_bookworm || return 0
    v=$(dpkg-query -W -f '${Version}' libevent-dev 2>/dev/null) || return 0
    dpkg --compare-versions "$v" ge "$LIBEVENT_MIN"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        die "run as root, or install sudo, or install these packages yourself: $packages"
    fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH="$PATH:/usr/sbin:/sbin" \
        apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

# debootstrap leaves a Debian 12 without its security archive, which is where the fixed libevent is.
add_security_archive() {
    is_bookworm || return 0
    grep -qsr 'bookworm-security' /etc/apt/sources.list /etc/apt/sources.list.d && return 0
    say "adding Debian's security archive (/etc/apt/sources.list.d/dedupd-security.list)"
    echo 'deb http://deb.debian.org/debian-security bookworm-security main' |
        as_root tee /etc/apt/sources.list.d/dedupd-security.list >/dev/null
}

# Packages that bring a service would start it; in a chroot that fails or hangs. Policy 101 forbids it meanwhile.
POLICY=/usr/sbin/policy-rc.d
forbid_services() {
    [ -e $POLICY ] && return 0
    printf '#!/bin/sh\nexit 101\n' | as_root tee $POLICY >/dev/null
    as_root chmod 755 $POLICY
    trap 'as_root rm -f $POLICY' EXIT
    trap 'exit 130' INT TERM HUP
}

packages=$(sh "$here/packages.sh" "$@" | tr '\n' ' ')
# shellcheck disable=SC2086 # the words are the packages
wanted=$(missing $packages)
if [ -z "$wanted" ] && libevent_ok; then
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || die "no apt-get here; install by hand: $packages"
libevent_ok || wanted="$wanted libevent-dev"
# shellcheck disable=SC2086
say "installing" $wanted
add_security_archive
forbid_services
# A broken third-party source must not stop us: what counts is whether the packages can be had.
apt update >&2 || say "apt-get update failed; trying with the lists at hand"
for p in $wanted; do
    [ "$p" = redis-server ] || need="${need:-} $p"
done
# shellcheck disable=SC2086
[ -z "${need:-}" ] || apt install --no-install-recommends $need >&2 || die "apt-get install failed"
case " $packages " in
*" redis-server "*)
    [ -z "$(missing redis-server)" ] || apt install --no-install-recommends redis-server >&2 ||
        say "redis-server cannot be installed" ;;
esac
libevent_ok || die "libevent-dev $LIBEVENT_MIN or newer is needed (Debian's security archive has it)"
