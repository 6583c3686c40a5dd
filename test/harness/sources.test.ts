import { once } from 'node:events';
import t from 'tap';
import { discover } from '../../harness/observe/discover.ts';
import { EventsSource, type SourceListener } from '../../harness/observe/events.ts';
import { storedScanner } from '../../harness/observe/scanners.ts';
import { ServiceObserver } from '../../harness/observe/service-observer.ts';
import { type Exit, ProcessSupervisor } from '../../harness/observe/supervisor.ts';
import type { Channel } from '../../harness/record/entries.ts';
import { RestClient } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { SteadyAddress } from '../../testkit/ops/steady-address.ts';
import { alertOf, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { measured, recorded, startIn } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

/** What the harness receives from a real service over REST. */

t.setTimeout(300_000);

const HERTZ = 10;
const monotonicSeconds = (): number => performance.now() / 1000;

class Received implements SourceListener {
  readonly statuses: HealthStatus[] = [];
  readonly alerts: Alert[] = [];
  readonly notes: string[] = [];

  onStatus(_channel: Channel, status: HealthStatus): void {
    this.statuses.push(status);
  }

  onAlert(_channel: Channel, alert: Alert): void {
    this.alerts.push(alert);
  }

  onNote(text: string): void {
    this.notes.push(text);
  }

  get stamps(): number[] {
    return this.statuses.map(({ timestamp }) => Date.parse(timestamp));
  }
}

t.test('across a SIGKILL, the cause, the gap and every stored status are received', async (t) => {
  const folder = temporaryFolder(t);
  const exits: Exit[] = [];
  let service: RunningService | null = null;
  // The load of other tests raises no alert.
  const alerts = { raise_after_seconds: 3600 };
  const address = await SteadyAddress.open(t);
  const start = async (): Promise<RunningService> => {
    const started = await startIn(t, folder, { config: { publish_frequency: HERTZ, node_name: 'robot', alerts } });
    address.forwardTo(started.url);
    void once(started.process, 'exit').then(([code, signal]) => exits.push({ at: Date.now(), pid: started.pid, code, signal }));
    return started;
  };
  service = await start();
  await measured(service);
  const rest = new RestClient({ base: address.url, token: null });
  const { dataFolderProblem, machine, target } = await discover({ rest, kind: 'started', unit: null, seconds: 120 });
  t.match(target, { kind: 'started', url: address.url, node_name: 'robot', configured_hertz: HERTZ, service_transport: 'off' });
  t.match(target.data_folder, /data$/, dataFolderProblem ?? '');
  t.ok((machine?.cores ?? 0) > 0);

  const received = new Received();
  const supervisor = new (class extends ProcessSupervisor {
    pid = () => (service?.process.exitCode === null && !service.process.signalCode ? service.pid : null);
    exits = () => exits;
  })();
  const observer = new ServiceObserver({ rest, node: 'robot', supervisor, before: null, bootId: 'boot', monotonicSeconds });
  const stream = new EventsSource({
    rest,
    node: 'robot',
    hertz: HERTZ,
    listener: received,
    monotonicSeconds,
    dataTimeoutSeconds: 600,
  });
  t.teardown(() => stream.stop());
  await stream.start();
  const first = await observer.read();
  t.match(first, { run: { cause: 'first', pid: service.pid }, reading: { cpu_from: 'process', published: null, configured_hertz: HERTZ } });
  t.ok((first?.reading.resident_bytes[0] ?? 0) > 30e6 && (first?.reading.cpu_seconds ?? 0) > 0);
  t.same(await observer.open(), []);
  await recorded(service, 20);
  const firstPid = service.pid;

  await service.end('SIGKILL');
  t.equal(await observer.read(), null, 'no response');
  service = await start();
  await measured(service);
  const second = await observer.read();
  t.match(second, { run: { cause: 'signal', detail: 'SIGKILL', unseen: 0, pid: service.pid } });
  t.not(second?.run?.started, first?.reading.started);
  t.not(service.pid, firstPid);
  // The stream resumes by itself, within its longest pause.
  const reborn = Date.parse(second?.run?.started ?? '');
  const isBack = (): boolean => received.stamps.filter((stamp) => stamp > reborn).length >= 2 * HERTZ;
  await until('the stream is back', isBack, { describe: () => received.notes });
  await stream.stop();
  const { stamps } = received;
  t.same(
    stamps,
    [...new Set(stamps)].sort((a, b) => a - b),
    'each once, in order',
  );
  t.match(received.notes, [/was interrupted/, /is back after/]);

  const [from, to] = [stamps[0] as number, stamps.at(-1) as number];
  const { data } = await service.json<{ data: HealthStatus[] }>(
    `/health/history?limit=10000&from=${new Date(from).toISOString()}&to=${new Date(to + 1).toISOString()}`,
  );
  const stored = data.map(({ timestamp }) => Date.parse(timestamp));
  t.same(stamps, stored, 'what was stored was received, also what was measured while no stream was connected');
  const scan = storedScanner({ rest, node: 'robot' });
  const longest = Math.max(...stored.slice(1).map((stamp, i) => stamp - (stored[i] as number))) / 1000;
  t.ok(longest > 1 / HERTZ, `${longest} s without a sample`);
  t.match(await scan(from, to + 1), { count: stored.length, first: from, last: to, longest_seconds: longest, gaps: [] });
  const middle = stored[Math.floor(stored.length / 2)] as number;
  const halves = [await scan(from, middle), await scan(middle, to + 1)];
  t.equal((halves[0]?.count ?? 0) + (halves[1]?.count ?? 0), stored.length, 'consecutive scans count everything once');
  t.equal(halves[1]?.first, middle);
  await service.end();
  t.equal(await scan(from, to), null, 'after its end there is no response');
});

t.test('other nodes are ignored, gaps in the stored samples are exact, and 200 Hz are read in pages', async (t) => {
  const clocks = new TestClocks();
  const service = await startInProcess(t, temporaryFolder(t), clocks);
  const rest = new RestClient({ base: service.url, token: null });
  const received = new Received();
  const stream = new EventsSource({
    rest,
    node: 'health_monitor',
    hertz: 1,
    listener: received,
    monotonicSeconds,
    dataTimeoutSeconds: 600,
  });
  t.teardown(() => stream.stop());
  await stream.start();
  const isOpen = async (): Promise<boolean> => (await service.json<{ rest: { event_streams: number } }>('/status')).rest.event_streams > 0;
  await until('the stream is open', isOpen);

  const begun = clocks.wallMs;
  const expected: number[] = [];
  // Half an hour, without samples in the minutes 10 to 14, and with a gap of 61 s later on.
  await service.run(1800, (second) => {
    service.remoteNodes.onHealthStatus(statusOf('other', clocks.wallMs));
    if (second % 300 === 7) service.remoteNodes.onAlert(alertOf('other', `a${second}`, clocks.wallMs));
    const minute = Math.floor(second / 60);
    if ((minute >= 10 && minute < 15) || (second > 1200 && second <= 1260)) return;
    expected.push(clocks.wallMs);
    service.measure();
  });
  const ended = clocks.wallMs;
  const stored = storedScanner({ rest, node: 'health_monitor' });
  const seconds = (second: number): number => begun + second * 1000;
  t.same(await stored(begun, ended), {
    of: 'stored',
    from: begun,
    to: ended,
    count: expected.length,
    first: begun,
    last: seconds(1799),
    longest_seconds: 301,
    gaps: [
      { from: seconds(599), to: seconds(900), seconds: 301 },
      { from: seconds(1200), to: seconds(1261), seconds: 61 },
    ],
  });
  t.match(await stored(seconds(1799), ended), { count: 1 }, 'the sample of the last second is in memory only');
  await until('all statuses are received', () => received.statuses.length >= expected.length);
  t.same(received.stamps, expected);
  t.same(received.alerts, [], 'no alert is of the observed node');

  const dense = clocks.wallMs;
  for (let second = 0; second < 60; second += 1) {
    for (let i = 0; i < 200; i += 1) {
      service.measure();
      clocks.pass(0.005);
    }
    await service.settled();
  }
  t.match(await stored(dense, clocks.wallMs), { count: 12_000, longest_seconds: 0.005, gaps: [] }, 'more than a page');
});
