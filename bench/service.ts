/** The whole service at 1 Hz for ten minutes, beside collectd and node_exporter. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Cleanup } from '../testkit/cleanup.ts';
import { type Memory, ProcessMeter } from '../testkit/machine/process-meter.ts';
import { fetchJson, fetchTimed, keptConnection } from './support/http.ts';
import { startService } from './support/ours.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { SAME_METRICS, startCollectd, startNodeExporter } from './support/rivals.ts';
import { sysTree } from './support/sensor-tree.ts';
import { pause } from './support/statistics.ts';

const WARM_UP_SECONDS = 30;
const LOOK_EVERY_SECONDS = 5;
const DAY_SECONDS = 86_400;

/** One process over the time of the measurement. */
class Watched {
  readonly name: string;
  readonly #meter: ProcessMeter;
  #cpuBefore = 0;
  #writtenBefore = 0;
  #begun = 0;
  highestMegabytes = 0;
  last: Memory = { residentMegabytes: 0, anonymousMegabytes: 0 };

  constructor(name: string, pid: number) {
    this.name = name;
    this.#meter = new ProcessMeter(pid);
  }

  begin(): void {
    this.#begun = performance.now();
    this.#cpuBefore = this.#meter.cpuSeconds();
    this.#writtenBefore = this.#meter.writtenBytes();
  }

  look(): void {
    this.#meter.cpuSeconds(); // So that a thread that ends later is not forgotten.
    this.last = this.#meter.memory();
    this.highestMegabytes = Math.max(this.highestMegabytes, this.last.residentMegabytes);
  }

  figures(): { cpuPercent: number; megabytesADay: number } {
    const seconds = (performance.now() - this.#begun) / 1000;
    return {
      cpuPercent: (100 * (this.#meter.cpuSeconds() - this.#cpuBefore)) / seconds,
      megabytesADay: ((this.#meter.writtenBytes() - this.#writtenBefore) / 1e6 / seconds) * DAY_SECONDS,
    };
  }
}

/** A process of its own that reads /events and counts. */
function readEvents(cleanup: Cleanup, url: string): { child: ChildProcess; end: () => Promise<number> } {
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

/** Asks for /metrics once a second, as Prometheus would. Returns the number of failures when told to stop. */
function scrape(url: string): () => number {
  const agent = keptConnection();
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
  const events = readEvents(cleanup, service.url);
  const collectd = await startCollectd(cleanup);
  const exporter = await startNodeExporter(cleanup, []);
  const lean = await startNodeExporter(cleanup, SAME_METRICS);
  const scrapes = [exporter, lean].filter((server) => server !== null).map(({ url }) => scrape(url));

  const ours = new Watched('edge-health', service.pid);
  const rivals = [
    ...(collectd ? [new Watched('collectd', collectd.pid as number)] : []),
    ...(exporter ? [new Watched('node_exporter', exporter.pid)] : []),
    ...(lean ? [new Watched('node_exporter, the same metrics only', lean.pid)] : []),
  ];
  const warmUpSeconds = Math.min(WARM_UP_SECONDS, minutes * 60);
  progress(`warm-up, ${warmUpSeconds} s`);
  await pause(warmUpSeconds);
  const before = await fetchJson<Publish>(`${service.url}/status`);
  for (const watched of [ours, ...rivals]) watched.begin();
  const deadline = performance.now() + minutes * 60_000;
  let toldMs = performance.now();
  while (performance.now() < deadline) {
    await pause(Math.min(LOOK_EVERY_SECONDS, Math.max(0.01, (deadline - performance.now()) / 1000)));
    for (const watched of [ours, ...rivals]) watched.look();
    if (performance.now() - toldMs < 60_000) continue;
    toldMs = performance.now();
    progress(`${((deadline - performance.now()) / 60_000).toFixed(0)} min left; ${ours.figures().cpuPercent.toFixed(3)} % CPU so far`);
  }
  const figures = ours.figures();
  const after = await fetchJson<Publish>(`${service.url}/status`);
  const received = await events.end();
  const failedScrapes = scrapes.reduce((sum, stop) => sum + stop(), 0);
  if (after.storage.state !== 'ok') throw new Error(`the store is ${after.storage.state}`);
  if (received < after.publish.samples - before.publish.samples) throw new Error(`the event stream brought only ${received} samples`);
  if (failedScrapes > 0) throw new Error(`${failedScrapes} scrapes of node_exporter failed`);

  const cpu: Row = { figure: 'CPU of the service at 1 Hz, of one core', unit: '%', ours: figures.cpuPercent };
  const memory: Row = { figure: 'resident memory of the service, highest', unit: 'MB', ours: ours.highestMegabytes };
  const written: Row = { figure: 'written to disk by the service, a day', unit: 'MB', ours: figures.megabytesADay, atMost: 20 };
  /** A row for each rival; the first holds the target. */
  const beside = (row: Row, atMost: number, value: (rival: Watched) => number): Row[] =>
    rivals.length === 0
      ? [{ ...row, atMost }]
      : rivals.map((rival, i) => ({ ...row, rival: { name: rival.name, value: value(rival) }, ...(i === 0 && { atMost }) }));
  const storing = rivals.find(({ name }) => name === 'collectd');
  return {
    rows: [
      ...beside(cpu, 0.25, (rival) => rival.figures().cpuPercent),
      ...beside(memory, 65, (rival) => rival.highestMegabytes),
      { figure: 'resident memory of the service, at the end', unit: 'MB', ours: ours.last.residentMegabytes },
      { figure: 'of it anonymous', unit: 'MB', ours: ours.last.anonymousMegabytes },
      storing ? { ...written, rival: { name: 'collectd, CSV', value: storing.figures().megabytesADay } } : written,
      { figure: 'slots missed by the service', unit: '', ours: after.publish.missed - before.publish.missed, atMost: 0 },
    ],
    notes: [
      `Where memory goes: 43 MB are pages of the Node binary mapped from its file, which the kernel shares and takes back when it needs them; Node 26 with nothing but an HTTP server has 47 MB on this kernel. The store's thread takes 11 MB, which buys that no slow card ever holds up a sample.`,
      `${minutes} minutes after a warm-up of ${warmUpSeconds} s, all programs at the same time, each measuring once a second. The service measures, stores, serves REST and one reader of /events, which is a process of its own and got every sample.`,
      'CPU: the kernel\'s account of every thread (/proc/PID/task/*/schedstat). Memory: VmRSS and RssAnon, looked at every 5 s. Written: write_bytes of /proc/PID/io; the journal of the file system is not in it. The row "written in a day, counted" of `week` also holds the hourly work and the checkpoints that a short run may not meet.',
      'collectd: cpu, memory, df and thermal, one value a metric, stored as CSV on the same disk. node_exporter: scraped once a second over a kept connection; once with the collectors it comes with, once with only those for the same metrics. Only their own CPU counts.',
      sys.note,
    ],
  };
});
