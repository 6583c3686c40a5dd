/** An action that the sandbox forbids. */
export interface Probe {
  /** A shell script; it succeeds if the action is possible. */
  readonly script: string;
  /** Which user can perform it outside of the sandbox, which shows that the script is right: the service's own user, or root. */
  readonly control: 'user' | 'root';
}

/** Numbers of system calls by `uname -m`; perl is on every Debian and can make any of them. */
const CALLS = {
  acct: [163, 89],
  bpf: [321, 280],
  clock_settime: [227, 112],
  init_module: [175, 105],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  perf_event_open: [298, 241],
  pivot_root: [155, 41],
  reboot: [169, 142],
  swapon: [167, 224],
} as const;

/**
 * Makes a system call with arguments that are wrong: where it is forbidden the answer is EPERM, otherwise the kernel gets as far as
 * looking at them, and nothing happens.
 */
function call(name: keyof typeof CALLS, ...args: readonly string[]): string {
  const [x64, arm64] = CALLS[name];
  const list = [`$ENV{M} eq "aarch64" ? ${arm64} : ${x64}`, ...args].join(', ');
  return `M=$(uname -m) perl -MErrno=EPERM -e 'my $n = pack("qq", 0, 2e9); exit(syscall(${list}) < 0 && $! == EPERM)'`;
}

/** Opens a socket of a family and a type, by their numbers. */
const socket = (family: number, type: number, protocol = 0): string =>
  `perl -MSocket -e 'socket(my $s, ${family}, ${type}, ${protocol}) or die "$!"'`;

/**
 * What `prepare` creates: files that every user may write to or read, so that the sandbox forbids the action and not a mode; and kernel
 * parameters as a machine has them, which systemd-nspawn makes read-only.
 */
export const PREPARE = `
mkdir -p /srv/open /home/alice /usr/local/lib/open
chmod 1777 /srv/open /usr/local/lib/open
echo secret > /home/alice/notes; chmod 755 /home/alice; chmod 644 /home/alice/notes
install -m 4755 "$(command -v id)" /usr/local/bin/id-as-root
echo 'shared' > /tmp/of-another; chmod 666 /tmp/of-another
mount -o remount,bind,rw /proc/sys
sleep 900 </dev/null >/dev/null 2>&1 & echo $! > /run/other-process`;

export const PROBES: Readonly<Record<string, Probe>> = {
  'write to a folder that is open to all': { control: 'user', script: 'echo x > /srv/open/file && rm /srv/open/file' },
  'write below /usr': { control: 'user', script: 'echo x > /usr/local/lib/open/file && rm /usr/local/lib/open/file' },
  'write its own configuration': { control: 'root', script: 'echo "# x" >> /etc/edge-health/edge_health_config.yaml' },
  'add a hook': { control: 'root', script: 'echo x > /etc/edge-health/shutdown.d/own && rm /etc/edge-health/shutdown.d/own' },
  'change its own program': { control: 'root', script: 'touch /usr/lib/edge-health/dist/main.cjs' },
  'write in /var/log': { control: 'root', script: 'echo x > /var/log/own && rm /var/log/own' },
  'see the /tmp of others': { control: 'user', script: 'cat /tmp/of-another' },
  'read a home folder that is open to all': { control: 'user', script: 'cat /home/alice/notes' },
  'list /home': { control: 'user', script: 'ls /home/alice' },
  'list /root': { control: 'root', script: 'ls /root' },

  'become root through a setuid program': { control: 'user', script: '/usr/local/bin/id-as-root -u | grep -x 0' },
  'become root through su': { control: 'root', script: 'su -s /bin/true root </dev/null' },
  'become another user': { control: 'root', script: `perl -MPOSIX -e 'exit(!(setuid(1) && $< == 1))'` },
  'change the owner of a file': {
    control: 'root',
    script: 'touch "$PWD/.own" && { chown 1:1 "$PWD/.own"; result=$?; rm "$PWD/.own"; exit $result; }',
  },
  'make a setuid file': {
    control: 'user',
    script: 'cd /run/edge-health* && cp /bin/true own && { chmod 4755 own; result=$?; rm own; exit $result; }',
  },
  'make a device': { control: 'root', script: 'mknod "$PWD/.own" c 1 3 && rm "$PWD/.own"' },

  'load a kernel module': { control: 'root', script: call('init_module', '0', '0', '0') },
  'load a program into the kernel': { control: 'root', script: call('bpf', '9999', '0', '0') },
  'load another kernel': { control: 'root', script: call('kexec_load', '0', '1', '0', '-1') },
  'power off past logind': { control: 'root', script: call('reboot', '1', '2', '3', '0') },
  'set the clock': { control: 'root', script: call('clock_settime', '0', '$n') },
  'use the keys of the kernel': { control: 'root', script: call('keyctl', '9999', '0', '0', '0', '0') },
  'use performance counters': { control: 'root', script: call('perf_event_open', '0', '0', '0', '0', '0') },
  'switch swap': { control: 'root', script: call('swapon', '0', '0') },
  'account processes': { control: 'root', script: call('acct', '-1') },
  'change the root folder': { control: 'root', script: call('pivot_root', '0', '0') },
  'set the name of the machine': { control: 'root', script: 'hostname "$(hostname)"' },
  'change the personality': { control: 'user', script: 'setarch --addr-no-randomize true' },
  'be scheduled in real time': { control: 'root', script: 'chrt --fifo 1 true' },

  mount: { control: 'root', script: 'mount -t tmpfs none /mnt && umount /mnt' },
  'mount in a namespace of its own': { control: 'user', script: 'unshare --user --map-root-user --mount true' },
  'make a network namespace': { control: 'root', script: 'unshare --net true' },
  'enter the namespaces of process 1': { control: 'root', script: 'nsenter --target 1 --mount true' },

  'set kernel parameters': { control: 'root', script: 'echo 0 > /proc/sys/net/ipv4/ip_forward' },
  'write to control groups': {
    control: 'root',
    script: 'group=$(find /sys/fs/cgroup -type d -name system.slice | head -1); mkdir "$group/own" && rmdir "$group/own"',
  },
  'read the log of the kernel': { control: 'root', script: 'dmesg' },
  'see devices': { control: 'root', script: 'test -e /dev/console -o -e /dev/kmsg' },
  'look into another process': { control: 'root', script: 'cat "/proc/$(cat /run/other-process)/environ" > /dev/null' },
  'stop another process': { control: 'root', script: 'kill -CONT "$(cat /run/other-process)"' },

  'open a packet socket': { control: 'root', script: socket(17, 3) },
  'open a raw socket': { control: 'root', script: socket(2, 3, 1) },
  'open a socket between virtual machines': { control: 'user', script: socket(40, 1) },
  'listen on a port of the system': {
    control: 'root',
    script: `perl -MSocket -e 'socket(my $s, AF_INET, SOCK_STREAM, 0) or die $!; bind($s, sockaddr_in(81, INADDR_LOOPBACK)) or die $!'`,
  },
};

/** What must remain possible in the sandbox; these scripts succeed in it. */
export const NEEDED: Readonly<Record<string, string>> = {
  'write to its data': 'echo x > /var/lib/edge-health/.probe && rm /var/lib/edge-health/.probe',
  'write to its folder in memory': 'cd "$RUNTIME_DIRECTORY" && echo x > probe && rm probe',
  'write to a /tmp of its own': 'echo x > /tmp/probe && rm /tmp/probe',
  'read its configuration': 'cat /etc/edge-health/edge_health_config.yaml',
  'read what is measured': 'cat /proc/stat /proc/meminfo /proc/1/stat && df /',
  'use shared memory, as DDS does': 'echo x > /dev/shm/edge-health-probe && rm /dev/shm/edge-health-probe',
  'schedule threads in the usual way, as Fast DDS does': 'chrt --other 0 true',
  'run programs of its own': `perl -e 'exit(system("true"))'`,
  'ask logind': 'busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager CanPowerOff',
  'ask for the network interfaces': socket(16, 3, 0),
};
