#!/bin/sh
# npm run roles: installs and builds what is missing or out of date, then runs one process per role until Ctrl-C.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
exec node_modules/node/bin/node --disable-warning=ExperimentalWarning scripts/roles.ts "$@"
