import t from 'tap';
import { week } from '../../testkit/weeks/weeks.ts';
import type { Clocked, Observer, RecordEntry, Target } from '../record/entries.ts';
import { ResumeState } from './resume-state.ts';
import { reading } from './testing/observed.ts';

const target: Target = {
  kind: 'unit',
  url: 'http://127.0.0.1:5000',
  unit: 'edge-health.service',
  node_name: 'robot',
  version: '1',
  configured_hertz: 1,
  service_transport: 'embedded',
  data_folder: null,
};
const observer: Observer = { version: '1', transport: 'embedded', reason: '', machine: null };
const at = (seconds: number, wall = seconds): Clocked => ({ boot: seconds, mono: seconds, wall: wall * 1000 });
const begin = (now: Clocked): RecordEntry => ({
  type: 'begin',
  ...now,
  format: 1,
  run: 'r',
  boot_id: 'a',
  planned_seconds: 600,
  target,
  observer,
});
const resume = (now: Clocked, boot_id: string): RecordEntry => ({ type: 'resume', ...now, boot_id, target, observer });
const minute = (now: Clocked, restarts: number | null = null): RecordEntry => ({
  type: 'minute',
  ...now,
  topic: null,
  events: null,
  stalled_seconds: 0,
  service: { ...reading(), group: { memory_bytes: 1, anon_bytes: 1, restarts } },
  host: { cpu: null, memory: null, disk: null, celsius: null },
  observer: { cpu_seconds: 0, resident_bytes: 0 },
});
const service = (now: Clocked, cause: 'first' | 'signal', unseen = 0): RecordEntry => {
  const run = { started: `s${now.boot}`, version: '1', pid: 1, invocation: null };
  return { type: 'service', ...now, ...run, cause, detail: '', unseen };
};
const alert = (id: string, by: 'topic' | 'events', resolved: boolean): RecordEntry => {
  const change = { alert_id: id, severity: 'CRITICAL', metric: 'm', timestamp: '', resolved } as const;
  return { type: 'alert', ...at(1), by, ...change };
};

function resumed(...entries: RecordEntry[]): ResumeState {
  const found = new ResumeState();
  for (const entry of entries) found.add(entry);
  return found;
}

t.test('monitoring gaps are measured by the boot-time clock, and across a boot by the wall clock', async (t) => {
  const one = resumed(begin(at(100)), minute(at(160)), resume(at(190), 'a'), minute(at(250)), resume(at(20, 400), 'b'));
  t.equal(one.gapSeconds, 30 + 150);
  t.equal(one.bootId, 'b');
  t.equal(one.beganMs, 100_000);
  t.equal(one.plannedSeconds, 600);
  const container = resumed({ ...begin(at(100)), boot_id: 'k/1' } as RecordEntry, minute(at(160)), resume(at(170, 4000), 'k/2'));
  t.equal(container.gapSeconds, 10, 'a container has the clock of its kernel');
});

t.test('restores the last observed run of the service, its boot and its restarts', async (t) => {
  const one = resumed(begin(at(100)), service(at(100), 'first'), minute(at(160), 2), service(at(170), 'signal', 1), minute(at(180), 4));
  t.match(one.service, { started: 's170' });
  t.equal(one.serviceBootId, 'a');
  t.equal(one.unitRestarts, 4);
  t.equal(one.serviceRestarts, 2);
  t.equal(resumed(begin(at(100)), service(at(100), 'first'), resume(at(5), 'b')).serviceBootId, 'a', 'which may be an earlier one');
  t.equal(resumed(begin(at(100)), minute(at(160), 3), service(at(170), 'signal')).unitRestarts, null, 'not those of the run before');
});

t.test('restores open alerts and the ends of scans', async (t) => {
  const scan = { type: 'coverage', ...at(5), from: 0, to: 7, count: 0, first: null, last: null, longest_seconds: 0, gaps: [] } as const;
  const one = resumed(
    ...[begin(at(0)), alert('a', 'topic', false), alert('b', 'topic', false), alert('c', 'events', false), alert('a', 'topic', true)],
    ...[
      { ...scan, of: 'stored' } as const,
      { type: 'open', ...at(6), open: [{ alert_id: 'b', severity: 'CRITICAL', metric: 'm' }] } as const,
    ],
  );
  t.same([...one.openByTopic.keys()], ['b']);
  t.same(one.scannedUntil, { stored: 7, collected: null });
  t.equal(one.open.length, 1);
});

t.test('distinguishes a complete run from a stopped one', async (t) => {
  const end = (reason: 'complete' | 'stopped'): RecordEntry => ({ type: 'end', ...at(9), reason });
  t.equal(resumed(begin(at(0)), end('complete')).isComplete, true);
  t.equal(resumed(begin(at(0)), end('stopped')).isComplete, false);
  const whole = resumed(...week({ hours: 1 }));
  t.equal(whole.isComplete, true);
  t.equal(whole.gapSeconds, 0);
});
