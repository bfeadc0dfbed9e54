#!/bin/sh
# The last step of both ways of building the image, run inside its root: a user, settings, and nothing left that makes
# no sense in a sandbox.
set -eu

# Containers run as the owner of the tenant's files; this is the user for an image that is tried by hand.
useradd --uid 1000 --user-group --no-create-home --home-dir /tmp --shell /bin/bash agent
mkdir -p /workspace
chown agent:agent /workspace
# Repositories in the workspace belong to the owner of the tenant's files; the sandbox has no other user to guard
# against.
git config --system safe.directory '*'
git config --system init.defaultBranch main

# Kept of the documentation: the licences. Kept of the package manager: its database, which scanners read.
find /usr/share/doc -mindepth 1 ! -type d ! -name copyright -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf /usr/share/man/* /usr/share/info/* /usr/share/lintian /usr/share/bug /usr/share/doc-base
find /usr/share/locale -mindepth 1 -maxdepth 1 ! -name locale.alias -exec rm -rf {} +
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/* /var/lib/dpkg/*-old /var/log/* /tmp/* /var/tmp/*
# Addresses of mirrors are this machine's business, and nothing can be installed in a sandbox.
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
rm -f /etc/machine-id /var/lib/dbus/machine-id /etc/dpkg/dpkg.cfg.d/build

# No process in the sandbox may change its user.
find / -xdev ! -type l -perm /6000 -exec chmod a-s {} +
