#!/bin/bash
# Creates file systems for containers and caches them. Needs root. Prints the folder.
#   images.sh root SUITE             a minimal Debian with systemd and the dependencies of the package
#   images.sh bare SUITE             a minimal Debian with Debian's Node, npm and git
#   images.sh installed SUITE DEB    the overlay layer of `apt-get install DEB` on top of `root`, without a boot
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
cache=${EDGE_HEALTH_TEST_CACHE:-/var/cache/edge-health-test}
packages=curl,dbus,iproute2,kmod,libnss-systemd,libpam-systemd,libstdc++6,polkitd,procps,systemd,systemd-sysv
# Increase it when the steps after debootstrap change.
revision=1
unused_layers_stay_minutes=60

short_hash() { sha256sum | cut -c1-12; }

# The apt mirror of this machine if it runs Debian; otherwise debootstrap's default.
mirror() {
  local id codename
  # shellcheck source=/dev/null
  id=$(. /etc/os-release && echo "$ID")
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ "$id" = debian ] || return 0
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --format '$(RELEASE) $(SITE)' | awk -v codename="$codename" '$1 == codename { print $2; exit }'
}

root() {
  local suite=$1 folder part
  folder=$cache/$suite-$(printf '%s' "$packages $revision" | short_hash)
  if [ ! -d "$folder" ]; then
    part=$folder.part
    rm -rf --one-file-system "$part"
    # shellcheck disable=SC2046 # no argument where there is no mirror
    unshare --mount --propagation private \
      debootstrap --variant=minbase --cache-dir="$cache/debs" --include="$packages" "$suite" "$part" $(mirror) >"$folder.log" 2>&1 ||
      { tail -n 20 "$folder.log" >&2; exit 1; }
    rm -f "$part"/var/cache/apt/archives/*.deb "$part"/etc/apt/sources.list
    # Without a machine id systemd would treat the boot as the first one and apply its unit presets.
    systemd-machine-id-setup --root="$part" >/dev/null 2>&1
    # Maintenance timers would disturb measurements.
    systemctl --root="$part" --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
    mv "$part" "$folder"
  fi
  echo "$folder"
}

bare() {
  local suite=$1 folder part
  folder=$cache/bare-$suite-$revision
  if [ ! -d "$folder" ]; then
    part=$folder.part
    rm -rf --one-file-system "$part"
    # shellcheck disable=SC2046 # no argument where there is no mirror
    if ! {
      unshare --mount --propagation private \
        debootstrap --variant=minbase --cache-dir="$cache/debs" "$suite" "$part" $(mirror) &&
        cp /etc/resolv.conf "$part/etc/resolv.conf" &&
        chroot "$part" apt-get install -y -q --no-install-recommends ca-certificates git nodejs npm
    } >"$folder.log" 2>&1; then
      tail -n 20 "$folder.log" >&2
      exit 1
    fi
    rm -f "$part"/var/cache/apt/archives/*.deb
    mv "$part" "$folder"
  fi
  echo "$folder"
}

install_in() { # runs in a separate mount namespace
  local lower=$1 layer=$2 deb=$3 merged
  merged=$layer/merged
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$layer/upper,workdir=$layer/work" "$merged"
  cp "$deb" "$merged/tmp/edge-health.deb"
  chroot "$merged" apt-get install -y -o DPkg::Options::=--force-unsafe-io /tmp/edge-health.deb
  rm "$merged/tmp/edge-health.deb"
  umount "$merged"
}

# Removes layers that were not requested for a while and that no running container uses.
remove_unused() {
  local old
  find "$cache/layers" -mindepth 1 -maxdepth 1 -mmin +"$unused_layers_stay_minutes" -print0 | while IFS= read -r -d '' old; do
    grep -qsF "$old" /proc/[0-9]*/mountinfo || rm -rf --one-file-system "$old"
  done
}

installed() {
  local suite=$1 deb=$2 lower folder part
  lower=$(root "$suite")
  folder=$cache/layers/$suite-$( (echo "$lower"; cat "$deb") | short_hash)
  if [ ! -d "$folder" ]; then
    remove_unused
    part=$folder.part
    rm -rf --one-file-system "$part"
    mkdir -p "$part/upper" "$part/work" "$part/merged"
    unshare --mount --propagation private --net --pid --fork "$0" install-in "$lower" "$part" "$deb" >"$folder.log" 2>&1 ||
      { tail -n 20 "$folder.log" >&2; exit 1; }
    mv "$part/upper" "$folder"
    rm -rf --one-file-system "$part"
  fi
  touch "$folder" "$folder.log"
  echo "$folder:$lower"
}

case ${1:-} in
  install-in) install_in "$2" "$3" "$4" ;;
  root | bare | installed)
    mkdir -p "$cache/debs" "$cache/layers"
    exec 9>"$cache/lock"
    flock 9
    "$@" 9>&-
    ;;
  *) sed -n 2,5p "$0" >&2; exit 64 ;;
esac
