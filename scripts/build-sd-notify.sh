#!/bin/sh
# Compiles the addon of the npm package sd-notify for the pinned Node runtime. It is optional in a checkout: without it, the service
# notifies systemd through libc. Usage: build-sd-notify.sh SD_NOTIFY_FOLDER NODE_FOLDER [node-gyp options such as --arch=arm64]
set -eu
folder=$1
node=$2
shift 2
root=$(cd "$(dirname -- "$0")/.." && pwd)
# make splits the name of a folder at spaces, so the folder is used through a link without spaces.
link=$(mktemp -d)
trap 'rm -r "$link"' EXIT
ln -s "$node" "$link/node"
node=$link/node
# Use the runtime's own headers. npm may be configured for those of another Node, and the variable overrides the option.
export npm_config_nodedir="$node"
# Python must not write bytecode into node_modules.
export PYTHONDONTWRITEBYTECODE=1
cd "$folder"
"$root/node_modules/node/bin/node" "$root/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir="$node" "$@"
