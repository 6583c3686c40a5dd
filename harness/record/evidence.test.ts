import t from 'tap';
import { BEGIN_MS, type Fault, type WeekOptions, week } from '../../testkit/weeks/weeks.ts';
import { minutes, readings, without } from '../../testkit/weeks/without.ts';
import type { ChartSeries, Evidence } from '../engine/evidence.ts';
import type { RecordEntry } from './entries.ts';
import { EvidenceBuilder } from './evidence.ts';

const NOTHING = { first: null, steps: [], slowest_ms: null, fastest_ms: null };

function built(entries: Iterable<RecordEntry>): EvidenceBuilder {
  const builder = new EvidenceBuilder();
  for (const entry of entries) builder.add(entry);
  return builder;
}

function evidenceOf(faults: readonly Fault[] = [], options: WeekOptions = {}): Evidence {
  return built(week({ hours: 0.5, faults, ...options })).evidence();
}

function seriesOf(faults: readonly Fault[]): ChartSeries {
  return built(week({ hours: 0.5, faults })).series();
}

t.test('half an hour without a fault gives complete evidence', async (t) => {
  const builder = built(week({ hours: 0.5 }));
  t.equal(builder.observedSeconds, 1800);
  const { alerts, cpu, integrity, memory, reliability, runs, ...rest } = builder.evidence();
  t.same(rest, {
    origin: 'observed',
    plannedSeconds: 1800,
    ended: true,
    observed: [{ from: 0, to: 1800, awakeSeconds: 1800 }],
    monitoringGaps: [],
    suspends: [],
    clockSteps: [],
    lastSeenAt: 1800,
  });
  t.same(reliability, {
    by: 'topic',
    reason: null,
    hertz: 1,
    expected: 1800,
    received: 1800,
    unobserved: 0,
    duplicates: 0,
    outOfOrder: 0,
    lost: { notSampled: 0, notPublished: 0, notDelivered: 0, unknown: 0 },
    byEvents: { expected: 1800, received: 1800 },
  });
  t.same([runs.length, runs[0]?.from, memory.at.length, Math.round(cpu.awakeSeconds)], [1, -86_400, 120, 1740]);
  t.same(alerts, { episodes: { WARNING: 0, ERROR: 0, CRITICAL: 0 }, openByRest: [], openByTopic: [], reason: null });
  t.same([integrity.stored?.count, integrity.collected?.count, integrity.reason], [1800, 30, null]);
  t.same(built(week({ hours: 0.5 })).evidence(), builder.evidence(), 'may be asked again');
});

t.test('the run has ended once the planned time was observed', async (t) => {
  t.equal(evidenceOf([], { until: 1799.999 }).ended, false);
  t.equal(evidenceOf([], { until: 1800, killed: true }).ended, true, 'whether or not the record has its end');
  t.equal(built(without(week({ hours: 0.5 }), ({ type }) => type === 'minute')).evidence().ended, false);
  t.equal(new EvidenceBuilder().evidence().ended, false);
  t.equal(new EvidenceBuilder().observedSeconds, 0);
  const early = [...week({ hours: 0.5 })].slice(1);
  t.same(built(early).evidence().observed, [], 'minutes without a begin are of nothing');
});

t.test('the service was last seen in a reading or a status', async (t) => {
  t.equal(evidenceOf([{ kind: 'unresponsive', at: 0, seconds: 9000 }]).lastSeenAt, 1799.5, 'statuses alone');
  const silent: Fault[] = [
    { kind: 'unsubscribed', channel: 'topic', at: 0, seconds: 9000 },
    { kind: 'unsubscribed', channel: 'events', at: 600, seconds: 9000 },
  ];
  t.equal(evidenceOf(silent).lastSeenAt, 1800, 'readings alone');
  t.equal(evidenceOf([...silent, { kind: 'unresponsive', at: 0, seconds: 9000 }]).lastSeenAt, 599.5, 'until they end');
  t.equal(evidenceOf([{ kind: 'die', at: 900 }]).lastSeenAt, 899.5);
  const nothing = built(minutes(week({ hours: 0.5 }), (minute) => ({ ...minute, service: null, topic: NOTHING, events: null })));
  t.equal(nothing.evidence().lastSeenAt, null);
  // The last status arrived while the last minute was written, so that its stamp is later.
  const ahead = built(
    minutes(week({ hours: 0.5 }), (minute) => ({
      ...minute,
      service: null,
      events: null,
      topic: { ...NOTHING, first: minute.wall + 200, steps: [] },
    })),
  );
  t.equal(ahead.evidence().lastSeenAt, null);
});

t.test('the alerts open at the end must be requested at the end', async (t) => {
  const openOf = (entries: Iterable<RecordEntry>): number | null => built(entries).evidence().alerts.openByRest?.length ?? null;
  const open: Fault[] = [{ kind: 'alert', at: 300, seconds: null, severity: 'WARNING' }];
  const all = [...week({ hours: 0.5, faults: open })];
  t.equal(openOf(all), 1);
  const lists = all.filter(({ type }) => type === 'open');
  t.equal(lists.length, 3, 'at the begin, when it changed, at the end');
  const unasked = all.filter((entry) => entry !== lists[2]);
  t.equal(openOf(unasked), null);
  t.equal(openOf(unasked.filter(({ type }) => type !== 'end')), null, 'also if the observer was killed in the last moment');
  t.equal(openOf(unasked.filter((entry) => entry !== lists[1])), null);
  t.equal(openOf(all.filter(({ type }) => type !== 'open')), null);
  const late = { ...(lists[1] as RecordEntry), boot: (all.at(-1)?.boot ?? 0) - 120 };
  t.equal(openOf([...unasked, late]), 1, 'within two minutes');
  t.equal(openOf([...unasked, { ...late, boot: late.boot - 0.001 }]), null);
  const going = all.filter((entry) => entry.boot < 5000 + 1500);
  t.equal(openOf(going), 1, 'while it goes on, as it was listed last');
  const atBegin = [...week({ hours: 0.5, until: 600, killed: true })].map((entry) =>
    entry.type === 'open' ? { ...entry, boot: 5000 } : entry,
  );
  t.equal(openOf(atBegin), 0, 'right at the begin');
  const unread = minutes(week({ hours: 0.5, until: 60, killed: true }), (minute) => ({ ...minute, service: null }));
  t.equal(openOf(unread), 0, 'in the first minutes it was just asked');
  t.equal(openOf(going.filter((entry) => entry !== lists[1])), 0);
  t.equal(openOf([...going, { ...(all.at(-1) as RecordEntry), boot: 6500 }]), null, 'not once it was stopped');
  const mute = week({ hours: 0.5, until: 1500, killed: true, faults: [...open, { kind: 'unresponsive', at: 1300, seconds: 500 }] });
  t.equal(openOf(mute), null, 'nor when the service does not answer');
  const short = week({ hours: 0.5, until: 1500, killed: true, faults: [...open, { kind: 'unresponsive', at: 1400, seconds: 500 }] });
  t.equal(openOf(short), 1, 'it did two minutes ago');
  const away = [...week({ hours: 0.5, until: 1500, killed: true, faults: [...open, { kind: 'kill', at: 900, seconds: 60 }] })];
  t.equal(openOf(away), 1);
  const resumed = away.findIndex(({ type }) => type === 'resume');
  t.equal(
    openOf(away.filter((entry, index) => entry.type !== 'open' || index < resumed)),
    null,
    'a list from before a monitoring gap shows nothing',
  );
});

t.test('an alert received on the topic stays open there until it is resolved there', async (t) => {
  const open = evidenceOf([{ kind: 'alert', at: 300, seconds: null, severity: 'CRITICAL' }]).alerts;
  t.same([open.openByTopic?.length, open.openByRest?.length, open.episodes.CRITICAL], [1, 1, 1]);
  t.same(open.openByRest?.[0], { alertId: open.openByTopic?.[0]?.alertId, metric: 'cpu_percent', severity: 'CRITICAL', since: null });
  const deafAtEnd = evidenceOf([{ kind: 'unsubscribed', channel: 'topic', at: 1740, seconds: 60 }]).alerts;
  t.same([deafAtEnd.openByTopic, deafAtEnd.reason === null], [null, false]);
  t.same(
    evidenceOf([{ kind: 'unsubscribed', channel: 'topic', at: 600, seconds: 60 }]).alerts.openByTopic,
    [],
    'but not if it is there again',
  );
  t.same(
    evidenceOf([{ kind: 'unsubscribed', channel: 'events', at: 1740, seconds: 60 }]).alerts.openByTopic,
    [],
    'the other way does not matter',
  );
  // Resolved in a monitoring gap, and more than ten changes followed: only the list shows it.
  const many = Array.from({ length: 12 }, (_, index): Fault => ({ kind: 'alert', at: 1000 + index * 5, seconds: 2, severity: 'WARNING' }));
  const missed = evidenceOf([
    { kind: 'alert', at: 300, seconds: 620, severity: 'CRITICAL' },
    { kind: 'kill', at: 900, seconds: 300 },
    ...many,
  ]);
  t.same([missed.alerts.openByTopic, missed.alerts.openByRest], [[], []]);
});

t.test('without a topic the event stream is used', async (t) => {
  const off = evidenceOf([{ kind: 'lose', at: 100, samples: 30, stage: 'deliver' }], { transport: 'off' });
  t.same([off.reliability.by, off.reliability.received, off.reliability.byEvents], ['events', 1770, null]);
  t.match(off.reliability.reason, 'does not subscribe');
  t.same([off.reliability.unobserved, off.reliability.reason?.includes('arrived')], [0, false]);
  t.same([off.alerts.openByTopic, off.alerts.reason], [[], off.reliability.reason]);
  const unpublished = evidenceOf([], { serviceTransport: 'off' });
  t.same([unpublished.reliability.by, unpublished.reliability.received], ['events', 1800]);
  t.match(unpublished.reliability.reason, 'not on the ROS 2 graph');
  const neither = evidenceOf([{ kind: 'unsubscribed', channel: 'events', at: 0, seconds: 9000 }], { transport: 'off' });
  t.same([neither.reliability.by, neither.alerts.openByTopic], [null, null]);
  const alone = evidenceOf([{ kind: 'unsubscribed', channel: 'events', at: 0, seconds: 9000 }]);
  t.same([alone.reliability.by, alone.reliability.byEvents], ['topic', null]);
  t.equal(evidenceOf([{ kind: 'unsubscribed', channel: 'topic', at: 0, seconds: 9000 }]).reliability.by, 'topic', 'it was asked for');
  const partly = evidenceOf([{ kind: 'unsubscribed', channel: 'events', at: 0, seconds: 600 }]);
  t.same(partly.reliability.byEvents, { expected: 1800, received: 1200 });
});

t.test('a topic that was subscribed at the start is still judged after a resume without it', async (t) => {
  const entries = [...week({ hours: 0.5, faults: [{ kind: 'kill', at: 900, seconds: 60 }] })].map((entry) =>
    entry.type === 'resume' ? { ...entry, observer: { ...entry.observer, transport: 'off' as const } } : entry,
  );
  t.equal(built(entries).evidence().reliability.by, 'topic');
});

t.test('a topic on which nothing arrives is not observed', async (t) => {
  const deaf = built(minutes(week({ hours: 0.5 }), (minute) => ({ ...minute, topic: NOTHING }))).evidence();
  t.same([deaf.reliability.by, deaf.reliability.received, deaf.reliability.unobserved], ['topic', 0, 1800]);
  t.match(deaf.reliability.reason, 'nothing arrived on the topic');
  t.same([deaf.alerts.openByTopic, deaf.alerts.reason], [null, deaf.reliability.reason]);
  t.equal(deaf.reliability.lost.unknown, 1800);
  const series = built(minutes(week({ hours: 0.5 }), (minute) => ({ ...minute, topic: NOTHING }))).series();
  t.equal(series.ratePercent[0], 100, 'the chart shows the other way');
});

t.test('uses the rate that readings show after a restart', async (t) => {
  const entries = readings(week({ hours: 0.5 }), (reading) => ({ ...reading, configured_hertz: reading.samples > 1000 ? 2 : 1 }));
  const { reliability } = built(entries).evidence();
  t.same([reliability.hertz, reliability.expected], [2, 960 + 840 * 2]);
});

t.test('the clock of another machine may differ', async (t) => {
  for (const skewSeconds of [-7200, 40, 7200]) {
    const { reliability } = evidenceOf([{ kind: 'kill', at: 900, seconds: 60 }], { kind: 'url', skewSeconds });
    t.same([reliability.expected, reliability.received], [1800, 1800], `${skewSeconds} s`);
  }
});

t.test('a torn line is ignored, because its clocks belong to the next boot', async (t) => {
  const entries = [...week({ hours: 0.5, faults: [{ kind: 'reboot', at: 900, seconds: 60 }] })];
  const torn = entries.flatMap((entry): RecordEntry[] =>
    entry.type === 'resume' ? [{ type: 'torn', bytes: 5, sha256: '', boot: 5, mono: 5, wall: entry.wall }, entry] : [entry],
  );
  t.equal(torn.length, entries.length + 1);
  t.same(built(torn).evidence(), built(entries).evidence());
});

t.test('the series of the charts contains every kind of event', async (t) => {
  const series = seriesOf([
    { kind: 'restart', at: 600, seconds: 5, cause: 'watchdog' },
    { kind: 'step', at: 700, seconds: 100 },
    { kind: 'suspend', at: 800, seconds: 50 },
    { kind: 'alert', at: 900, seconds: 60, severity: 'ERROR' },
    { kind: 'kill', at: 1300, seconds: 60 },
  ]);
  t.equal(series.begunEpochSeconds, BEGIN_MS / 1000);
  t.same(series.restarts, [{ at: 605, cause: 'watchdog', detail: '' }]);
  t.same(
    series.clockSteps.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[700, 100]],
  );
  t.same(
    series.suspends.map(({ at, seconds }) => [Math.round(at), seconds]),
    [[800, 50]],
  );
  t.same(
    series.alerts.map(({ from, severity, to }) => [from, to, severity]),
    [[900.01, 960.01, 'ERROR']],
  );
  t.same(
    series.monitoringGaps.map(({ kind, to }) => [to, kind]),
    [[1360, 'away']],
  );
  t.same([series.at.length, series.ratePercent.length], [30, 30]);
  t.equal(series.ratePercent.filter((rate) => rate === null).length, 1);
});

t.test('stalls and monitoring gaps are sorted by time', async (t) => {
  const { monitoringGaps } = evidenceOf([
    { kind: 'stall', at: 310, seconds: 5 },
    { kind: 'kill', at: 1000, seconds: 60 },
    { kind: 'stall', at: 1200, seconds: 5 },
  ]);
  t.same(
    monitoringGaps.map(({ kind }) => kind),
    ['stalled', 'away', 'stalled'],
  );
});
