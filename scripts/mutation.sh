#!/bin/sh
# Mutation testing of the engine (harness/mutation/README.md). Arguments go to Stryker:
# npm run mutation -- --mutate harness/engine/criteria/performance.ts
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
rm -rf build/mutation
stryker run harness/mutation/stryker.config.mjs "$@"
exec node harness/mutation/check.ts build/mutation/mutation.json
