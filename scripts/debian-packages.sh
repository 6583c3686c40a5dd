#!/bin/sh
# debian-packages.sh PURPOSE PACKAGE...: installs missing Debian packages; lists them if this user is not root. Their services are not
# started, because only the programs are needed. Exit status 1: packages are still missing.
set -eu
purpose=$1
shift
missing=
for package in "$@"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "$purpose: Debian packages are missing. As root: apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi
echo "$purpose: installing the Debian packages$missing" >&2
policy=/usr/sbin/policy-rc.d
log=$(mktemp)
leave() {
  [ -z "$policy" ] || rm -f "$policy"
  rm -f "$log"
}
if [ -e $policy ]; then
  policy=
else
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
fi
trap leave EXIT
trap 'exit 1' INT TERM
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
install() { apt-get install -y -qq --no-install-recommends $missing >"$log" 2>&1; }
# The package lists are updated only if the installation fails without an update. The output of apt is printed only if it fails.
install || { apt-get update -qq >&2 && install; } || {
  tail -n 20 "$log" >&2
  echo "$purpose: these could not be installed:$missing" >&2
  exit 1
}
