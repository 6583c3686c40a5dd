/** The whole service at 1 Hz for ten minutes, compared with collectd, node_exporter, netdata and Glances. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Cleanup } from '../testkit/cleanup.ts';
import { type Memory, ProcessMeter } from '../testkit/machine/process-meter.ts';
import { SAME_METRICS, startCollectd, startGlances, startNetdata, startNodeExporter } from './support/baselines.ts';
import { fetchJson, fetchTimed, keepAliveAgent } from './support/http.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { startService } from './support/service-process.ts';
import { pause } from './support/statistics.ts';

/** The service releases memory that only its start needed after a minute. */
const WARM_UP_SECONDS = 90;
const POLL_SECONDS = 5;
const DAY_SECONDS = 86_400;

/** CPU, memory and writes of a program during the measurement: of its process and of the child processes that exist at its start. */
class MeasuredProcess {
  readonly name: string;
  readonly #meters: readonly ProcessMeter[];
  #cpuBefore = 0;
  #writtenBefore = 0;
  #begun = 0;
  highestMegabytes = 0;
  last: Memory = { residentMegabytes: 0, anonymousMegabytes: 0 };

  constructor(name: string, pid: number) {
    this.name = name;
    this.#meters = withChildren(pid).map((one) => new ProcessMeter(one));
  }

  begin(): void {
    this.#begun = performance.now();
    this.#cpuBefore = this.#sum((meter) => meter.cpuSeconds());
    this.#writtenBefore = this.#sum((meter) => meter.writtenBytes());
  }

  poll(): void {
    this.#sum((meter) => meter.cpuSeconds()); // Records the CPU time of threads that end before the next reading.
    this.last = {
      residentMegabytes: this.#sum((meter) => meter.memory().residentMegabytes),
      anonymousMegabytes: this.#sum((meter) => meter.memory().anonymousMegabytes),
    };
    this.highestMegabytes = Math.max(this.highestMegabytes, this.last.residentMegabytes);
  }

  figures(): { cpuPercent: number; megabytesPerDay: number } {
    const seconds = (performance.now() - this.#begun) / 1000;
    return {
      cpuPercent: (100 * (this.#sum((meter) => meter.cpuSeconds()) - this.#cpuBefore)) / seconds,
      megabytesPerDay: ((this.#sum((meter) => meter.writtenBytes()) - this.#writtenBefore) / 1e6 / seconds) * DAY_SECONDS,
    };
  }

  #sum(value: (meter: ProcessMeter) => number): number {
    return this.#meters.reduce((sum, meter) => sum + value(meter), 0);
  }
}

/** Returns the ids of a process and its descendants. */
function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  return [pid, ...children.flatMap(withChildren)];
}

/** Starts a process that reads /events and counts the events. */
function startEventReader(cleanup: Cleanup, url: string): { child: ChildProcess; end: () => Promise<number> } {
  const program = new URL('./clients/event-reader.ts', import.meta.url).pathname;
  const child = cleanup.own(
    spawn(process.execPath, [...process.execArgv, program, `${url}/events`], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return {
    child,
    end: async () => {
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      await closed;
      return Number(text);
    },
  };
}

/** Requests /metrics once per second, like Prometheus. The returned function stops the requests and returns the number of failures. */
function startScraping(url: string): () => number {
  const agent = keepAliveAgent();
  let failures = 0;
  const timer = setInterval(() => {
    fetchTimed(`${url}/metrics`, agent).then(
      ({ status }) => {
        if (status !== 200) failures += 1;
      },
      () => {
        failures += 1;
      },
    );
  }, 1000);
  return () => {
    clearInterval(timer);
    agent.destroy();
    return failures;
  };
}

interface Publish {
  readonly publish: { readonly samples: number; readonly missed: number };
  readonly storage: { readonly state: string };
}

await benchmark('service', async ({ cleanup, minutes, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const service = await startService(cleanup, { sysRoot: sys.path });
  const events = startEventReader(cleanup, service.url);
  const collectd = await startCollectd(cleanup, 'defaults');
  const leanCollectd = await startCollectd(cleanup, 'sameMetrics');
  const exporter = await startNodeExporter(cleanup, []);
  const lean = await startNodeExporter(cleanup, SAME_METRICS);
  const netdata = await startNetdata(cleanup);
  const glances = await startGlances(cleanup);
  const scrapes = [exporter, lean].filter((server) => server !== null).map(({ url }) => startScraping(url));

  const warmUpSeconds = Math.min(WARM_UP_SECONDS, minutes * 60);
  progress(`warm-up, ${warmUpSeconds} s`);
  await pause(warmUpSeconds);
  const edgeHealth = new MeasuredProcess('edge-health', service.pid);
  const baselines = [
    ...(collectd ? [new MeasuredProcess('collectd', collectd.pid as number)] : []),
    ...(leanCollectd ? [new MeasuredProcess('collectd, one value per metric', leanCollectd.pid as number)] : []),
    ...(exporter ? [new MeasuredProcess('node_exporter', exporter.pid)] : []),
    ...(lean ? [new MeasuredProcess('node_exporter, the same metrics only', lean.pid)] : []),
    ...(netdata ? [new MeasuredProcess('netdata', netdata.pid as number)] : []),
    ...(glances ? [new MeasuredProcess('Glances', glances.pid as number)] : []),
  ];
  const before = await fetchJson<Publish>(`${service.url}/status`);
  for (const measured of [edgeHealth, ...baselines]) measured.begin();
  const deadline = performance.now() + minutes * 60_000;
  let reportedMs = performance.now();
  while (performance.now() < deadline) {
    await pause(Math.min(POLL_SECONDS, Math.max(0.01, (deadline - performance.now()) / 1000)));
    for (const measured of [edgeHealth, ...baselines]) measured.poll();
    if (performance.now() - reportedMs < 60_000) continue;
    reportedMs = performance.now();
    progress(
      `${((deadline - performance.now()) / 60_000).toFixed(0)} min left; ${edgeHealth.figures().cpuPercent.toFixed(3)} % CPU so far`,
    );
  }
  const figures = edgeHealth.figures();
  const after = await fetchJson<Publish>(`${service.url}/status`);
  const received = await events.end();
  const failedScrapes = scrapes.reduce((sum, stop) => sum + stop(), 0);
  if (after.storage.state !== 'ok') throw new Error(`the store is ${after.storage.state}`);
  if (received < after.publish.samples - before.publish.samples) throw new Error(`the event stream delivered only ${received} samples`);
  if (failedScrapes > 0) throw new Error(`${failedScrapes} scrapes of node_exporter failed`);

  const cpu: Row = { figure: 'CPU of the service at 1 Hz, of one core', unit: '%', value: figures.cpuPercent };
  const memory: Row = { figure: 'resident memory of the service, highest', unit: 'MB', value: edgeHealth.highestMegabytes };
  const written: Row = { figure: 'written to disk by the service per day', unit: 'MB', value: figures.megabytesPerDay, atMost: 20 };
  /** One row per baseline; the first has the target. */
  const withBaselines = (row: Row, target: Pick<Row, 'atMost' | 'timesLess'>, value: (baseline: MeasuredProcess) => number): Row[] =>
    baselines.length === 0
      ? [{ ...row, ...target }]
      : baselines.map((baseline, i) => ({ ...row, baseline: { name: baseline.name, value: value(baseline) }, ...(i === 0 && target) }));
  const storing = baselines.find(({ name }) => name === 'collectd');
  return {
    rows: [
      ...withBaselines(cpu, { atMost: 0.15, timesLess: 1 / 0.7 }, (baseline) => baseline.figures().cpuPercent),
      ...withBaselines(memory, { atMost: 65 }, (baseline) => baseline.highestMegabytes),
      { figure: 'resident memory of the service, at the end', unit: 'MB', value: edgeHealth.last.residentMegabytes },
      { figure: 'of that, anonymous', unit: 'MB', value: edgeHealth.last.anonymousMegabytes },
      storing ? { ...written, baseline: { name: 'collectd, CSV', value: storing.figures().megabytesPerDay } } : written,
      { figure: 'samples missed by the service', unit: '', value: after.publish.missed - before.publish.missed, atMost: 0 },
    ],
    notes: [
      `Memory: 43 MB are pages of the Node binary mapped from its file, which the kernel shares and can reclaim; Node 26 with only an HTTP server takes 47 MB on this kernel. The store's thread takes 11 MB; because of it a slow card never delays a sample.`,
      `${minutes} minutes after a warm-up of ${warmUpSeconds} s, all programs at the same time, each measuring once a second. The service measures, stores, serves REST and one reader of /events, a separate process that received every sample.`,
      'CPU: the kernel\'s account of every thread (/proc/PID/task/*/schedstat). Memory: VmRSS and RssAnon, read every 5 s. Written: write_bytes of /proc/PID/io; the journal of the file system is not included. The row "written in a day, counted" of `week` also includes the hourly work and the checkpoints, which a short run may miss.',
      'collectd: the plugins cpu, memory, df and thermal as they are after LoadPlugin, stored as CSV on the same disk; and a second one configured to one value per metric, which reads and writes a fraction of that. node_exporter: scraped once a second over a keep-alive connection; once with its default collectors, once with only those for the same metrics. netdata: the package netdata-core with its default collectors, without a client; its plugins count. Glances: --quiet with CSV on the same disk. Only their own CPU counts.',
      sys.note,
    ],
  };
});
