#!/bin/sh
# Mutation testing of the engine (harness/mutation/README.md). Arguments go to Stryker:
# npm run mutation -- --mutate harness/engine/criteria/performance.ts
set -eu
cd "$(dirname "$0")/.."
rm -rf build/mutation
PATH=$PWD/node_modules/.bin:$PATH exec stryker run harness/mutation/stryker.config.mjs "$@"
