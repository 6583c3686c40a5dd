import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** All inputs of the package. */
const INPUTS = [
  ...[
    'bin',
    'config',
    'dashboard',
    'debian',
    'docs',
    'harness',
    'libexec',
    'ops',
    'polkit',
    'ros2/edge_health_interfaces',
    'scripts/deb',
    'src',
    'systemd',
  ],
  ...[
    'package.json',
    'package-lock.json',
    'ros2/fastdds-udp.xml',
    'scripts/build.ts',
    'scripts/build-sd-notify.sh',
    'scripts/deb.sh',
    'scripts/harness-chart.ts',
  ],
];

/** Time of the newest input in milliseconds since 1970. Tests beside the code do not count as inputs. */
export function newestInput(): number {
  let newest = 0;
  const visit = (path: string): void => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || /\.test\.ts$/.test(path)) return;
    // The time of a folder changes when a file in it is removed.
    newest = Math.max(newest, stat.mtimeMs);
    if (stat.isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
  };
  for (const input of INPUTS) if (existsSync(input)) visit(input);
  return newest;
}
