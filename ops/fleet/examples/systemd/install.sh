#!/bin/sh
# install.sh: configures Prometheus and Alertmanager of Debian or Ubuntu for a fleet of edge-health appliances. Run it as root, and again
# after an upgrade of edge-health: rules and templates are replaced, everything else is kept.
#   --root DIR       write below DIR; change no package and no service
#   --runbooks URL   address of the published runbook, for the links in alerts; default: the documentation on this machine
set -eu

root=
runbooks=
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=${2:?--root needs a folder}; shift 2 ;;
    --runbooks) runbooks=${2:?--runbooks needs an address}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "install.sh: unknown option $1; see --help" >&2; exit 64 ;;
  esac
done
fleet=$(cd "$(dirname -- "$0")/../.." && pwd)
etc=$root/etc/prometheus

if [ -z "$root" ]; then
  [ "$(id -u)" = 0 ] || { echo "install.sh: needs root: sudo $0" >&2; exit 1; }
  if ! command -v prometheus >/dev/null || ! command -v prometheus-alertmanager >/dev/null; then
    apt-get install -y --no-install-recommends prometheus prometheus-alertmanager ||
      { echo "install.sh: prometheus and prometheus-alertmanager could not be installed; try: apt-get update" >&2; exit 1; }
  fi
fi

# Check the staged files before any file is changed.
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir -p "$staged/targets" "$staged/secrets"
cp -r "$fleet/prometheus/prometheus.yml" "$fleet/prometheus/rules" "$fleet/prometheus/alertmanagers" "$staged/"
cp "$fleet/prometheus/targets/robots.yml" "$staged/targets/"
cp -r "$fleet/alertmanager/alertmanager.yml" "$fleet/alertmanager/alertmanager_templates" "$staged/"
: >"$staged/secrets/edge-health.token"
if [ -n "$runbooks" ]; then
  sed -i "s|runbook_url: /usr/share/doc/edge-health/fleet/runbook.md|runbook_url: $(printf '%s' "$runbooks" | sed 's/[&|\\]/\\&/g')|" "$staged"/rules/*.yml
fi
promtool check config "$staged/prometheus.yml" >"$staged/report" 2>&1 || { cat "$staged/report" >&2; exit 1; }
amtool check-config "$staged/alertmanager.yml" >"$staged/report" 2>&1 || { cat "$staged/report" >&2; exit 1; }

changed=0
# place FILE MODE: replaces the file if it differs. It is written to a temporary file and renamed, because Prometheus may read it at any time.
place() {
  ! cmp -s "$staged/$1" "$etc/$1" || return 0
  mkdir -p "$(dirname -- "$etc/$1")"
  cp "$staged/$1" "$etc/$1.new"
  chmod "$2" "$etc/$1.new"
  mv -f "$etc/$1.new" "$etc/$1"
  changed=1
  echo "wrote $etc/$1"
}
# place_editable FILE MODE: places the file unless it exists and is not Debian's unchanged configuration file.
place_editable() {
  if [ -e "$etc/$1" ] && ! is_unchanged "$1"; then
    cmp -s "$staged/$1" "$etc/$1" || echo "kept $etc/$1"
    return 0
  fi
  [ ! -e "$etc/$1" ] || cp -p "$etc/$1" "$etc/$1.debian"
  place "$1" "$2"
}
# is_unchanged FILE: whether it is a configuration file of a Debian package without local changes.
is_unchanged() {
  sum=$(dpkg-query -W -f='${Conffiles}\n' prometheus prometheus-alertmanager 2>/dev/null | awk -v f="/etc/prometheus/$1" '$1 == f { print $2 }')
  [ -n "$sum" ] && [ "$sum" = "$(md5sum <"$etc/$1" | cut -d' ' -f1)" ]
}
# reload UNIT: restarts it if it cannot be reloaded. The reload of Debian's units needs /bin/kill, which a minimal system lacks.
reload() {
  systemctl reset-failed "$1" 2>/dev/null || true
  systemctl reload "$1" 2>/dev/null || systemctl restart "$1" ||
    { echo "install.sh: $1 does not start; see: journalctl -u $1" >&2; exit 1; }
}

mkdir -p "$etc/targets" "$etc/secrets"
for file in "$staged"/rules/*.yml "$staged"/alertmanager_templates/*.tmpl; do
  place "${file#"$staged"/}" 644
done
for file in prometheus.yml alertmanager.yml alertmanagers/local.yml; do
  place_editable "$file" 644
done
[ -e "$etc/targets/robots.yml" ] || place targets/robots.yml 644
[ -e "$etc/secrets/edge-health.token" ] || place secrets/edge-health.token 640
if [ -z "$root" ]; then
  chown -R root:prometheus "$etc/secrets"
fi
chmod 750 "$etc/secrets"

# Check the installed files, which include those that were kept.
promtool check config "$etc/prometheus.yml" >"$staged/report" 2>&1 || { cat "$staged/report" >&2; exit 1; }
amtool check-config "$etc/alertmanager.yml" >"$staged/report" 2>&1 || { cat "$staged/report" >&2; exit 1; }

# Disable clustering: with it, Alertmanager does not start on a host without a private address.
arguments=$root/etc/default/prometheus-alertmanager
if grep -qx 'ARGS=""' "$arguments" 2>/dev/null; then
  sed -i 's|^ARGS=""$|ARGS="--cluster.listen-address="|' "$arguments"
  changed=1
  echo "wrote $arguments"
  # A reload does not apply new arguments.
  [ -n "$root" ] || ! [ -d /run/systemd/system ] || systemctl stop prometheus-alertmanager
fi

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  for unit in prometheus prometheus-alertmanager; do
    systemctl is-enabled --quiet $unit || systemctl enable $unit
    if [ $changed = 1 ] || ! systemctl is-active --quiet $unit; then reload $unit; fi
  done
fi
if [ -d "$root/etc/grafana/provisioning" ]; then
  for file in datasources/prometheus.yml dashboards/edge-health.yml; do
    to=$root/etc/grafana/provisioning/${file%/*}/edge-health.yml
    cmp -s "$fleet/grafana/provisioning/$file" "$to" || { install -D -m 644 "$fleet/grafana/provisioning/$file" "$to" && echo "wrote $to"; }
  done
fi
[ $changed = 1 ] || echo 'nothing to do: all files are up to date'
! grep -q 'campus\.example' "$etc/alertmanager.yml" || echo "next: set the receivers in $etc/alertmanager.yml"
grep -q "job_name: *['\"]\{0,1\}edge-health" "$etc/prometheus.yml" ||
  echo "next: $etc/prometheus.yml has no job edge-health; merge $fleet/prometheus/prometheus.yml into it"
grep -q '^ *- *targets' "$etc"/targets/* 2>/dev/null || echo "next: list your robots in $etc/targets/robots.yml"
