import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { memoryOf, perfectEvidence, serviceRun } from '../../testkit/weeks/perfect.ts';
import { checksOf, type Findings } from './checks.ts';
import { judgeSoak, writeSoakReport } from './report.ts';

const SECONDS = 3000;
const SAMPLES = 60_000;
const ID = 'health_monitor/temperature/1';
const EPISODE = { [ID]: ['WARNING', 'CRITICAL', 'CRITICAL resolved'] };
const RELIABILITY = perfectEvidence().reliability;

function reliability(change: Partial<Findings['evidence']['reliability']> = {}): Findings['evidence'] {
  const all = { expected: SAMPLES, received: SAMPLES, byEvents: { expected: SAMPLES, received: SAMPLES } };
  return perfectEvidence({ reliability: { ...RELIABILITY, hertz: 20, ...all, ...change }, memory: memoryOf(() => 60e6, SECONDS) });
}

function readings(openFiles: (minute: number) => number, databaseBytes: (minute: number) => number = () => 7.9e6): Findings['readings'] {
  return Array.from({ length: SECONDS / 60 }, (_, minute) => ({
    at: minute * 60,
    openFiles: openFiles(minute),
    databaseBytes: databaseBytes(minute),
  }));
}

function perfect(change: Partial<Findings> = {}): Findings {
  return {
    facts: {
      began: '2026-03-04T05:06:07.000Z',
      machine: { cpu: 'a CPU', cores: 2, memoryGigabytes: 4, os: 'a | system' },
      kernel: 'Linux 6',
      version: '1.0.0',
      samples: SAMPLES,
      hertz: 20,
      transport: 'embedded',
      transport_reason: 'ros.transport is embedded',
      network: 'a network namespace of its own',
      max_megabytes: 8,
    },
    evidence: reliability(),
    fromMs: 0,
    toMs: SECONDS * 1000,
    readings: readings(() => 40),
    stored: { count: SAMPLES, seconds: SECONDS },
    samplesLost: 0,
    ended: null,
    interrupted: false,
    oldest: ['2026-02-25T00:00:00.000Z', '2026-02-25T00:15:00.000Z'],
    peer: SAMPLES,
    alerts: { cycles: 1, late: [], observedIds: [ID], channels: { topic: EPISODE, events: EPISODE, peer: EPISODE, rest: EPISODE } },
    requests: [{ path: '/health', requests: 100, failed: 1, medianMs: 2, p99Ms: 5, maxMs: 9 }],
    failures: [],
    ...change,
  };
}

const verdicts = (findings: Findings): Record<string, string> =>
  Object.fromEntries(checksOf(findings).map(({ check, verdict }) => [check, verdict]));

t.test('a perfect run passes', async (t) => {
  const { statement, verdict } = judgeSoak(perfect());
  t.equal(verdict, 'PASS');
  t.equal(statement, 'All checks passed. Length of the run: 60,000 of 60,000 samples at 20 Hz in 50 min.');
});

t.test('a restart or an exit of the service fails', async (t) => {
  t.match(judgeSoak(perfect({ ended: 'SIGSEGV' })), { verdict: 'FAIL', statement: /^Failed: Service\./ });
  const restarted = { ...reliability(), runs: [serviceRun(-10), serviceRun(100)] };
  t.equal(verdicts(perfect({ evidence: restarted }))['service'], 'FAIL');
});

t.test('samples: a loss of 1 % passes, more fails, on each channel', async (t) => {
  const lost = (count: number): Record<string, Partial<Findings>> => ({
    sampling: { evidence: reliability({ lost: { ...RELIABILITY.lost, notSampled: count } }) },
    topic: { evidence: reliability({ received: SAMPLES - count }) },
    events: { evidence: reliability({ byEvents: { expected: SAMPLES, received: SAMPLES - count } }) },
    stored: { stored: { count: SAMPLES - count, seconds: SECONDS } },
    peer: { peer: SAMPLES - count },
  });
  for (const [check, change] of Object.entries(lost(600))) t.equal(verdicts(perfect(change))[check], 'PASS', check);
  for (const [check, change] of Object.entries(lost(601))) t.equal(verdicts(perfect(change))[check], 'FAIL', check);
});

t.test('samples that could not be counted are missing evidence', async (t) => {
  t.equal(verdicts(perfect({ evidence: reliability({ by: 'topic', byEvents: null }) }))['events'], 'INCOMPLETE');
  t.equal(verdicts(perfect({ evidence: reliability({ by: 'events', reason: 'no subscription' }) }))['topic'], 'INCOMPLETE');
  t.equal(verdicts(perfect({ stored: { count: 0, seconds: 0 } }))['stored'], 'INCOMPLETE');
  t.equal(verdicts(perfect({ peer: 'cyclonedds-dev is not installed' }))['peer'], undefined, 'the independent subscriber is optional');
  const byEvents = reliability({ by: 'events', reason: 'requested with --transport off', byEvents: null });
  const off = verdicts(perfect({ facts: { ...perfect().facts, transport: 'off' }, peer: 'off', evidence: byEvents }));
  t.same([off['topic'], off['events']], [undefined, 'PASS']);
});

t.test('memory: growth of less than 10 % after the warm-up passes, whatever happened before', async (t) => {
  const leak = (megabytes: number): Findings => {
    const bytes = (at: number): number => 90e6 + (at < 300 ? -60e6 : (megabytes * 1e6 * (at - 300)) / (SECONDS - 300));
    return perfect({ evidence: { ...reliability(), memory: memoryOf(bytes, SECONDS) } });
  };
  t.equal(verdicts(leak(8))['memory'], 'PASS');
  t.equal(verdicts(leak(13))['memory'], 'FAIL');
  const short = { ...reliability(), memory: memoryOf(() => 90e6, 350) };
  t.equal(verdicts(perfect({ evidence: short }))['memory'], 'INCOMPLETE');
});

t.test('open files: a varying number is no growth, one more every ten minutes is', async (t) => {
  t.equal(verdicts(perfect({ readings: readings((minute) => 40 + 20 * (minute % 7 === 0 ? 1 : 0)) }))['open-files'], 'PASS');
  t.equal(verdicts(perfect({ readings: readings((minute) => 40 + Math.floor(minute / 10)) }))['open-files'], 'FAIL');
  t.equal(verdicts(perfect({ readings: readings((minute) => (minute < 5 ? 30 : 40)) }))['open-files'], 'PASS', 'before the warm-up');
});

t.test('database: stays within its limit, and samples were removed to keep it', async (t) => {
  const size = (bytes: number): Findings['readings'] =>
    readings(
      () => 40,
      (minute) => (minute === 20 ? bytes : 7e6),
    );
  t.equal(verdicts(perfect({ readings: size(8e6) }))['database'], 'PASS');
  t.equal(verdicts(perfect({ readings: size(8.000001e6) }))['database'], 'FAIL');
  const oldest = ['2026-02-25T00:00:00.000Z', '2026-02-25T00:00:00.000Z'] as const;
  t.equal(verdicts(perfect({ oldest }))['database'], 'INCOMPLETE', 'the limit was not reached');
});

t.test('alerts: resolved, and identical on every channel', async (t) => {
  const verdictOf = (change: Partial<Findings['alerts']>): string | undefined =>
    verdicts(perfect({ alerts: { ...perfect().alerts, ...change } }))['alerts'];
  const { channels } = perfect().alerts;
  const open = { [ID]: ['WARNING', 'CRITICAL'] };
  t.equal(verdictOf({ channels: { topic: open, events: open, peer: open, rest: open } }), 'FAIL', 'not resolved');
  for (const channel of ['topic', 'events', 'peer', 'rest'] as const) {
    t.equal(verdictOf({ channels: { ...channels, [channel]: open } }), 'FAIL', `a change is missing: ${channel}`);
    if (channel !== 'rest') t.equal(verdictOf({ channels: { ...channels, [channel]: {} } }), 'FAIL', `no episode: ${channel}`);
  }
  t.equal(verdictOf({ channels: { ...channels, peer: null, topic: null } }), 'PASS', 'both are optional');
  t.equal(verdictOf({ channels: { ...channels, rest: null } }), 'INCOMPLETE');
  t.equal(verdictOf({ cycles: 2 }), 'FAIL', 'a cause without an alert');
  t.equal(verdictOf({ late: ['alert 2: not raised within 30 s'] }), 'FAIL');
});

t.test('REST: one request in a hundred may fail', async (t) => {
  const verdictOf = (failed: number): string | undefined =>
    verdicts(perfect({ requests: [{ path: '/health', requests: 200, failed, medianMs: 1, p99Ms: 1, maxMs: 1 }] }))['rest'];
  t.equal(verdictOf(2), 'PASS');
  t.equal(verdictOf(3), 'FAIL');
});

t.test('an interrupted run does not pass, and a failure in it remains a failure', async (t) => {
  t.equal(judgeSoak(perfect({ interrupted: true })).verdict, 'INCOMPLETE');
  t.equal(judgeSoak(perfect({ interrupted: true, peer: 1 })).verdict, 'FAIL');
});

t.test('both files have the same verdict', async (t) => {
  const folder = mkdtempSync(join(temporaryFolder(t), 'soak-'));
  const { verdict } = writeSoakReport(folder, perfect());
  t.match(JSON.parse(readFileSync(join(folder, 'soak.json'), 'utf8')), { schema: 'edge-health-soak/2', verdict, facts: { hertz: 20 } });
  const page = readFileSync(join(folder, 'soak.md'), 'utf8');
  t.match(page, `# edge-health soak: ${verdict}`);
  t.match(page, 'a \\| system');
});
