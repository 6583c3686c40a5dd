#!/bin/sh
# npm run gauntlet: tries faults on the installed package in containers; --help tells the options.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "* | *" --list "*) exec $node harness/gauntlet/main.ts "$@" ;;
esac
if [ "$(id -u)" != 0 ]; then
  echo "gauntlet: needs root, to boot containers: sudo npm run gauntlet" >&2
  exit 69
fi
# What the package is built with, containers to install it in, and a DDS implementation with its compiler for the subscriber.
packages="cyclonedds-dev cyclonedds-tools debhelper debootstrap e2fsprogs faketime fastddsgen g++ iproute2 libfastrtps-dev libsystemd-dev make patchelf procps systemd-container"
if command -v dpkg-query >/dev/null 2>&1; then
  # shellcheck disable=SC2086 # a list of words
  sh scripts/debian-packages.sh "npm run gauntlet" $packages || exit 69
fi
exec $node harness/gauntlet/main.ts "$@"
