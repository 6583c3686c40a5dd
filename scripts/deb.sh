#!/bin/sh
# npm run deb: installs and builds what is missing or out of date, then builds the Debian package; --help shows the options.
set -eu
cd "$(dirname -- "$0")/.."
# As root, missing packages are installed here; for other users, the build lists them.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  case " $(dpkg --print-architecture) $* " in
    " amd64 "*arm64*) cross=g++-aarch64-linux-gnu ;;
    " arm64 "*amd64*) cross=g++-x86-64-linux-gnu ;;
    *) cross= ;;
  esac
  # shellcheck disable=SC2086 # a word or none
  sh scripts/debian-packages.sh "npm run deb" build-essential debhelper dpkg-dev libatomic1 libsystemd-dev patchelf python3 xz-utils $cross || true
fi
sh scripts/install.sh
node="node_modules/node/bin/node --disable-warning=ExperimentalWarning"
case " $* " in
  *" --help "* | *" -h "*) exec $node scripts/deb/main.ts --help ;;
esac
# Only one build at a time, because builds share build/ and dist/.
mkdir -p build
exec 9> build/deb.lock
flock --nonblock 9 || { echo "Another build of the package is in progress; waiting for it..." >&2; flock 9; }
sh scripts/build.sh
exec $node scripts/deb/main.ts "$@"
