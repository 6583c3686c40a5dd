#!/bin/sh
# Installs the packages of package-lock.json unless that was done already for this very file, and compiles what can be compiled here.
set -eu
cd "$(dirname -- "$0")/.."

install_packages() {
  wanted=$(cksum < package-lock.json)
  if [ -x node_modules/node/bin/node ] && [ "$(cat node_modules/.edge-health-installed 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  echo "Installing packages (once, about half a minute)..." >&2
  npm ci --no-fund --no-audit >&2
  # npm can be told not to run install scripts; the pinned runtime comes by one.
  [ -x node_modules/node/bin/node ] || npm rebuild node >&2
  if [ ! -x node_modules/node/bin/node ]; then
    echo "The Node runtime (npm package 'node') could not be installed; see the messages above." >&2
    exit 1
  fi
  # Makes the test runner without its TypeScript compiler, as .taprc says; Node runs the tests as they are.
  PATH="$PWD/node_modules/.bin:$PATH" tap build >&2
  echo "$wanted" > node_modules/.edge-health-installed
}

# The addon of sd-notify is optional in a checkout: what it is made with may be missing, now or until later.
build_sd_notify() {
  folder=$PWD/node_modules/sd-notify
  [ -f "$folder/binding.gyp" ] && [ ! -f "$folder/build/Release/notify.node" ] || return 0
  [ -f /usr/include/systemd/sd-daemon.h ] && command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null || return 0
  headers=$(ls -d "$PWD"/node_modules/node/node_modules/node-linux-* | head -n 1)
  sh scripts/build-sd-notify.sh "$folder" "$headers" >node_modules/.sd-notify.log 2>&1 ||
    echo "The addon of sd-notify could not be compiled (node_modules/.sd-notify.log); systemd is notified without it." >&2
}

install_packages
build_sd_notify
