import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../src/client/documents.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { statusDocument } from '../../testkit/service/status-document.ts';
import { ServiceObserver } from './service-observer.ts';
import type { KnownRun, RunsBetween, SupervisedRun, Supervisor } from './supervisor.ts';
import { refuse, serve } from './testing/server.ts';

const FIRST = '2026-03-04T05:06:07.000Z';
const SECOND = '2026-03-04T07:00:00.000Z';
const GROUP = '/system.slice/edge-health.service';

class Manager implements Supervisor {
  run: SupervisedRun | null = { pid: 7, invocation: 'one', restarts: 0, controlGroup: null, cpuSeconds: null };
  found: RunsBetween | null = { cause: 'signal', detail: 'SIGKILL', unseen: 2 };
  readonly requests: string[] = [];
  onNow: () => void = () => undefined;

  async now(): Promise<SupervisedRun | null> {
    this.requests.push('now');
    this.onNow();
    return this.run;
  }

  async between(before: KnownRun, now: SupervisedRun): Promise<RunsBetween | null> {
    this.requests.push(`between ${before.invocation} and ${now.invocation}`);
    return this.found;
  }

  async onNoResponse(invocation: string | null): Promise<void> {
    this.requests.push(`onNoResponse ${invocation}`);
  }
}

async function rig(t: Test, options: { supervisor?: Supervisor | null; before?: KnownRun; bootId?: string | null } = {}) {
  const manager = new Manager();
  const root = temporaryFolder(t);
  const state: { status: StatusDocument | null; alerts: unknown; seconds: number } = {
    status: statusDocument(),
    alerts: { data: [], count: 0 },
    seconds: 0,
  };
  const { requests, rest } = await serve(t, ({ url = '' }, response) => {
    if (state.status === null) return refuse(response, 503, 'starting');
    response.end(JSON.stringify(url.startsWith('/alerts') ? state.alerts : state.status));
  });
  const observer = new ServiceObserver({
    rest,
    node: 'robot',
    supervisor: options.supervisor === undefined ? manager : options.supervisor,
    before: options.before ?? null,
    bootId: options.bootId === undefined ? 'boot' : options.bootId,
    monotonicSeconds: () => state.seconds,
    procRoot: root,
    groupRoot: root,
  });
  const write = (name: string, text: string): void => {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), text);
  };
  return { observer, state, manager, requests, write };
}

const BEFORE: KnownRun = { started: FIRST, version: '1.2.3', pid: 5, invocation: 'zero', restarts: 0, bootId: 'boot' };

t.test('takes a reading from /status alone', async (t) => {
  const { observer } = await rig(t, { supervisor: null });
  t.same(await observer.read(), {
    run: { started: FIRST, version: '1.2.3', pid: null, invocation: null, cause: 'first', detail: '', unseen: 0 },
    reading: {
      started: FIRST,
      samples: 100,
      missed: 2,
      published: 98,
      samples_lost: 1,
      resident_bytes: [70e6],
      cpu_seconds: 12.5,
      cpu_from: 'status',
      group: null,
      open_files: 40,
      open_alerts: { WARNING: 1, ERROR: 0, CRITICAL: 2 },
      configured_hertz: 1,
      database_bytes: 4096,
    },
  });
  t.match(await observer.read(), { run: null });
});

t.test('takes a reading from the kernel: the process, and the control group minus its count before this run', async (t) => {
  const { manager, observer, write } = await rig(t);
  write('7/status', 'VmRSS:\t  65000 kB\n');
  write('7/stat', `7 (node) ${['S', ...Array.from({ length: 10 }, () => '0'), '100', '50', '0', '0'].join(' ')} 0\n`);
  t.match(await observer.read(), { reading: { resident_bytes: [66_560_000], cpu_seconds: 1.5, cpu_from: 'process', group: null } });

  const second = await rig(t);
  second.manager.run = { pid: 8, invocation: 'two', restarts: 3, controlGroup: GROUP, cpuSeconds: 2 };
  second.write(`${GROUP}/cgroup.controllers`, 'cpu memory\n');
  second.write(`${GROUP}/cpu.stat`, 'usage_usec 12000000\n');
  t.match(await second.observer.read(), { reading: { cpu_seconds: 2, cpu_from: 'group', group: null } }, 'it does not count memory');
  second.write(`${GROUP}/memory.current`, '9000\n');
  second.write(`${GROUP}/memory.stat`, 'anon 8000\nfile 1000\n');
  second.write(`${GROUP}/cpu.stat`, 'usage_usec 15500000\n');
  const group = { memory_bytes: 9000, anon_bytes: 8000, restarts: 3 };
  t.match(await second.observer.read(), { reading: { cpu_seconds: 5.5, group, resident_bytes: [70e6] } });
  t.same(manager.requests, ['now']);
});

t.test('an older service does not report what it published', async (t) => {
  const { state, observer } = await rig(t, { supervisor: null });
  const { published: _, ...ros } = statusDocument().ros;
  state.status = { ...statusDocument(), ros: ros as StatusDocument['ros'] };
  t.match(await observer.read(), { reading: { published: null } });
});

t.test('reports another run with its cause; queries the supervisor then, and every five minutes', async (t) => {
  const { manager, state, observer } = await rig(t);
  t.match(await observer.read(), { run: { cause: 'first', pid: 7, invocation: 'one' } });
  state.status = statusDocument({ started: SECOND });
  manager.run = { pid: 9, invocation: 'two', restarts: 3, controlGroup: null, cpuSeconds: null };
  t.match(await observer.read(), { run: { started: SECOND, pid: 9, invocation: 'two', cause: 'signal', detail: 'SIGKILL', unseen: 2 } });
  state.seconds = 299;
  t.match(await observer.read(), { run: null });
  t.same(manager.requests, ['now', 'now', 'between one and two']);
  state.seconds = 300;
  manager.run = null;
  await observer.read();
  t.equal(manager.requests.length, 4);
  state.status = statusDocument({ started: FIRST });
  manager.run = { pid: 10, invocation: 'three', restarts: 4, controlGroup: null, cpuSeconds: null };
  t.match(await observer.read(), { run: { invocation: 'three' } });
  t.equal(manager.requests.at(-1), 'between two and three', 'a query without a response changes nothing');
});

t.test('reports why a run ended, as far as it is known', async (t) => {
  const cases: readonly (readonly [string, Partial<KnownRun>, RunsBetween | null, Partial<StatusDocument>, object])[] = [
    ['stopped', {}, { cause: 'stopped', detail: '', unseen: 0 }, {}, { cause: 'stopped', detail: '' }],
    [
      'stopped, and another version',
      {},
      { cause: 'stopped', detail: '', unseen: 1 },
      { version: '2.0.0' },
      { cause: 'upgrade', detail: '1.2.3 → 2.0.0', unseen: 1 },
    ],
    [
      'crashed, and another version',
      {},
      { cause: 'watchdog', detail: 'x', unseen: 0 },
      { version: '2.0.0' },
      { cause: 'watchdog', detail: 'x' },
    ],
    ['another boot', { bootId: 'before' }, null, {}, { cause: 'reboot', detail: '', unseen: 4 }],
    ['a boot that is not known', { bootId: null }, { cause: 'exit', detail: 'y', unseen: 0 }, {}, { cause: 'exit' }],
    ['nothing is known', {}, null, {}, { cause: 'unknown', detail: '', unseen: 0 }],
  ];
  for (const [what, before, found, status, expected] of cases) {
    const { manager, state, observer } = await rig(t, { before: { ...BEFORE, ...before } });
    manager.found = found;
    manager.run = { pid: 9, invocation: 'two', restarts: 4, controlGroup: null, cpuSeconds: null };
    state.status = statusDocument({ started: SECOND, ...status });
    t.match((await observer.read())?.run, expected, what);
  }
  const { state, observer } = await rig(t, { before: { ...BEFORE, bootId: 'before' }, supervisor: null });
  state.status = statusDocument({ started: SECOND });
  t.match((await observer.read())?.run, { cause: 'unknown' }, 'the boot of this machine is not that of another one');
  state.status = statusDocument({ version: '2.0.0' });
  t.match((await observer.read())?.run, { cause: 'upgrade' });
});

t.test('an observer that resumes with the same run reports no new run', async (t) => {
  const { manager, observer } = await rig(t, { before: { ...BEFORE, invocation: 'one' } });
  t.match(await observer.read(), { run: null });
  t.same(manager.requests, ['now'], 'but queries it');
});

t.test('a run that ends while it is queried is not mistaken for the next one', async (t) => {
  const { manager, state, observer } = await rig(t);
  manager.onNow = () => {
    if (manager.requests.length === 1) state.status = statusDocument({ started: SECOND });
    else manager.run = { pid: 9, invocation: 'two', restarts: 1, controlGroup: null, cpuSeconds: null };
  };
  t.match(await observer.read(), { run: { started: SECOND, invocation: 'two', cause: 'first' }, reading: { started: SECOND } });
});

t.test('the supervisor may list the run a little later', async (t) => {
  const { manager, observer } = await rig(t);
  const { run } = manager;
  manager.run = null;
  manager.onNow = () => {
    if (manager.requests.length === 2) manager.run = run;
  };
  t.match(await observer.read(), { run: { pid: 7, invocation: 'one' } });
  const silent = await rig(t);
  silent.manager.run = null;
  t.match(await silent.observer.read(), { run: { pid: null, invocation: null }, reading: { cpu_from: 'status' } }, 'or not at all');
  t.equal(silent.manager.requests.length, 3);
});

t.test('while the service does not respond the supervisor is queried at once, and then once a minute', async (t) => {
  const { manager, state, observer } = await rig(t);
  await observer.read();
  state.status = null;
  for (state.seconds of [15, 30, 74, 75, 90]) {
    t.equal(await observer.read(), null);
    t.equal(await observer.open(), null);
  }
  t.same(manager.requests, ['now', 'onNoResponse one', 'onNoResponse one']);
});

t.test('returns the open alerts of the observed node', async (t) => {
  const { requests, state, observer } = await rig(t);
  const alert = (alert_id: string, severity: string, resolved = false) => ({
    alert_id,
    severity,
    metric: 'cpu_percent',
    value: 1,
    threshold: 1,
    timestamp: FIRST,
    resolved,
  });
  const data = [
    alert('robot/cpu_percent/1', 'CRITICAL'),
    alert('robot/cpu_percent/0', 'WARNING', true),
    alert('other/cpu_percent/1', 'ERROR'),
  ];
  state.alerts = { data, count: 3 };
  t.same(await observer.open(), [{ alert_id: 'robot/cpu_percent/1', severity: 'CRITICAL', metric: 'cpu_percent' }]);
  t.same(requests, ['/alerts?resolved=false&node=robot&limit=1000']);
});
