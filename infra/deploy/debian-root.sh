#!/usr/bin/env bash
# Unpacks Debian packages and what they depend on, of any release, without installing anything on this machine.
#
#   debian-root.sh <folder> <suite> [--only] <package>...      leaves <folder>/root
#
# With --only their dependencies are left out. The lists and packages come from the mirror that this machine's apt uses
# and are checked with Debian's keys, in folders of their own. No script of a package runs.
set -euo pipefail

folder=$1 suite=$2
shift 2
only=
if [ "${1:-}" = --only ]; then only=yes && shift; fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root
mkdir -p "$folder/lists/partial" "$folder/archives/partial" "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/var/lib/dpkg"
: >"$folder/nothing"
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
  awk '($1 == "Debian" || $1 == "$(ORIGIN)") && $3 !~ /-(security|updates|backports)$/ { print $2; exit }')
[ -n "$mirror" ] || fail 'apt on this machine knows no mirror of Debian.'
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$folder/sources.list"

own_apt() {
  apt-get -q -y -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferences=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/nothing" \
    -o Dir::State::extended_states="$folder/extended" -o Dir::Cache::archives="$folder/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none -o Debug::NoLocking=true "$@"
}

own_apt update >"$folder/apt.log" 2>&1 || fail "apt-get update failed: $(tail -n 3 "$folder/apt.log")"
cd "$folder/archives"
if [ -n "$only" ]; then
  own_apt download "$@" >>"$folder/apt.log" 2>&1 || fail "apt-get download failed: $(tail -n 3 "$folder/apt.log")"
else
  own_apt install --download-only "$@" >>"$folder/apt.log" 2>&1 || fail "apt-get failed: $(tail -n 3 "$folder/apt.log")"
fi

for name in bin sbin lib lib64; do ln -sfn "usr/$name" "$root/$name"; done
for package in "$folder"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar --extract --directory "$root" --keep-directory-symlink --no-same-owner
  # As dpkg keeps it, for what lists packages.
  { dpkg-deb --field "$package" && printf 'Status: install ok installed\n\n'; } >>"$root/var/lib/dpkg/status"
done
rm -rf "$root"/usr/share/{doc,man,info,locale,lintian} "$folder/lists" "$folder/archives"
