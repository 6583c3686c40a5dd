#!/bin/sh
# Runs the service of a checkout and its scheduler, and restarts them as their units would. It outlives the harness, so that a resumed run
# finds the same service.
#
#   service-supervisor.sh FOLDER EDGE_HEALTH CONFIG
#
# In FOLDER: supervisor.pid (process id and start time), service.pid and ops.pid, their logs, and exits.ndjson, a line for each exit of the
# service. SIGTERM ends all processes, and so does the removal of the folder.
set -u
folder=$1 edge_health=$2 config=$3
ended=

# supervise NAME SECONDS BURST CODES COMMAND…: as Restart=on-failure with RestartSec, StartLimitBurst in a minute (0: no limit) and
# RestartPreventExitStatus.
supervise() {
  name=$1 pause=$2 burst=$3 codes=$4 child='' failures=''
  shift 4
  trap 'ended=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM
  while [ -z "$ended" ]; do
    "$@" </dev/null >>"$folder/$name.log" 2>&1 &
    child=$!
    echo "$child" >"$folder/$name.pid"
    wait "$child"
    code=$?
    # A signal for this shell ends the wait before the child has ended.
    while kill -0 "$child" 2>/dev/null; do
      wait "$child"
      code=$?
    done
    [ "$name" != service ] || record_exit "$child" "$code"
    child=
    # Without an error, or by SIGHUP, SIGINT, SIGPIPE or SIGTERM.
    case " 0 129 130 141 143 $codes " in *" $code "*) return ;; esac
    now=$(date +%s) recent='' count=0
    for time in $failures $now; do
      if [ "$time" -gt $((now - 60)) ]; then recent="$recent $time" count=$((count + 1)); fi
    done
    failures=$recent
    if [ "$burst" -gt 0 ] && [ "$count" -ge "$burst" ]; then return; fi
    [ -n "$ended" ] || pause_for "$pause"
  done
}

# record_exit PID STATUS
record_exit() {
  [ -d "$folder" ] || return
  signal='' how="\"code\":$2,\"signal\":null"
  [ "$2" -le 128 ] || signal=$(kill -l "$2" 2>/dev/null)
  [ -z "$signal" ] || how="\"code\":null,\"signal\":\"$signal\""
  [ -z "$ended" ] || how="$how,\"stopped\":true"
  echo "{\"at\":$(date +%s%3N),\"pid\":$1,$how}" >>"$folder/exits.ndjson"
}

# Sleeps in the background, so that a signal takes effect at once.
pause_for() {
  sleep "$1" &
  sleeper=$!
  wait "$sleeper"
  kill "$sleeper" 2>/dev/null
}

trap 'ended=1' TERM
trap '' HUP INT
# The start time, field 22 of proc(5), distinguishes this process from a later one of the same id.
echo "$$ $(cut -d ' ' -f 22 /proc/$$/stat)" >"$folder/supervisor.pid"
supervise service 1 5 '64 69 78' "$edge_health" run --config "$config" &
service=$!
supervise ops 10 0 '3 64 69 78' "$edge_health" ops run --config "$config" &
ops=$!
while [ -z "$ended" ] && [ -f "$folder/supervisor.pid" ]; do
  kill -0 "$service" 2>/dev/null || kill -0 "$ops" 2>/dev/null || break
  pause_for 5
done
# Signalled until they have exited: a shell loses a signal that arrives while it starts a command.
while kill -0 "$ops" 2>/dev/null || kill -0 "$service" 2>/dev/null; do
  kill -TERM "$ops" "$service" 2>/dev/null
  pause_for 0.3
done
rm -f "$folder/supervisor.pid" 2>/dev/null
