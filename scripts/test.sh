#!/bin/sh
# npm test: installs and builds what is missing or out of date, checks, and runs the quick tests, or those of the files given.
# Needs no root, no Debian package and no network but the npm registry. Last line: "N passed, N failed".
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
# With the Node of npm itself: Debian's npm prints deprecation warnings with the pinned one.
[ $# -gt 0 ] || npm run --silent check
PATH="$PWD/node_modules/.bin:$PATH"
# Tests that fill a disk mount a small one. Without root this needs a user namespace, if the kernel allows it.
in_namespace=
if [ "$(id -u)" != 0 ] && unshare --user --map-root-user --mount mount -t tmpfs tmpfs /mnt 2>/dev/null; then
  in_namespace="unshare --user --map-root-user --mount"
fi
exec $in_namespace node --disable-warning=ExperimentalWarning scripts/tests/run.ts "$@"
