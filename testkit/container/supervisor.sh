#!/bin/bash
# One container: its file system, its control groups and systemd-nspawn. Runs in a separate mount namespace.
#   supervisor.sh NAME FOLDER LOWER NETNS [MEGABYTES MOUNTPOINT]
# LOWER: the read-only layers in the syntax of overlayfs lowerdir. MEGABYTES: mounts a disk of that size at MOUNTPOINT.
# Commands on standard input: "boot"; "cut" cuts the power. When it ends, it removes everything.
# Prints on standard output: "ready"; "started <pid of systemd-nspawn>" at every start and reboot, "ended <its exit status>"; "cut".
set -euo pipefail
export LC_ALL=C
name=$1 folder=$2 lower=$3 netns=$4 megabytes=${5:-} mountpoint=${6:-}
root=$folder/root
disk=$folder/disk.img
groups=()   # control groups of the container, one per hierarchy
running=    # the job that runs systemd-nspawn, and again after a reboot

make_groups() {
  local controllers path mount group
  if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
    for controllers in cpu io memory pids; do
      echo "+$controllers" >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
    done
    groups=("/sys/fs/cgroup/$name")
    mkdir "${groups[0]}"
    return
  fi
  while IFS=: read -r _ controllers path; do
    case $controllers in
      '') mount=/sys/fs/cgroup/unified ;;
      name=systemd) mount=/sys/fs/cgroup/systemd ;;
      cpuset) continue ;; # accepts no process before its processors are set, and systemd does not use it
      *) mount=/sys/fs/cgroup/$controllers ;;
    esac
    group=$mount${path%/}/$name
    if mkdir "$group" 2>/dev/null; then groups+=("$group"); fi
  done </proc/self/cgroup
}

remove_groups() {
  local group
  for group in "${groups[@]}"; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [ -d "$group" ] || break
      sleep 0.1
    done
  done
}

mount_disk() {
  [ -n "$megabytes" ] || return 0
  mkdir -p "$root$mountpoint"
  mount -o loop "$disk" "$root$mountpoint"
}

make_root() {
  mkdir -p "$folder/upper" "$folder/work" "$root"
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
  if [ -n "$megabytes" ]; then
    truncate -s "${megabytes}M" "$disk"
    mkfs.ext4 -q -F "$disk"
  fi
  mount_disk
  # systemd-nspawn registers its containers there; this hides those of the machine.
  mkdir -p /run/systemd/nspawn
  mount -t tmpfs tmpfs /run/systemd/nspawn
}

# Under cgroup v1 systemd-nspawn mounts the controllers read-only in the container. This init mounts the part of the container again,
# writable, and then executes systemd.
write_init() {
  cat >"$folder/init" <<'INIT'
#!/bin/sh
for folder in /sys/fs/cgroup/*; do
  case ${folder##*/} in
    systemd | unified) ;;
    *)
      if [ -d "$folder" ] && [ ! -L "$folder" ]; then
        umount "$folder" && mount -t cgroup -o "rw,nosuid,nodev,noexec,${folder##*/}" cgroup "$folder" || echo "$folder stays read-only"
      fi
      ;;
  esac
done
exec /lib/systemd/systemd "$@"
INIT
  chmod 755 "$folder/init"
}

# The PID of the container's process 1 on this machine. Other child processes of systemd-nspawn are helpers.
process_one() {
  local pid
  for pid in $(ps -o pid= --ppid "$(cat "$folder/nspawn.pid")"); do
    if grep -q '^NSpid:.*[[:space:]]1$' "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
  done
}

nspawn() {
  local group init=(--boot)
  if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
    write_init
    init=(--kill-signal=SIGRTMIN+3 --bind-ro="$folder/init:/run/container-init" /run/container-init)
  fi
  for group in "${groups[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
  echo "$BASHPID" >"$folder/nspawn.pid"
  echo "started $BASHPID"
  exec systemd-nspawn --quiet --directory="$root" --machine="$name" --register=no --keep-unit --settings=no --link-journal=no \
    --resolv-conf=off --timezone=off --console=read-only --system-call-filter=bpf --network-namespace-path="/run/netns/$netns" \
    "${init[@]}" </dev/null >>"$folder/console" 2>&1
}

run_container() {
  local status
  while true; do
    status=0
    (nspawn) &
    wait $! || status=$?
    [ "$status" = 133 ] || break # 133: the container requested a reboot
  done
  echo "ended $status"
}

# Kills process 1 and with it all processes of the container.
kill_container() {
  local pid
  [ -n "$running" ] || return 0
  # Processes that wait for a frozen file system cannot be killed.
  if [ -n "$megabytes" ]; then fsfreeze --unfreeze "$root$mountpoint" 2>/dev/null || true; fi
  while kill -0 "$running" 2>/dev/null; do
    pid=$(process_one)
    # shellcheck disable=SC2086 # none, or one
    kill -KILL ${pid:-$(cat "$folder/nspawn.pid")} 2>/dev/null || true
    # The image has the data written by now; data in the page cache is lost.
    if [ "${1:-}" = copy-disk ] && [ -n "$megabytes" ] && [ ! -e "$disk.cut" ]; then cp --sparse=always "$disk" "$disk.cut"; fi
    sleep 0.05
  done
  wait "$running" || true
  running=
}

cut() {
  kill_container copy-disk
  if [ -e "$disk.cut" ]; then
    umount "$root$mountpoint"
    mv "$disk.cut" "$disk"
    mount_disk
  fi
  echo cut
}

cleanup() {
  trap '' HUP INT TERM
  kill_container
  umount -R "$root" 2>/dev/null || umount -l "$root" 2>/dev/null || true
  remove_groups
  rm -rf --one-file-system "$folder"
}

trap cleanup EXIT
make_root
make_groups
echo ready
while read -r command; do
  case $command in
    boot) run_container & running=$! ;;
    cut) cut ;;
  esac
done
