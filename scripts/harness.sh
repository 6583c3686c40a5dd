#!/bin/sh
# npm run harness, npm run harness:7day: installs and builds what is missing or out of date, then executes `edge-health harness run`.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
exec bin/edge-health harness run "$@"
