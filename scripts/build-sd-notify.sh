#!/bin/sh
# Compiles the addon of the npm package sd-notify for the pinned Node runtime. Not needed in a checkout: where it is missing the service
# talks to systemd through libc. Usage: build-sd-notify.sh SD_NOTIFY_FOLDER NODE_FOLDER [node-gyp options, as --arch=arm64]
set -eu
folder=$1
node=$2
shift 2
root=$(cd "$(dirname -- "$0")/.." && pwd)
# make takes a folder's name apart at its spaces.
link=$(mktemp -d)
trap 'rm -r "$link"' EXIT
ln -s "$node" "$link/node"
node=$link/node
# The runtime's own headers; npm may be set to build against those of another Node, and the variable would win over the option.
export npm_config_nodedir="$node"
# node-gyp's Python programs stay as they were installed.
export PYTHONDONTWRITEBYTECODE=1
cd "$folder"
"$root/node_modules/node/bin/node" "$root/node_modules/node-gyp/bin/node-gyp.js" rebuild --nodedir="$node" "$@"
