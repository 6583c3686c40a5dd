#!/bin/sh
# npm run test:deliberate-faults: inserts faults into a copy of the checkout, one by one, and fails if the quick tests miss one; --help.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
sh scripts/build.sh
PATH="$PWD/node_modules/.bin:$PATH"
exec node --disable-warning=ExperimentalWarning scripts/tests/deliberate-faults.ts "$@"
