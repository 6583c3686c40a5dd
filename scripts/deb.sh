#!/bin/sh
# npm run deb: installs and builds what is missing or out of date, then makes the Debian package; --help tells the options.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "*) exec $node scripts/deb/main.ts --help ;;
esac
# One build at a time: they share build/ and dist/.
mkdir -p build
exec 9> build/deb.lock
flock --nonblock 9 || { echo "Another build of the package is under way; waiting for it..." >&2; flock 9; }
sh scripts/build.sh
exec $node scripts/deb/main.ts "$@"
