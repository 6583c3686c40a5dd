#!/bin/sh
# prepare.sh: creates the files that compose.yaml mounts and that you edit: the list of robots, the receivers of alerts, secrets.
# Existing files are kept, so it can be run again.
set -eu
cd "$(dirname -- "$0")"
fleet=../..

created() { echo "created $1: $2"; }

mkdir -p targets secrets
# The users of the containers must be able to read the files, other users of this machine must not: the folder secrets is closed.
chmod 700 secrets
mkdir -p secrets/prometheus secrets/alertmanager secrets/grafana
[ -e targets/robots.yml ] || { cp $fleet/prometheus/targets/robots.yml targets/ && created targets/robots.yml 'list your robots in it'; }
[ -e alertmanager.yml ] || { cp $fleet/alertmanager/alertmanager.yml . && created alertmanager.yml 'set the receivers of alerts in it'; }
if [ ! -e secrets/prometheus/edge-health.token ]; then
  : >secrets/prometheus/edge-health.token
  created secrets/prometheus/edge-health.token 'enter the token from rest.token_file of the appliances, if they have one'
fi
for name in smtp-password pager.token; do
  if [ ! -e "secrets/alertmanager/$name" ]; then
    : >"secrets/alertmanager/$name"
    created "secrets/alertmanager/$name" 'enter the secret, if alertmanager.yml uses it'
  fi
done
if [ ! -e secrets/grafana/admin-password ]; then
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >secrets/grafana/admin-password
  created secrets/grafana/admin-password "the password of Grafana's user admin"
fi
chmod 755 secrets/* targets
chmod 644 secrets/*/* targets/* alertmanager.yml
