#!/bin/sh
# npm run screenshots: takes the pictures of the dashboard in docs/images.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
exec node_modules/node/bin/node --disable-warning=ExperimentalWarning scripts/screenshots.ts "$@"
