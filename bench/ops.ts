/** The scheduler with the default schedules beside a real service, for an hour. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cleanup } from '../testkit/cleanup.ts';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import { ROOT } from '../testkit/service/service.ts';
import { fetchJson } from './support/http.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { type RunningService, startService } from './support/service-process.ts';
import { pause } from './support/statistics.ts';

/** Length as a multiple of the long measurement; an hour by default. */
const LENGTH_FACTOR = 6;
const POLL_SECONDS = 1;
const PROGRESS_SECONDS = 60;
/** Excludes the start of the scheduler. */
const SETTLE_SECONDS = 10;
const DAY_SECONDS = 86_400;
const HOUR_MS = 3_600_000;

interface Jobs {
  readonly jobs: readonly { readonly name: string; readonly runs: number; readonly failures: number; readonly missed: number }[];
}

/** Returns a time zone in which the next full hour is midnight, so that the nightly backup runs within an hour. */
function zoneWithMidnightNext(nowMs: number): string {
  const hour = new Date(nowMs + HOUR_MS).getUTCHours();
  // These names have inverted signs: Etc/GMT-3 is three hours ahead of UTC.
  return hour === 0 ? 'Etc/GMT' : hour <= 12 ? `Etc/GMT+${hour}` : `Etc/GMT-${24 - hour}`;
}

interface Scheduler {
  readonly pid: number;
  readonly data: string;
}

async function startScheduler(cleanup: Cleanup, { configFile, runtime }: RunningService): Promise<Scheduler> {
  const child = spawn(join(ROOT, 'bin/edge-health'), ['ops', 'run', '--config', configFile], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, RUNTIME_DIRECTORY: runtime },
  });
  cleanup.own(child);
  const deadline = performance.now() + 20_000;
  while (!existsSync(join(runtime, 'jobs.json'))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error('the scheduler did not start; see above');
    await pause(0.1);
  }
  return { pid: child.pid as number, data: join(runtime, 'jobs.json') };
}

/** Resident memory of the running child processes. */
function childrenMegabytes(pid: number): number {
  let sum = 0;
  for (const name of readdirSync('/proc')) {
    try {
      if (!/^\d+$/.test(name)) continue;
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid)
        sum += new ProcessMeter(Number(name)).memory().residentMegabytes;
    } catch {
      // The process has already ended.
    }
  }
  return sum;
}

await benchmark('ops', async ({ cleanup, minutes, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const dataPath = join(cleanup.folderOnDisk(), 'data');
  const ops = { timezone: zoneWithMidnightNext(Date.now()) };
  const service = await startService(cleanup, { sysRoot: sys.path, dataPath, ops });
  const { data, pid } = await startScheduler(cleanup, service);
  const meter = new ProcessMeter(pid);
  const seconds = minutes * 60 * LENGTH_FACTOR;
  await pause(Math.min(SETTLE_SECONDS, seconds / 2));
  const read = (): Jobs => JSON.parse(readFileSync(data, 'utf8')) as Jobs;
  const startCpu = meter.cpuSeconds() + meter.childrenCpuSeconds();
  const before = { own: meter.cpuSeconds(), children: meter.childrenCpuSeconds(), written: meter.writtenBytes(), jobs: read() };
  const begun = performance.now();
  const elapsed = (): number => (performance.now() - begun) / 1000;
  const own = (): number => meter.cpuSeconds() - before.own;
  const children = (): number => meter.childrenCpuSeconds() - before.children;
  let [highest, highestChildren, reportedAt] = [0, 0, 0];
  while (elapsed() < seconds) {
    await pause(Math.min(POLL_SECONDS, Math.max(0.01, seconds - elapsed())));
    own(); // Records the CPU time of threads that end before the next reading.
    highest = Math.max(highest, meter.memory().residentMegabytes);
    highestChildren = Math.max(highestChildren, childrenMegabytes(pid));
    if (elapsed() - reportedAt < PROGRESS_SECONDS) continue;
    reportedAt = elapsed();
    const percent = (100 * (own() + children())) / elapsed();
    progress(`${((seconds - elapsed()) / 60).toFixed(0)} min left; ${percent.toFixed(3)} % CPU so far, ${highest.toFixed(1)} MB`);
  }
  const length = elapsed();
  const figures = { own: (100 * own()) / length, children: (100 * children()) / length };
  const after = read();
  const { anonymousMegabytes } = meter.memory();
  const written = ((meter.writtenBytes() - before.written) / 1e6 / length) * DAY_SECONDS;
  const status = await fetchJson<{ status: string }>(`${service.url}/status`);
  if (!status.status) throw new Error('the service stopped responding');
  const runs = after.jobs.map(({ failures, missed, name, runs: count }) => {
    const earlier = before.jobs.jobs.find((job) => job.name === name);
    return {
      name,
      count: count - (earlier?.runs ?? 0),
      failures: failures - (earlier?.failures ?? 0),
      missed: missed - (earlier?.missed ?? 0),
    };
  });
  const broken = runs.filter(({ failures, missed }) => failures > 0 || missed > 0);
  return {
    rows: [
      { figure: 'CPU of the scheduler with all jobs, of one core', unit: '%', value: figures.own + figures.children, atMost: 0.15 },
      { figure: 'of that, jobs in separate processes', unit: '%', value: figures.children },
      { figure: 'resident memory of the scheduler, highest', unit: 'MB', value: highest, atMost: 80 },
      { figure: 'of that, anonymous, at the end', unit: 'MB', value: anonymousMegabytes },
      // Jobs shorter than a second may be missed.
      ...(highestChildren > 0
        ? [{ figure: 'resident memory of a job in a separate process, highest', unit: 'MB', value: highestChildren }]
        : []),
      { figure: 'written to disk by the scheduler itself per day', unit: 'MB', value: written },
    ],
    notes: [
      `${(length / 60).toFixed(0)} minutes with the default schedules, beside a service at 1 Hz, in a time zone whose midnight falls into the measured hour: the nightly backup counts, 24 times as often as in a day. Runs: ${runs.map(({ count, name }) => `${name} ${count}`).join(', ')}.`,
      'CPU: all threads of the scheduler (schedstat), and user and system time of its child processes that have exited (/proc/PID/stat, in ticks of 10 ms). Memory: VmRSS, read every second. Written: write_bytes of /proc/PID/io of the scheduler without its child processes.',
      `Start of the scheduler, not included: ${startCpu.toFixed(2)} s of CPU.`,
      ...(broken.length > 0
        ? [`Unexpected: ${broken.map(({ failures, missed, name }) => `${name} failed ${failures}, missed ${missed}`).join('; ')}.`]
        : []),
    ],
  };
});
