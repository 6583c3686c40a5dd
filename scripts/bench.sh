#!/bin/sh
# npm run bench: measures edge-health and other monitors and writes bench/RESULTS.md; --help shows the options.
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
# wanted NAME: succeeds if that benchmark is selected.
wanted() {
  case "$arguments" in
    *--only*"$1"*) return 0 ;;
    *--only*) return 1 ;;
  esac
}
arguments=" $* "
packages=
if wanted service; then packages="netdata-core glances"; fi
# Two DDS implementations with their code generators, a compiler, and network namespaces for the subscribers.
if wanted ros || wanted fleet; then packages="$packages cyclonedds-dev cyclonedds-tools fastddsgen g++ iproute2 libfastrtps-dev make"; fi
# Build tools of the package, and containers in which to install it.
if wanted appliance; then packages="$packages debhelper debootstrap e2fsprogs g++ iproute2 libsystemd-dev make patchelf procps systemd-container"; fi
if wanted dashboard; then packages="$packages chromium"; fi
if has dpkg-query; then
  for package in $packages; do
    dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
fi
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086 # a list of words
  if sh scripts/debian-packages.sh "npm run bench" $missing; then
    # Their services must not start at the next boot either.
    if [ -d /run/systemd/system ]; then
      for unit in collectd prometheus-node-exporter netdata glances; do
        case $missing in *$unit*) systemctl -q disable $unit 2> /dev/null || true ;; esac
      done
    fi
  else
    echo "Benchmarks that need these packages run without the comparison or are skipped." >&2
  fi
fi
exec $node bench/main.ts "$@"
