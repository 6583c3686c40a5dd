#!/bin/sh
# npm run faults: injects faults into the installed package in containers; --help shows the options.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "* | *" --list "*) exec $node test/faults/run.ts "$@" ;;
esac
if [ "$(id -u)" != 0 ]; then
  echo "faults: needs root, to boot containers: sudo npm run faults" >&2
  exit 69
fi
# Build tools of the package, containers in which to install it, and two DDS implementations with a compiler for the subscribers.
packages="cyclonedds-dev cyclonedds-tools debhelper debootstrap e2fsprogs faketime fastddsgen g++ iproute2 libfastrtps-dev libsystemd-dev make patchelf procps systemd-container"
if command -v dpkg-query >/dev/null 2>&1; then
  # shellcheck disable=SC2086 # a list of words
  sh scripts/debian-packages.sh "npm run faults" $packages || exit 69
fi
exec $node test/faults/run.ts "$@"
