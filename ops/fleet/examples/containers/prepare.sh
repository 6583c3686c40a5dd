#!/bin/sh
# prepare.sh: makes the files that compose.yaml mounts and that are yours: which robots, to whom alerts go, secrets. What is there
# already stays as it is, so it can be run again.
set -eu
cd "$(dirname -- "$0")"
fleet=../..

made() { echo "made $1: $2"; }

mkdir -p targets secrets
# The files must be readable for the users of the containers and for no other user of this machine: the folder itself is closed.
chmod 700 secrets
mkdir -p secrets/prometheus secrets/alertmanager secrets/grafana
[ -e targets/robots.yml ] || { cp $fleet/prometheus/targets/robots.yml targets/ && made targets/robots.yml 'list your robots in it'; }
[ -e alertmanager.yml ] || { cp $fleet/alertmanager/alertmanager.yml . && made alertmanager.yml 'say in it to whom alerts go'; }
if [ ! -e secrets/prometheus/edge-health.token ]; then
  : >secrets/prometheus/edge-health.token
  made secrets/prometheus/edge-health.token 'put in what rest.token_file of the appliances has, if they have one'
fi
for name in smtp-password pager.token; do
  if [ ! -e "secrets/alertmanager/$name" ]; then
    : >"secrets/alertmanager/$name"
    made "secrets/alertmanager/$name" 'as alertmanager.yml needs it'
  fi
done
if [ ! -e secrets/grafana/admin-password ]; then
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >secrets/grafana/admin-password
  made secrets/grafana/admin-password "the password of Grafana's user admin"
fi
chmod 755 secrets/* targets
chmod 644 secrets/*/* targets/* alertmanager.yml
