#!/bin/sh
# npm run bench: measures edge-health beside its rivals and writes bench/RESULTS.md; --help tells the options.
set -eu
cd "$(dirname -- "$0")/.."
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "*) exec $node bench/main.ts --help ;;
esac
sh scripts/build.sh

has() { command -v "$1" > /dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }
missing=
has collectd || missing="$missing collectd-core"
has prometheus-node-exporter || has node_exporter || missing="$missing prometheus-node-exporter"
# The subscribers of `ros`: two DDS implementations with their code generators, a compiler, and network namespaces for them.
case " $* " in
  *--only*ros*) ros=1 ;;
  *--only*) ros= ;;
  *) ros=1 ;;
esac
if [ -n "$ros" ] && has dpkg-query; then
  for package in cyclonedds-dev cyclonedds-tools fastddsgen g++ iproute2 libfastrtps-dev make; do
    dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
fi
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086 # a list of words
  if sh scripts/debian-packages.sh "npm run bench" $missing; then
    # Nor are their services wanted at the next boot.
    if [ -d /run/systemd/system ]; then
      for unit in collectd prometheus-node-exporter; do
        case $missing in *$unit*) systemctl -q disable $unit 2> /dev/null || true ;; esac
      done
    fi
  else
    echo "What needs them is measured without a rival, or not at all." >&2
  fi
fi
exec $node bench/main.ts "$@"
