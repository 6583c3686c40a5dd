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
  if [ "$(id -u)" = 0 ] && has apt-get; then
    echo "Installing what is measured against:$missing..." >&2
    # The packages would start their programs as services; the benchmark starts them itself.
    policy=/usr/sbin/policy-rc.d
    if [ -e $policy ]; then
      policy=
    else
      printf '#!/bin/sh\nexit 101\n' > $policy
      chmod 755 $policy
      trap 'rm -f $policy' EXIT
      trap 'exit 1' INT TERM
    fi
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y -q --no-install-recommends $missing >&2 ||
      { apt-get update -q >&2 && apt-get install -y -q --no-install-recommends $missing >&2; } ||
      echo "They could not be installed; what needs them is measured without a rival, or not at all." >&2
    [ -z "$policy" ] || rm -f $policy
    trap - EXIT INT TERM
    # Nor at the next boot.
    if [ -d /run/systemd/system ]; then
      for unit in collectd prometheus-node-exporter; do
        case $missing in *$unit*) systemctl -q disable $unit 2> /dev/null || true ;; esac
      done
    fi
  else
    echo "Not installed, so measured without them, or not at all; on Debian: apt-get install --no-install-recommends$missing" >&2
  fi
fi
exec $node bench/main.ts "$@"
