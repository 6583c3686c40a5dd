#!/bin/sh
# npm run test:system: the tests that need root, Debian packages and systemd; --help lists its parts.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
PATH="$PWD/node_modules/.bin:$PATH"
run="node --disable-warning=ExperimentalWarning scripts/tests/run.ts --system"
case " $* " in
  *" --help "* | *" -h "*) exec $run --help ;;
esac
packages=$($run --packages "$@") || exit
if [ "$(id -u)" != 0 ]; then
  echo "npm run test:system needs root on Debian 12: sudo npm run test:system" >&2
  exit 69
fi
# The tests distinguish the client of Docker from that of Podman by its output; Docker's engine need not run.
case " $packages " in *" podman "*) command -v docker >/dev/null || packages="$packages docker.io" ;; esac
# shellcheck disable=SC2086 # a list of words
sh scripts/debian-packages.sh "npm run test:system" $packages
sh scripts/build.sh
exec $run "$@"
