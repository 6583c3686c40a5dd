#!/bin/sh
# Builds dist/ unless it is newer than all of its sources.
set -eu
cd "$(dirname -- "$0")/.."
if [ -f dist/.built ] && [ -z "$(find src ops harness dashboard scripts/build.ts scripts/dashboard.ts scripts/harness-chart.ts docs/openapi.json package-lock.json -newer dist/.built -type f -print 2>/dev/null | head -n 1)" ]; then
  exit 0
fi
echo "Building..." >&2
exec node_modules/node/bin/node --disable-warning=ExperimentalWarning scripts/build.ts
