#!/bin/sh
# npm run soak: takes as many samples as in a week within an hour, with the service of this checkout; --help lists the options.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "*) exec $node harness/soak/main.ts --help ;;
esac
sh scripts/build.sh

# For the independent subscriber, and for a network namespace (root). Without them, the soak uses loopback and only the harness.
missing=
for package in cyclonedds-dev cyclonedds-tools fastddsgen g++ iproute2 libfastrtps-dev make; do
  dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086 # a list of words
  sh scripts/debian-packages.sh "npm run soak" $missing || echo "soak: runs without an independent subscriber." >&2
fi
exec $node harness/soak/main.ts "$@"
