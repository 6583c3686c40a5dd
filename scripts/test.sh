#!/bin/sh
# npm test: installs what the suites need, builds, checks, and runs every test. Last line: "N passed, N failed, N skipped".
set -eu
cd "$(dirname -- "$0")/.."

# Debian packages of the suites: a browser for the dashboard, promtool for /metrics, faketime for clock steps,
# two DDS implementations with their code generators and a compiler for the peers of the ROS 2 suites, python3 for their launch file.
packages="chromium cyclonedds-dev cyclonedds-tools faketime fastddsgen g++ iproute2 libfastrtps-dev libsystemd-dev make procps prometheus python3"
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Debian packages:$missing" >&2
    apt-get update -qq >&2
    # Packages that start a service are only wanted for their programs.
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d.edge-health
    chmod +x /usr/sbin/policy-rc.d.edge-health
    [ -e /usr/sbin/policy-rc.d ] || { mv /usr/sbin/policy-rc.d.edge-health /usr/sbin/policy-rc.d; ours=1; }
    status=0
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 || status=$?
    rm -f /usr/sbin/policy-rc.d.edge-health
    [ -z "${ours:-}" ] || rm -f /usr/sbin/policy-rc.d
    [ "$status" = 0 ] || exit "$status"
  else
    echo "Some suites will be skipped. To run them all: sudo apt-get install -y --no-install-recommends $packages" >&2
  fi
fi

sh scripts/install.sh
sh scripts/build.sh
npm run --silent check
exec node_modules/node/bin/node --disable-warning=ExperimentalWarning scripts/run-tests.ts "$@"
