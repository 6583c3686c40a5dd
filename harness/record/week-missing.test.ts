import t from 'tap';
import { judged, judgedShort, shortRun } from '../../testkit/weeks/judged.ts';
import { type Fault, week } from '../../testkit/weeks/weeks.ts';
import { minutes, readings, WITHOUT, without } from '../../testkit/weeks/without.ts';
import type { RecordEntry } from './entries.ts';
import { EvidenceBuilder } from './evidence.ts';

const HOUR = 3600;
const HOURS = 12;
const perfect: readonly RecordEntry[] = [...week({ hours: HOURS, hertz: 0.1 })];

t.test('no week passes without one kind of evidence, and the missing evidence is reported', async (t) => {
  const expected: Readonly<Record<string, readonly string[]>> = {
    'the topic': ['reliability INCOMPLETE', 'alerts INCOMPLETE'],
    'any status': ['reliability INCOMPLETE', 'alerts INCOMPLETE'],
    'readings of the service': ['stability INCOMPLETE', 'performance INCOMPLETE'],
    'readings of memory': ['stability INCOMPLETE'],
    'the list of open alerts': ['alerts INCOMPLETE'],
    'scans of the stored samples': ['integrity INCOMPLETE'],
    'scans of the collected rows': ['integrity INCOMPLETE'],
    'the last scans': ['integrity INCOMPLETE'],
    'the end': ['alerts INCOMPLETE'],
  };
  for (const [what, drop] of Object.entries(WITHOUT)) {
    const { by, failing, verdict } = judgedShort(drop(perfect));
    t.equal(verdict, 'INCOMPLETE', what);
    if (expected[what] !== undefined) t.same(failing, expected[what], what);
    for (const judgement of Object.values(by))
      t.equal(judgement.missing.length > 0, judgement.verdict === 'INCOMPLETE', `${what}: ${judgement.criterion}`);
  }
});

t.test('every criterion is INCOMPLETE without any evidence', async (t) => {
  const { failing } = judged([]);
  const all = ['uptime', 'reliability', 'stability', 'alerts', 'performance', 'integrity'];
  t.same(
    failing,
    all.map((criterion) => `${criterion} INCOMPLETE`),
  );
  t.same(new EvidenceBuilder().series().at, []);
});

t.test('without service entries the readings show the run', async (t) => {
  t.equal(judgedShort(without(perfect, ({ type }) => type === 'service')).verdict, 'PASS');
});

t.test('is INCOMPLETE if readings cover less than 90 %, and passes otherwise', async (t) => {
  const mute = (seconds: number): Fault[] => [{ kind: 'unresponsive', at: HOUR, seconds }];
  t.equal(shortRun(mute(0.09 * HOURS * HOUR), { hertz: 0.1 }).verdict, 'PASS');
  t.same(shortRun(mute(0.12 * HOURS * HOUR), { hertz: 0.1 }).failing, ['stability INCOMPLETE'], 'the CPU time goes on being counted');
  // The source alternates from minute to minute, so that no two readings can be compared.
  const alone = readings(perfect, (reading) => ({ ...reading, cpu_from: reading.samples % 12 < 6 ? 'group' : 'process' }));
  t.same(judgedShort(alone).failing, ['performance INCOMPLETE']);
});

t.test('a few statuses without a subscription do not change the verdict, many do', async (t) => {
  const deaf = (seconds: number): Fault[] => [{ kind: 'unsubscribed', channel: 'topic', at: 2 * HOUR, seconds }];
  const few = shortRun(deaf(420), { hertz: 0.1 });
  t.equal(few.verdict, 'PASS', 'even if they were lost');
  t.equal(few.evidence.reliability.unobserved, 42);
  t.same(shortRun(deaf(480), { hertz: 0.1 }).failing, ['reliability INCOMPLETE']);
  const loss: Fault = { kind: 'lose', at: 6 * HOUR, samples: 44, stage: 'deliver' };
  t.same(shortRun([...deaf(480), loss], { hertz: 0.1 }).failing, ['reliability FAIL'], 'even if they were received');
});

t.test('without a topic the event stream is used, and the report states that', async (t) => {
  for (const options of [{ transport: 'off' }, { serviceTransport: 'off' }] as const) {
    const { by, evidence, failing } = shortRun([], { hertz: 0.1, ...options });
    t.same(failing, []);
    t.equal(evidence.reliability.by, 'events');
    t.match(by.reliability.summary, options.transport ? 'does not subscribe' : 'not on the ROS 2 graph');
    t.match(by.alerts.summary, options.transport ? 'does not subscribe' : 'not on the ROS 2 graph');
    const loss: Fault = { kind: 'lose', at: 6 * HOUR, samples: 44, stage: 'deliver' };
    const lossy = shortRun([loss], { hertz: 0.1, ...options });
    t.same(lossy.failing, ['reliability FAIL']);
    t.equal(lossy.evidence.reliability.lost.notDelivered, 44);
    const critical: Fault = { kind: 'alert', at: 6 * HOUR, seconds: null, severity: 'CRITICAL' };
    t.same(shortRun([critical], { hertz: 0.1, ...options }).failing, ['alerts FAIL']);
    t.same(shortRun([{ kind: 'unsubscribed', channel: 'events', at: 0, seconds: 24 * HOUR }], { hertz: 0.1, ...options }).failing, [
      'reliability INCOMPLETE',
      'alerts INCOMPLETE',
    ]);
  }
});

t.test('a subscribed topic without a status is no loss of the service, unless it published nothing', async (t) => {
  const nothing = { first: null, steps: [], slowest_ms: null, fastest_ms: null };
  const deaf = judgedShort(minutes(perfect, (minute) => ({ ...minute, topic: nothing })));
  t.same(deaf.failing, ['reliability INCOMPLETE', 'alerts INCOMPLETE']);
  t.match(deaf.by.reliability.summary, 'nothing arrived on the topic');
  const counted = judgedShort(minutes(perfect, (minute) => ({ ...minute, topic: nothing, events: null })));
  t.same(counted.failing, ['reliability INCOMPLETE', 'alerts INCOMPLETE'], 'its own counters say that it published');
  const { by, verdict } = shortRun([{ kind: 'lose', at: 0, samples: 100_000, stage: 'publish' }], { hertz: 0.1 });
  t.same([verdict, by.reliability.verdict], ['FAIL', 'FAIL'], 'by its own counters it published nothing on the topic');
  // A late joiner could have received the last ten statuses; here there were none yet.
  const mute = (age: number): Iterable<RecordEntry> =>
    week({ hours: HOURS, hertz: 0.1, age, faults: [{ kind: 'lose', at: 0, samples: 100_000, stage: 'publish' }] });
  const unreported = (age: number): Iterable<RecordEntry> => readings(mute(age), (reading) => ({ ...reading, published: null }));
  t.equal(judgedShort(unreported(5)).by.reliability.verdict, 'INCOMPLETE', 'the event stream showed what it published');
  t.equal(judgedShort(unreported(500)).by.reliability.verdict, 'FAIL');
});
