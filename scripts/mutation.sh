#!/bin/sh
# Tries the tests of the engine: changes its code in some 2,000 places, one at a time, and fails when no test notices a change that
# nobody has reviewed (harness/mutation/reviewed.ts). Writes build/mutation/mutation.md. Arguments go to Stryker.
set -eu
cd "$(dirname "$0")/.."
PATH=$PWD/node_modules/.bin:$PATH
rm -rf build/mutation
stryker run harness/mutation/stryker.config.mjs "$@"
exec node harness/mutation/check.ts build/mutation
