#!/bin/sh
# Installs the packages of package-lock.json unless this version of the file is installed, and compiles the optional addon if possible.
set -eu
cd "$(dirname -- "$0")/.."

# The user's command, for messages.
case ${npm_lifecycle_event:-} in
  start | test) command="npm $npm_lifecycle_event" ;;
  ?*) command="npm run $npm_lifecycle_event" ;;
  *) command=install.sh ;;
esac

# The pinned Node needs this library, which a minimal Debian or Ubuntu lacks.
need_libatomic() {
  for file in /lib/*/libatomic.so.1 /lib64/libatomic.so.1 /usr/lib/libatomic.so.1 /usr/lib/*/libatomic.so.1 /usr/lib64/libatomic.so.1; do
    [ ! -e "$file" ] || return 0
  done
  if command -v dpkg-query >/dev/null 2>&1; then
    sh scripts/debian-packages.sh "$command" libatomic1
  else
    echo "$command: the library libatomic.so.1 is missing; install it with the package manager of this system." >&2
    return 1
  fi
}

# Only required install scripts are run; npm before version 11 would run all of them. Warnings of npm concern the Node that runs npm;
# all programs of this checkout run with the pinned one.
install_packages() {
  wanted=$(cksum < package-lock.json)
  if [ -x node_modules/node/bin/node ] && [ "$(cat node_modules/.edge-health-installed 2>/dev/null)" = "$wanted" ]; then
    return
  fi
  echo "Installing packages (once, about a minute)..." >&2
  npm ci --ignore-scripts --no-fund --no-audit --loglevel=error >&2
  npm rebuild node --no-fund --no-audit --loglevel=error >&2
  if ! node_modules/node/bin/node --version >/dev/null; then
    echo "$command: the Node runtime (npm package 'node') could not be installed; see the messages above." >&2
    exit 1
  fi
  PATH="$PWD/node_modules/.bin:$PATH"
  # npm silently leaves out optional packages whose `engines` exclude the Node that runs npm, such as that of Debian 12 and 13. With the
  # pinned Node it installs them, but removes that Node's headers.
  if [ ! -d node_modules/rclnodejs ]; then
    NODE_OPTIONS=--no-deprecation npm install --no-save --ignore-scripts --no-fund --no-audit --loglevel=error >&2
    NODE_OPTIONS=--no-deprecation npm rebuild node --no-fund --no-audit --loglevel=error >&2
  fi
  node scripts/link-bin.mjs
  # Builds the test runner with the plugins of .taprc, without the TypeScript one, because Node runs the tests directly.
  tap build >&2
  echo "$wanted" > node_modules/.edge-health-installed
}

# The addon of sd-notify is optional in a checkout, because its build tools may be missing.
build_sd_notify() {
  folder=$PWD/node_modules/sd-notify
  [ -f "$folder/binding.gyp" ] && [ ! -f "$folder/build/Release/notify.node" ] || return 0
  [ -f /usr/include/systemd/sd-daemon.h ] && command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null || return 0
  for headers in "$PWD"/node_modules/node/node_modules/node-linux-*; do break; done
  sh scripts/build-sd-notify.sh "$folder" "$headers" >node_modules/.sd-notify.log 2>&1 ||
    echo "The addon of sd-notify could not be compiled (node_modules/.sd-notify.log); systemd is notified without it." >&2
}

need_libatomic
install_packages
build_sd_notify
