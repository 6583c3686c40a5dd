/** The parts of `npm run test:system`, in the order in which they run; CONTRIBUTING.md has the same table. */
export interface Part {
  readonly name: string;
  /** The folder of its test files. */
  readonly folder: string;
  readonly proves: string;
  /** Requirements in addition to root and Debian 12. */
  readonly needs: string;
  /** Debian packages that the script installs. */
  readonly packages: readonly string[];
  /** Measured on two cores, without the preparations of the first run. */
  readonly minutes: number;
  /** Number of files that run in parallel; 2 by default. */
  readonly jobs?: number;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Packages for booting Debian with a real systemd, and for building the package. */
const CONTAINERS = ['debootstrap', 'e2fsprogs', 'iproute2', 'procps', 'systemd-container'];
const PACKAGE_BUILD = ['debhelper', 'g++', 'libsystemd-dev', 'make', 'patchelf', 'python3', 'zstd'];
/** The two DDS implementations with their code generators, and a compiler for the peers. */
const DDS = ['cyclonedds-dev', 'cyclonedds-tools', 'fastddsgen', 'g++', 'libfastrtps-dev', 'make', 'iproute2', 'python3'];

export const PARTS: readonly Part[] = [
  {
    name: 'install',
    folder: 'test/system/install',
    proves: '`npm start`, `npm test` and `npm run deb` set themselves up on a bare Debian 12 and 13 with its own Node and npm',
    needs: 'the npm registry, a Debian mirror',
    packages: ['debootstrap', 'procps'],
    minutes: 6,
  },
  {
    name: 'host',
    folder: 'test/system/host',
    proves: 'other users, network namespaces, loop devices, a clock that jumps, a CPU under real load, an apt repository',
    needs: 'the Debian packages',
    packages: [
      'apt-utils',
      'e2fsprogs',
      'faketime',
      'g++',
      'gpg',
      'gpg-agent',
      'iproute2',
      'libsystemd-dev',
      'make',
      'man-db',
      'mandoc',
      'procps',
      'python3',
      'shellcheck',
    ],
    minutes: 1,
    jobs: 1,
  },
  {
    name: 'dds',
    folder: 'test/system/dds',
    proves: 'the embedded transport with Cyclone DDS and Fast DDS peers: topics, services, discovery, loss, several hosts',
    needs: 'DDS peers in C and C++, network namespaces',
    packages: DDS,
    minutes: 5,
  },
  {
    name: 'browser',
    folder: 'test/system/browser',
    proves: 'the dashboard and the report in Chromium',
    needs: 'Chromium',
    packages: ['chromium'],
    minutes: 4,
  },
  {
    name: 'fleet',
    folder: 'test/system/fleet',
    proves: 'the shipped configuration in real Prometheus and Alertmanager: rules, discovery, notifications',
    needs: 'Prometheus, Alertmanager, a DNS server',
    packages: ['dnsmasq-base', 'iproute2', 'prometheus', 'prometheus-alertmanager'],
    minutes: 1,
  },
  {
    name: 'ops',
    folder: 'test/system/ops',
    proves: 'containers of a real Podman, e-mail over SMTP, backup copies by rsync and S3',
    needs: 'Podman, a mail server, rsync, rclone',
    packages: ['busybox-static', 'crun', 'e2fsprogs', 'openssl', 'podman', 'python3', 'python3-aiosmtpd', 'rclone', 'rsync', 'zstd'],
    minutes: 1,
  },
  {
    name: 'harness',
    folder: 'test/system/harness',
    proves: 'harness runs with their reports, the short soak',
    needs: 'network namespaces, a DDS peer',
    packages: DDS,
    minutes: 3,
  },
  {
    name: 'fuzz',
    folder: 'test/fuzz',
    proves: 'hundreds of thousands of mutated datagrams; the property tests with many more cases',
    needs: 'nothing',
    packages: [],
    minutes: 3,
    environment: { EDGE_HEALTH_LONG: '1' },
  },
  {
    name: 'security',
    folder: 'test/system/security',
    proves: 'attacks from the network and by other users of the machine: floods, forged datagrams, planted links, mutated input',
    needs: 'network namespaces, other users',
    packages: ['iproute2', 'procps', 'python3'],
    minutes: 8,
    jobs: 1,
  },
  {
    name: 'appliance',
    folder: 'test/system/appliance',
    proves: 'the .deb under real systemd 252 and 257: install, sandbox, roles, watchdog, power-off, upgrade, arm64',
    needs: 'containers with systemd',
    packages: [
      ...CONTAINERS,
      ...PACKAGE_BUILD,
      ...DDS,
      'g++-aarch64-linux-gnu',
      'lintian',
      'man-db',
      'mandoc',
      'qemu-user-static',
      'shellcheck',
    ],
    minutes: 12,
  },
  {
    name: 'faults',
    folder: 'test/faults',
    proves: 'the core of the faults against the installed package; `npm run faults` has all of them',
    needs: 'containers with systemd, a DDS peer',
    packages: [...CONTAINERS, ...PACKAGE_BUILD, ...DDS, 'faketime'],
    minutes: 4,
    jobs: 1,
  },
  {
    name: 'ros2',
    folder: 'test/system/ros2',
    proves: 'rclnodejs, the launch file and the ros2 tools',
    needs: 'a sourced ROS 2',
    packages: ['iproute2', 'python3'],
    minutes: 5,
  },
];

/** Returns each package once. */
export function packagesOf(parts: readonly Part[]): string[] {
  return [...new Set(parts.flatMap(({ packages }) => packages))].sort();
}
