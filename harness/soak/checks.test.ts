import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { Check } from './check.ts';
import { checksOf } from './checks.ts';
import { type Findings, memoryRule } from './findings.ts';
import { judgeSoak, SOAK_FILES, writeSoak } from './report.ts';

const SECONDS = 300;
const EPISODE = { 'health_monitor/temperature/1': ['WARNING', 'CRITICAL', 'CRITICAL resolved'] };

function readings(change: Partial<Record<keyof Findings['readings'], (second: number) => number>> = {}): Findings['readings'] {
  const each = (of: (second: number) => number): number[] => Array.from({ length: SECONDS }, (_, second) => of(second));
  return {
    at: each((second) => second),
    residentBytes: each(change.residentBytes ?? ((second) => (second < 90 ? 60e6 : 90e6) + (second % 3) * 1e6)),
    files: each(change.files ?? ((second) => 40 + (second % 2))),
    sockets: each(change.sockets ?? ((second) => 6 + (second % 2))),
    databaseBytes: each(change.databaseBytes ?? (() => 7.9e6)),
    databaseFolderBytes: each(change.databaseFolderBytes ?? (() => 9e6)),
  };
}

function sampling(taken: number): Findings['sampling'] {
  const missed = 60_000 - taken;
  const host = { idlePercent: 60, stealPercent: 3 };
  const stretch = { seconds: 10, host };
  const lossy = { seconds: 10, fromSeconds: 10, missed, host: { idlePercent: 41.26, stealPercent: 22.5 } };
  return { expected: 60_000, taken, missed, host, stretches: [{ ...stretch, fromSeconds: 0, missed: 0 }, lossy] };
}

function perfect(change: Partial<Findings> = {}): Findings {
  return {
    began: '2026-03-04T05:06:07.000Z',
    machine: { cpu: 'a CPU', cores: 2, memoryGigabytes: 4, os: 'Debian' },
    kernel: 'Linux 6',
    version: '1.0.0',
    samples: 60_000,
    hertz: 200,
    transport: 'embedded',
    transportReason: 'ros.transport is embedded',
    watcher: 'embedded: asked for',
    place: 'a network namespace of its own',
    seconds: SECONDS,
    cutShort: null,
    died: null,
    expected: 60_000,
    counted: (['topic', 'events', 'stored', 'peer'] as const).map((way) => ({ way, title: way, count: 59_990, sameStamp: 3, instead: '' })),
    sampling: sampling(59_995),
    samplesGivenUp: 0,
    readings: readings(),
    ...memoryRule(SECONDS),
    database: { maxBytes: 8e6, filled: 500_000, oldest: ['2026-02-25T00:00:00.000Z', '2026-02-25T00:15:00.000Z'] },
    alerts: { turns: 1, unanswered: [], byWay: { topic: EPISODE, events: EPISODE, rest: EPISODE, peer: EPISODE } },
    rest: [{ path: '/health', asked: 100, failed: 1, medianMs: 2, p99Ms: 5, mostMs: 9 }],
    cpuSeconds: 60,
    watcherCpuSeconds: 20,
    notes: [],
    ...change,
  };
}

const verdicts = (findings: Findings): Record<string, string> =>
  Object.fromEntries(checksOf(findings).map(({ check, verdict }) => [check, verdict]));
const lossOf = (way: 'topic' | 'events' | 'stored' | 'peer', count: number | null): Findings['counted'] =>
  perfect().counted.map((one) => (one.way === way ? { ...one, count, instead: 'the reason' } : one));

t.test('all of it holds', async (t) => {
  const { statement, verdict } = judgeSoak(perfect());
  t.equal(verdict, 'PASS');
  t.equal(statement, 'Everything held. 60,000 of 60,000 slots at 200 Hz in 5 min.');
});

t.test('slots: 1 % is allowed, more is not, by each way alone', async (t) => {
  for (const way of ['topic', 'events', 'stored', 'peer'] as const) {
    t.equal(verdicts(perfect({ counted: lossOf(way, 59_400) }))[`loss-${way}`], 'PASS');
    t.equal(verdicts(perfect({ counted: lossOf(way, 59_399) }))[`loss-${way}`], 'FAIL');
  }
  t.equal(verdicts(perfect({ counted: lossOf('topic', null) }))['loss-topic'], 'INCOMPLETE');
  t.equal(verdicts(perfect({ counted: lossOf('peer', null) }))['loss-peer'], undefined, 'it need not be there');
  t.equal(verdicts(perfect({ sampling: sampling(59_400) }))['sampling'], 'PASS');
  t.equal(verdicts(perfect({ sampling: sampling(59_399) }))['sampling'], 'FAIL');
  t.equal(verdicts(perfect({ sampling: null }))['sampling'], 'INCOMPLETE');
});

t.test('sampling: what the host of the machine took while slots were missed is told, and excuses nothing', async (t) => {
  const { evidence, tables, verdict } = checksOf(perfect({ sampling: sampling(59_000) })).find(
    ({ check }) => check === 'sampling',
  ) as Check;
  t.equal(verdict, 'FAIL');
  const told = Object.fromEntries(evidence.map(({ label, value }) => [label, value]));
  t.match(told, { 'missed, as the service counts': 1000, 'of them while the host took more than 2 % of the processors (steal)': 1000 });
  t.equal(told['taken by the host of this machine, on average'], 3);
  t.same(tables[0]?.rows, [['0:10', 10, 1000, 22.5, 41.3]], 'stretches without a missed slot are left out');
  const real = perfect({ sampling: { ...sampling(59_000), host: null, stretches: [] } as Findings['sampling'] });
  t.same(checksOf(real).find(({ check }) => check === 'sampling')?.tables, []);
});

t.test('memory: below 10 % behind the warm-up, whatever was before', async (t) => {
  const leak = (megabytes: number) =>
    perfect({ readings: readings({ residentBytes: (second) => 90e6 + (second < 90 ? -60e6 : (megabytes * 1e6 * (second - 90)) / 210) }) });
  t.equal(verdicts(leak(8))['memory'], 'PASS');
  t.equal(verdicts(leak(13))['memory'], 'FAIL');
  t.equal(verdicts(perfect({ warmUpSeconds: 290 }))['memory'], 'INCOMPLETE');
});

t.test('handles: what comes and goes is no growth, one every other minute is', async (t) => {
  t.equal(verdicts(perfect({ readings: readings({ files: (second) => 40 + 20 * (second % 7 === 0 ? 1 : 0) }) }))['files'], 'PASS');
  t.equal(verdicts(perfect({ readings: readings({ files: (second) => 40 + Math.floor(second / 100) }) }))['files'], 'FAIL');
  t.equal(verdicts(perfect({ readings: readings({ sockets: (second) => 6 + Math.floor(second / 60) }) }))['sockets'], 'FAIL');
  t.equal(verdicts(perfect({ readings: readings({ sockets: (second) => (second < 90 ? 3 : 6) }) }))['sockets'], 'PASS');
});

t.test('the database: within its cap at every second, and the cap had to work', async (t) => {
  t.equal(
    verdicts(perfect({ readings: readings({ databaseBytes: (second) => (second === 150 ? 8.000001e6 : 7e6) }) }))['database'],
    'FAIL',
  );
  t.equal(verdicts(perfect({ readings: readings({ databaseBytes: () => 8e6 }) }))['database'], 'PASS');
  const oldest = ['2026-02-25T00:00:00.000Z', '2026-02-25T00:00:00.000Z'];
  t.equal(verdicts(perfect({ database: { maxBytes: 8e6, filled: 1, oldest } }))['database'], 'INCOMPLETE');
});

t.test('alerts: resolved, and told alike by every way', async (t) => {
  const alerts = (change: Partial<Findings['alerts']>): Findings => perfect({ alerts: { ...perfect().alerts, ...change } });
  const { byWay } = perfect().alerts;
  const open = { 'health_monitor/temperature/1': ['WARNING', 'CRITICAL'] };
  t.equal(verdicts(alerts({ byWay: { topic: open, events: open, rest: open, peer: open } }))['alerts'], 'FAIL', 'not resolved');
  for (const way of ['topic', 'rest', 'peer'] as const) {
    t.equal(verdicts(alerts({ byWay: { ...byWay, [way]: open } }))['alerts'], 'FAIL', `${way} tells less`);
    t.equal(verdicts(alerts({ byWay: { ...byWay, [way]: {} } }))['alerts'], 'FAIL', `${way} tells nothing`);
  }
  t.equal(verdicts(alerts({ byWay: { ...byWay, peer: null, topic: null } }))['alerts'], 'PASS', 'they need not be there');
  t.equal(verdicts(alerts({ byWay: { ...byWay, rest: null } }))['alerts'], 'INCOMPLETE');
  t.equal(verdicts(alerts({ turns: 2 }))['alerts'], 'FAIL', 'a cause without an alert');
  t.equal(verdicts(alerts({ unanswered: ['turn 2: not raised within 30 s'] }))['alerts'], 'FAIL');
  const other = { ...EPISODE, 'health_monitor/cpu_percent/2': ['WARNING'] };
  t.equal(
    verdicts(alerts({ byWay: { topic: other, events: other, rest: other, peer: other } }))['alerts'],
    'PASS',
    'open for a reason of its own',
  );
  t.equal(verdicts(alerts({ byWay: { ...byWay, events: other } }))['alerts'], 'FAIL', 'but told alike');
});

t.test('REST: one in a hundred may be late', async (t) => {
  const rest = (failed: number) => perfect({ rest: [{ path: '/health', asked: 200, failed, medianMs: 1, p99Ms: 1, mostMs: 1 }] });
  t.equal(verdicts(rest(2))['rest'], 'PASS');
  t.equal(verdicts(rest(3))['rest'], 'FAIL');
});

t.test('a run that was cut short has not passed; what failed in it has failed', async (t) => {
  const cutShort = 'interrupted after 100 of 300 s';
  t.equal(judgeSoak(perfect({ cutShort })).verdict, 'INCOMPLETE');
  t.equal(judgeSoak(perfect({ cutShort, counted: lossOf('events', 1) })).verdict, 'FAIL');
  t.match(judgeSoak(perfect({ died: 'SIGSEGV' })), { verdict: 'FAIL', statement: /^Did not hold: Service\./ });
});

t.test('both files say the same', async (t) => {
  const folder = temporaryFolder(t);
  const { verdict } = writeSoak(join(folder, 'new'), perfect({ notes: ['a | note'] }));
  const document = JSON.parse(readFileSync(join(folder, 'new', SOAK_FILES.json), 'utf8'));
  t.match(document, { schema: 'edge-health-soak/1', verdict, findings: { seconds: SECONDS } });
  t.ok(document.findings.readings.at.length <= 600);
  const page = readFileSync(join(folder, 'new', SOAK_FILES.markdown), 'utf8');
  t.match(page, `# edge-health soak: ${verdict}`);
  t.match(page, 'a CPU, 2 cores');
  t.match(page, 'a \\| note');
  t.match(page, 'left out: the first 1 min 30 s');
});
