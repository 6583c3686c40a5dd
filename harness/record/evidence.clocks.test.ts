import t from 'tap';
import { type Fault, type WeekOptions, week } from '../../testkit/weeks/weeks.ts';
import { minutes, readings, without } from '../../testkit/weeks/without.ts';
import type { Evidence } from '../engine/evidence.ts';
import type { MinuteEntry, NoteEntry, Received, RecordEntry } from './entries.ts';
import { EvidenceBuilder } from './evidence.ts';

const HOUR = 3600;

function boiled(entries: Iterable<RecordEntry>): Evidence {
  const builder = new EvidenceBuilder();
  for (const entry of entries) builder.add(entry);
  return builder.evidence();
}

function evidenceOf(faults: readonly Fault[], options: WeekOptions = {}): Evidence {
  return boiled(week({ hours: 0.5, faults, ...options }));
}

t.test('setting the clock loses no status and makes no gap', async (t) => {
  for (const seconds of [HOUR, -HOUR, 400, -400, 60, -60, -5]) {
    const { integrity, reliability } = evidenceOf([{ kind: 'step', at: 905, seconds }]);
    t.same([reliability.received, reliability.duplicates], [1800, 0], `${seconds} s`);
    t.equal(integrity.stored?.longestSeconds, 1, `${seconds} s`);
    t.ok((integrity.stored?.unscannedSeconds ?? 9) < 2, `${seconds} s: ${integrity.stored?.unscannedSeconds}`);
  }
  const both = evidenceOf([
    { kind: 'step', at: 905, seconds: -HOUR },
    { kind: 'step', at: 925, seconds: 2 * HOUR },
    { kind: 'step', at: 1205, seconds: -HOUR },
  ]);
  t.equal(both.reliability.received, 1800);
  t.ok((both.integrity.stored?.unscannedSeconds ?? 99) < 6, `${both.integrity.stored?.unscannedSeconds}`);
  t.ok((both.integrity.stored?.longestSeconds ?? 99) < 6, `${both.integrity.stored?.longestSeconds}`);
  t.equal(both.clockSteps.length, 3);
});

t.test('statuses repeated after the clock was set are recognized as duplicates', async (t) => {
  for (const seconds of [HOUR, -HOUR]) {
    const entries = [...week({ hours: 1, faults: [{ kind: 'step', at: 1790, seconds }] })];
    const all = entries.filter((entry) => entry.type === 'minute');
    for (const [later, expected] of [
      [1, 60],
      [4, 60],
      [5, 60],
      [8, 0],
    ] as const) {
      // A subscriber that joins again receives the statuses from before the step.
      const [early, late] = [all[28], all[29 + later]];
      const again = entries.map((entry) =>
        entry === late ? { ...late, topic: joined(early?.topic ?? null, late?.topic ?? null) } : entry,
      );
      const { duplicates } = boiled(again as RecordEntry[]).reliability;
      if (expected > 0) t.equal(duplicates, expected, `${seconds} s, ${later} min later`);
      else t.ok(seconds > 0 ? duplicates < 60 : true, 'beyond five minutes it is not known any more');
    }
  }
});

function joined(early: Received | null, late: Received | null): Received | null {
  if (early?.first == null || late?.first == null) return null;
  const last = early.first + early.steps.reduce((sum, step) => sum + step, 0);
  return { ...late, first: early.first, steps: [...early.steps, late.first - last, ...late.steps] };
}

t.test('a suspend explains only the gap that contains it, as precisely as the clock entry shows', async (t) => {
  const suspend: Fault = { kind: 'suspend', at: 935, seconds: 20 };
  const gap: Fault = { kind: 'gap', of: 'stored', at: 600, seconds: 325 };
  t.equal(evidenceOf([suspend, gap]).integrity.stored?.longestSeconds, 325, 'not what ended before it');
  const unreported = without(week({ hours: 0.5, faults: [suspend, gap] }), ({ type }) => type === 'clock');
  t.equal(boiled(unreported).integrity.stored?.longestSeconds, 305, 'without one it may have been anywhere in its minute');
  const long: Fault[] = [{ kind: 'suspend', at: 905, seconds: 100 }];
  t.equal(boiled(without(week({ hours: 0.5, faults: long }), ({ type }) => type === 'clock')).integrity.stored?.longestSeconds, 1);
});

t.test('the clocks of every entry show a suspend', async (t) => {
  const entries = [...week({ hours: 0.5, faults: [{ kind: 'suspend', at: 905, seconds: 20 }] })].filter(({ type }) => type !== 'clock');
  t.same(boiled(entries).suspends, [{ at: 960, seconds: 20 }], 'somewhere before the minute’s end');
  const minute = entries.find((entry) => entry.type === 'minute' && entry.boot > 5000 + 905) as MinuteEntry;
  const clocks = { boot: 5926, mono: 5926 - 20 - 1000, wall: minute.wall - 54_000 };
  const between: RecordEntry[] = [
    { type: 'note', text: 'here', ...clocks } satisfies NoteEntry,
    { type: 'coverage', of: 'stored', from: 0, to: 0, count: 0, first: null, last: null, longest_seconds: 0, gaps: [], ...clocks },
    { type: 'open', open: [], ...clocks },
    { type: 'alert', by: 'topic', alert_id: 'a', severity: 'WARNING', metric: 'm', timestamp: '', resolved: true, ...clocks },
  ];
  for (const entry of between) {
    const reported = entries.flatMap((other) => (other === minute ? [entry, other] : [other]));
    t.same(boiled(reported).suspends, [{ at: 906, seconds: 20 }], entry.type);
  }
});

t.test('a reboot is reported as a reboot', async (t) => {
  const { monitoringGaps, integrity, runs } = evidenceOf([{ kind: 'reboot', at: 930, seconds: 120 }]);
  t.same(monitoringGaps, [{ from: 900, to: 1070, kind: 'off' }]);
  t.same(
    integrity.stored?.gaps.map(({ remark, seconds }) => [seconds, remark]),
    [[131, 'the machine was off']],
  );
  t.equal(runs[1]?.cause, 'reboot');
  const killed = evidenceOf([
    { kind: 'kill', at: 930, seconds: 120 },
    { kind: 'gap', of: 'stored', at: 930, seconds: 100 },
  ]);
  t.same([killed.monitoringGaps[0]?.kind, killed.integrity.stored?.gaps[0]?.remark], ['away', ''], 'a stopped observer alone is none');
});

t.test('a container that is started again keeps the clock of its kernel', async (t) => {
  const killed = [...week({ hours: 0.5, faults: [{ kind: 'kill', at: 930, seconds: 120 }] })];
  const booted = (kernels: readonly [string, string]): Evidence => {
    const ids = kernels.map((kernel, index) => `${kernel}/${index}`);
    return boiled(
      killed.map((entry) =>
        entry.type === 'begin' || entry.type === 'resume' ? { ...entry, boot_id: ids[entry.type === 'begin' ? 0 : 1] as string } : entry,
      ),
    );
  };
  const [gap] = boiled(killed).monitoringGaps;
  t.same(booted(['k', 'k']).monitoringGaps, [{ ...gap, kind: 'off' }]);
  t.ok(
    (booted(['k', 'l']).monitoringGaps[0]?.to ?? 0) > (gap?.to ?? 0) + 1000,
    'that of a machine begins again: it was booting all that time',
  );
});

t.test('lists gaps of more than 60 s between stored samples, and of more than 150 s between collected rows', async (t) => {
  const listed = (of: 'stored' | 'collected', seconds: number): number | undefined =>
    evidenceOf([{ kind: 'gap', of, at: 600, seconds }]).integrity[of]?.gaps.length;
  t.same([listed('stored', 60), listed('stored', 61), listed('collected', 150), listed('collected', 151)], [0, 1, 0, 1]);
  // Gaps at both ends, which the scans do not list.
  const atBegin = (of: 'stored' | 'collected', seconds: number): number | undefined =>
    evidenceOf([{ kind: 'gap', of, at: -60, seconds: 60 + seconds }]).integrity[of]?.gaps.length;
  t.same([atBegin('stored', 50), atBegin('stored', 70), atBegin('collected', 70), atBegin('collected', 160)], [0, 1, 0, 1]);
});

t.test('evidence that was not scanned is missing', async (t) => {
  for (const held of ['stored', 'collected'] as const) {
    const { integrity } = boiled(without(week({ hours: 0.5 }), (entry) => entry.type === 'coverage' && entry.of === held));
    t.same([integrity[held], integrity.reason], [null, 'not scanned']);
  }
  const { alerts, integrity } = boiled([...week({ hours: 0.5 })].slice(0, 1));
  t.same([integrity.stored, integrity.collected, alerts.openByTopic], [null, null, null]);
  t.equal(boiled([...week({ hours: 0.5, transport: 'off' })].slice(0, 1)).alerts.openByTopic, null);
});

t.test('a record without its begin entry starts with the resume', async (t) => {
  t.same(new EvidenceBuilder().evidence().monitoringGaps, []);
  const entries = [...week({ hours: 0.5, faults: [{ kind: 'kill', at: 900, seconds: 60 }] })].slice(1);
  const { monitoringGaps, observed } = boiled(entries.filter((entry) => entry.type !== 'minute' || entry.boot > 5900));
  t.same([monitoringGaps, observed.length], [[], 1], 'begins with the resume');
});

t.test('a clock difference is derived from the delays only for another machine', async (t) => {
  const late = (kind: 'unit' | 'url'): Evidence =>
    boiled(minutes(week({ hours: 0.5, kind }), (minute) => ({ ...minute, topic: minute.topic && { ...minute.topic, fastest_ms: -5000 } })));
  t.equal(late('unit').reliability.received, 1800);
  t.equal(late('url').reliability.received, 1795, 'these were stamped before the begin');
});

t.test('the service may be last seen at the very end', async (t) => {
  const entries = [...week({ hours: 0.5 })];
  const last = entries.findLast((entry) => entry.type === 'minute') as MinuteEntry;
  const silent = minutes(entries, (minute) => ({
    ...minute,
    service: null,
    events: null,
    topic: { steps: [], slowest_ms: 1, fastest_ms: 1, first: minute.boot === last.boot ? last.wall : null },
  }));
  t.equal(boiled(silent).lastSeenAt, 1800);
});

t.test('lost statuses are counted by stage', async (t) => {
  const { reliability } = evidenceOf([
    { kind: 'lose', at: 300, samples: 10, stage: 'sample' },
    { kind: 'lose', at: 600, samples: 20, stage: 'publish' },
    { kind: 'lose', at: 900, samples: 30, stage: 'deliver' },
  ]);
  t.same(reliability.lost, { notSampled: 10, notPublished: 20, notDelivered: 30, unknown: 0 });
});

t.test('a stall is subtracted from the observed time', async (t) => {
  const { reliability, observed } = evidenceOf([{ kind: 'stall', at: 610, seconds: 20 }]);
  t.same([reliability.expected, reliability.received], [1780, 1780]);
  t.same(
    observed.map(({ awakeSeconds }) => awakeSeconds),
    [640, 1140],
  );
});

t.test('a topic without statuses is a loss of the service only if its counters show that it published nothing', async (t) => {
  const nothing = { first: null, steps: [], slowest_ms: null, fastest_ms: null };
  const silent = (published: number | null, channels: 'topic' | 'both' = 'topic'): Evidence => {
    const entries = minutes(week({ hours: 0.5 }), (minute) => ({
      ...minute,
      topic: nothing,
      events: channels === 'both' ? nothing : minute.events,
    }));
    return boiled(readings(entries, (reading) => ({ ...reading, published: published === null ? null : reading.samples * published })));
  };
  t.equal(silent(0).reliability.unobserved, 0, 'it counted none');
  t.equal(silent(1).reliability.unobserved, 1800, 'it counted them');
  t.equal(silent(1, 'both').reliability.unobserved, 1800);
  t.equal(silent(null).reliability.unobserved, 1800, 'not counted, but the event stream shows it');
  t.equal(silent(null, 'both').reliability.unobserved, 0, 'none on either channel');
  t.equal(silent(0).reliability.reason, null);
});

t.test('a gap right before the clock was set back keeps its length', async (t) => {
  const forward: Fault = { kind: 'step', at: 300, seconds: 1000 };
  const back: Fault = { kind: 'step', at: 905, seconds: -400 };
  const gap: Fault = { kind: 'gap', of: 'stored', at: 604, seconds: 301 };
  t.equal(evidenceOf([back, gap]).integrity.stored?.longestSeconds, 301);
  t.equal(evidenceOf([forward, back, gap]).integrity.stored?.longestSeconds, 301, 'whatever was before');
  t.equal(evidenceOf([{ kind: 'suspend', at: 310, seconds: 20 }, back, gap]).integrity.stored?.longestSeconds, 301);
});

t.test('a monitoring gap separates observed spans', async (t) => {
  const { reliability, observed } = evidenceOf([{ kind: 'kill', at: 930, seconds: 60 }]);
  t.same(
    observed.map(({ from, to }) => [from, to]),
    [
      [0, 900],
      [990, 1890],
    ],
  );
  t.same([reliability.expected, reliability.received], [1800, 1800]);
});

t.test('statuses repeated after a suspend are recognized as duplicates', async (t) => {
  const entries = [...week({ hours: 0.5, faults: [{ kind: 'suspend', at: 955, seconds: 400 }] })];
  const all = entries.filter((entry) => entry.type === 'minute');
  const [early, late] = [all[15], all[16]];
  const again = entries.map((entry) => (entry === late ? { ...late, topic: joined(early?.topic ?? null, late?.topic ?? null) } : entry));
  t.equal(boiled(again as RecordEntry[]).reliability.duplicates, 60);
});

t.test('the charts show the topic even without an event stream', async (t) => {
  const builder = new EvidenceBuilder();
  for (const entry of week({ hours: 0.5, faults: [{ kind: 'unsubscribed', channel: 'events', at: 0, seconds: 9000 }] })) builder.add(entry);
  t.equal(builder.series().ratePercent[0], 100);
});

t.test('statuses repeated to a late joiner compensate for no loss, whatever the clocks did before', async (t) => {
  const faults: readonly Fault[] = [
    { kind: 'kill', at: 930, seconds: 60 },
    { kind: 'lose', at: 1200, samples: 20, stage: 'deliver' },
  ];
  const befores: readonly (readonly Fault[])[] = [
    [],
    [{ kind: 'suspend', at: 310, seconds: 15 }],
    [{ kind: 'suspend', at: 850, seconds: 15 }],
    [{ kind: 'step', at: 310, seconds: 15 }],
  ];
  for (const before of befores) {
    const { expected, received } = evidenceOf([...before, ...faults]).reliability;
    t.equal(expected - received, 20, before[0]?.kind ?? 'nothing before');
  }
});
