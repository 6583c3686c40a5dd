#!/bin/sh
# npm test: installs what the suites need, builds, checks, and runs every test. Last line: "N passed, N failed, N skipped".
set -eu
cd "$(dirname -- "$0")/.."

# Debian packages of the suites: a browser for the dashboard, promtool for /metrics, faketime for clock steps,
# Prometheus, Alertmanager and a DNS server for the fleet, Podman with an image made of busybox, a mail server, rsync and rclone for
# operations,
# two DDS implementations with their code generators and a compiler for the peers of the ROS 2 suites, python3 for their launch file,
# what boots Debian with a real systemd in containers, and what the Debian package is built, checked and (arm64) emulated with.
packages="build-essential busybox-static chromium crun cyclonedds-dev cyclonedds-tools debhelper debootstrap dnsmasq-base e2fsprogs faketime fastddsgen g++ g++-aarch64-linux-gnu iproute2 libfastrtps-dev libsystemd-dev lintian make man-db mandoc patchelf openssl podman procps prometheus prometheus-alertmanager python3 python3-aiosmtpd qemu-user-static rclone rsync systemd-container zstd"
# The client of Docker, which is told from Podman by its answers; its engine need not run.
command -v docker >/dev/null || packages="$packages docker.io"
# shellcheck disable=SC2086 # a list of words
sh scripts/debian-packages.sh "npm test" $packages || echo "Some suites will be skipped." >&2

sh scripts/install.sh
sh scripts/build.sh
npm run --silent check
exec node_modules/node/bin/node --disable-warning=ExperimentalWarning scripts/run-tests.ts "$@"
