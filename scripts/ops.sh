#!/bin/sh
# npm run ops, npm run ops:NAME: installs and builds what is missing or out of date, then executes `edge-health ops NAME`.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
exec bin/edge-health ops "$@"
