import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { freePort, waitForResponse } from './http.ts';
import { type Server, START_POLL_SECONDS } from './service-process.ts';
import { pause } from './statistics.ts';

/** Only the metrics that edge-health also measures. */
export const SAME_METRICS = [
  '--collector.disable-defaults',
  '--collector.cpu',
  '--collector.meminfo',
  '--collector.filesystem',
  '--collector.thermal_zone',
  '--collector.hwmon',
];

function programPath(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** Starts node_exporter and waits for its first response; null if it is not installed. */
export async function startNodeExporter(
  cleanup: Cleanup,
  argv: readonly string[],
  pollSeconds = START_POLL_SECONDS,
): Promise<Server | null> {
  const program = programPath('prometheus-node-exporter') ?? programPath('node_exporter');
  if (program === null) return null;
  const port = await freePort();
  const begun = performance.now();
  const child = cleanup.own(spawn(program, [`--web.listen-address=127.0.0.1:${port}`, ...argv], { stdio: 'ignore' }));
  const url = `http://127.0.0.1:${port}`;
  await waitForResponse(`${url}/metrics`, child, pollSeconds);
  return { child, pid: child.pid as number, url, startSeconds: (performance.now() - begun) / 1000 };
}

const COLLECTD_PLUGINS = {
  /** Configuration equivalent to `LoadPlugin` alone: each state of each processor, each state of memory, each file system. */
  defaults: `
LoadPlugin cpu
LoadPlugin memory
LoadPlugin df
LoadPlugin thermal
LoadPlugin csv
`,
  /** The smallest configuration with the metrics of edge-health: one value per metric. */
  sameMetrics: `
LoadPlugin cpu
<Plugin cpu>
  ReportByCpu false
  ReportByState false
  ValuesPercentage true
</Plugin>
LoadPlugin memory
<Plugin memory>
  ValuesAbsolute false
  ValuesPercentage true
</Plugin>
LoadPlugin df
<Plugin df>
  MountPoint "/"
  ValuesAbsolute false
  ValuesPercentage true
</Plugin>
LoadPlugin thermal
LoadPlugin csv
`,
};

/** Starts collectd at 1 Hz, with CSV on the same disk, and waits until it writes its first file; null if it is not installed. */
export async function startCollectd(cleanup: Cleanup, plugins: keyof typeof COLLECTD_PLUGINS): Promise<ChildProcess | null> {
  const program = programPath('collectd');
  if (program === null) return null;
  const folder = cleanup.folderOnDisk();
  const file = join(folder, 'collectd.conf');
  writeFileSync(
    file,
    `BaseDir "${folder}"
PIDFile "${folder}/pid"
TypesDB "/usr/share/collectd/types.db"
Hostname "bench"
FQDNLookup false
Interval 1
LoadPlugin logfile
<Plugin logfile>
  LogLevel err
  File "${folder}/log"
</Plugin>
${COLLECTD_PLUGINS[plugins]}
<Plugin csv>
  DataDir "${folder}/csv"
  StoreRates true
</Plugin>
`,
  );
  const child = cleanup.own(spawn(program, ['-f', '-C', file], { stdio: 'ignore' }));
  for (let n = 0; !existsSync(join(folder, 'csv')); n += 1) {
    if (n >= 100 || child.exitCode !== null) throw new Error('collectd writes no files');
    await pause(0.1);
  }
  return child;
}

/** Starts netdata with Debian's default collectors, at 1 Hz, and waits for its first response; null if it is not installed. */
export async function startNetdata(cleanup: Cleanup): Promise<ChildProcess | null> {
  const program = programPath('netdata');
  if (program === null) return null;
  const folder = cleanup.folderOnDisk();
  const port = await freePort();
  const file = join(folder, 'netdata.conf');
  for (const name of ['cache', 'lib', 'log']) mkdirSync(join(folder, name));
  writeFileSync(
    file,
    `[global]
    run as user = ${userInfo().username}
[directories]
    cache = ${folder}/cache
    lib = ${folder}/lib
    log = ${folder}/log
[db]
    update every = 1
[web]
    bind to = 127.0.0.1:${port}
`,
  );
  const child = cleanup.own(spawn(program, ['-D', '-c', file], { stdio: 'ignore' }));
  await waitForResponse(`http://127.0.0.1:${port}/api/v1/info`, child, START_POLL_SECONDS);
  return child;
}

/** Starts Glances without its page at 1 Hz, with CSV on the same disk, and waits for its file; null if it is not installed. */
export async function startGlances(cleanup: Cleanup): Promise<ChildProcess | null> {
  const program = programPath('glances');
  if (program === null) return null;
  const file = join(cleanup.folderOnDisk(), 'glances.csv');
  const argv = ['--quiet', '--time', '1', '--export', 'csv', '--export-csv-file', file];
  const child = cleanup.own(spawn(program, argv, { stdio: 'ignore' }));
  for (let n = 0; !existsSync(file); n += 1) {
    if (n >= 200 || child.exitCode !== null) throw new Error('Glances writes no file');
    await pause(0.1);
  }
  return child;
}
