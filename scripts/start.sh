#!/bin/sh
# npm start: installs and builds what is missing or out of date, then executes the service.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
exec bin/edge-health run "$@"
