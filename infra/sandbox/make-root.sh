#!/usr/bin/env bash
# The root of the sandbox image from Debian packages alone: debootstrap, then apt with packages.txt, then
# finish-root.sh, as a tar.
#
#   make-root.sh <empty folder to work in>      leaves root.tar there
#
# Packages come from the mirrors that this machine's apt uses, with its proxies and its credentials, and are checked
# with Debian's keys. Runs as root in separate mount and process namespaces and dies with its parent: nothing stays
# mounted, nothing goes on.
set -euo pipefail

if [ "${IN_NAMESPACES:-}" != yes ]; then
  exec env IN_NAMESPACES=yes setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child=SIGKILL "$0" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$1
root=$work/root
lists=$work/lists
suite=bookworm
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
unset TMPDIR

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# "deb [options] address suite component" for each place that has Debian's own packages of this suite.
debian_sources() {
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    awk -v suite="$suite" -v keyring="$keyring" '
      # The origin is not known before the first apt-get update of this machine.
      $1 != "Debian" && $1 != "$(ORIGIN)" && NF == 4 { next }
      $(NF) != "main" { next }
      $(NF - 1) == suite || $(NF - 1) == suite "-updates" || $(NF - 1) == suite "-security" {
        print "deb [signed-by=" keyring "] " $(NF - 2), $(NF - 1), $(NF)
      }' | sort -u
}

# This machine's apt, with the packages that are installed in the new root.
apt_for_root() {
  apt-get -q -y \
    -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$lists" \
    -o Dir::State::status="$root/var/lib/dpkg/status" -o Dir::Cache::archives="$work/archives" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
    -o APT::Get::List-Cleanup=false -o Acquire::Languages=none -o Debug::NoLocking=true "$@"
}

wanted=$(sed 's/#.*//' "$here/packages.txt")
debian_sources >"$work/sources.list"
mirror=$(awk -v suite="$suite" '$(NF - 1) == suite { print $(NF - 2); exit }' "$work/sources.list")
[ -n "$mirror" ] || fail "apt on this machine knows no mirror of Debian 12 ($suite main)."

# debootstrap fetches by itself: it gets the proxies that apt uses.
eval "$(apt-config shell http_proxy_of_apt Acquire::http::Proxy https_proxy_of_apt Acquire::https::Proxy)"
export http_proxy=${http_proxy:-${http_proxy_of_apt:-}} https_proxy=${https_proxy:-${https_proxy_of_apt:-}}
[ -n "$http_proxy" ] || unset http_proxy
[ -n "$https_proxy" ] || unset https_proxy

say 'base system (debootstrap)'
# Nothing here has to survive a power cut.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d" "$lists/partial" "$work/archives/partial"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/build"
debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  fail "debootstrap failed: $(tail -n 3 "$work/debootstrap.log")"

say 'packages (apt)'
apt_for_root update >"$work/apt.log" 2>&1 || fail "apt-get update failed: $(tail -n 3 "$work/apt.log")"
apt_for_root --download-only dist-upgrade >>"$work/apt.log" 2>&1 || fail "apt-get dist-upgrade failed: $(tail -n 3 "$work/apt.log")"
# shellcheck disable=SC2086 # words of a list
apt_for_root --download-only install $wanted >>"$work/apt.log" 2>&1 || fail "apt-get install failed: $(tail -n 3 "$work/apt.log")"

say 'installing'
mkdir "$root/archives"
mount --bind "$work/archives" "$root/archives"
mount -t proc proc "$root/proc"
chroot "$root" sh -c 'apt-get -q -y --no-install-recommends -o APT::Sandbox::User=root install /archives/*.deb' >"$work/install.log" 2>&1 ||
  fail "installing the packages failed: $(tail -n 3 "$work/install.log")"
umount "$root/archives"
rmdir "$root/archives"
cp "$here/finish-root.sh" "$root/tmp/"
chroot "$root" sh /tmp/finish-root.sh
umount "$root/proc"
find "$root/dev" -mindepth 1 -delete
# debootstrap copied this machine's.
rm -f "$root/etc/resolv.conf" "$root/etc/hostname"

say 'packing'
# Files that the build made carry the date of the newest package index, so that the same packages make the same tar.
newest=$(sed -n 's/^Date: //p' "$lists"/*Release | while read -r date; do date -d "$date" +%s; done | sort -n | tail -n 1)
tar --create --file "$work/root.tar" --directory "$root" --numeric-owner --sort=name --clamp-mtime --mtime="@$newest" .
