import t from 'tap';
import type { CoverageEvidence } from '../../engine/evidence.ts';
import type { CoverageEntry, StampGap } from '../entries.ts';
import { Coverage } from './coverage.ts';
import type { ClockEvent } from './time-axis.ts';

const T = Date.UTC(2026, 2, 4);

/** A scan from one second to another that found one sample per second, the first and the last right at its bounds. */
function scan(from: number, to: number, more: Partial<CoverageEntry> = {}): CoverageEntry {
  const inside = { count: to - from, first: ms(from), last: ms(to - 1), longest_seconds: 1, gaps: [] };
  return { type: 'coverage', of: 'stored', from: ms(from), to: ms(to), ...inside, boot: 0, mono: 0, wall: 0, ...more };
}

function ms(seconds: number): number {
  return T + seconds * 1000;
}

function gap(from: number, to: number): StampGap {
  return { from: ms(from), to: ms(to), seconds: to - from };
}

const EMPTY = { count: 0, first: null, last: null, longest_seconds: 0 };

function found(
  scans: readonly CoverageEntry[],
  end: number,
  events: readonly ClockEvent[] = [],
  of: CoverageEntry['of'] = 'stored',
): CoverageEvidence {
  const coverage = new Coverage(of, T);
  for (const entry of scans) coverage.add(entry);
  const evidence = coverage.evidence(ms(end), events, []);
  if (evidence === null) throw new Error('nothing was scanned');
  return evidence;
}

t.test('without a scan there is no evidence', async (t) => {
  t.equal(new Coverage('stored', T).evidence(T, [], []), null);
});

t.test('consecutive scans cover the run', async (t) => {
  const all = found([scan(0, 3600), scan(3600, 7200)], 7200);
  t.same(all, { count: 7200, covered: 1, gaps: [], longestSeconds: 1, unscannedSeconds: 0 });
  t.equal(found([scan(0, 3600)], 3600.5).covered < 1, true);
  t.equal(found([scan(0, 3600)], 0).covered, 1, 'a scan beyond the end');
});

t.test('finds gaps between neighbours, between scans and at both ends', async (t) => {
  const inside = found([scan(0, 3600, { gaps: [gap(100, 400), gap(1000, 1061)], longest_seconds: 300 })], 3600);
  t.same(
    inside.gaps.map(({ from, seconds }) => [from, seconds]),
    [
      ['2026-03-04T00:01:40.000Z', 300],
      ['2026-03-04T00:16:40.000Z', 61],
    ],
  );
  t.same([inside.longestSeconds, inside.unscannedSeconds], [300, 0]);
  const seam = found([scan(0, 3600, { last: ms(3500) }), scan(3600, 7200, { first: ms(3801) })], 7200);
  t.same([seam.longestSeconds, seam.gaps.map(({ seconds }) => seconds)], [301, [301]]);
  t.equal(found([scan(0, 3600, { first: ms(301) })], 3600).longestSeconds, 301, 'from the begin');
  t.equal(found([scan(0, 3600, { last: ms(3299) })], 3600).longestSeconds, 301, 'to the end');
  const empty = found([scan(0, 3600, { last: ms(3500) }), scan(3600, 3700, EMPTY), scan(3700, 7200, { first: ms(3801) })], 7200);
  t.same([empty.longestSeconds, empty.count], [301, 7100], 'over a scan that found nothing');
  t.equal(found([scan(0, 3600, EMPTY)], 3600).longestSeconds, 3600);
  t.equal(found([scan(0, 3600, { count: 1, first: ms(1800), last: null })], 3600).longestSeconds, 1800);
});

t.test('short gaps are not listed, but the longest one is reported', async (t) => {
  const stored = found([scan(0, 100, { last: ms(40) })], 100);
  t.same([stored.longestSeconds, stored.gaps], [60, []]);
  t.equal(found([scan(0, 100, { last: ms(39.999) })], 100).gaps.length, 1);
  const rows = found([scan(0, 200, { of: 'collected', last: ms(50) })], 200, [], 'collected');
  t.same([rows.longestSeconds, rows.gaps], [150, []]);
  t.equal(found([scan(0, 200, { of: 'collected', last: ms(49) })], 200, [], 'collected').gaps.length, 1);
});

t.test('the longest gap of a scan counts even if the scan lists only shorter ones', async (t) => {
  t.equal(found([scan(0, 3600, { longest_seconds: 301 }), scan(3600, 7200)], 7200).longestSeconds, 301);
  t.equal(found([scan(0, 3600, { longest_seconds: 301, gaps: [gap(100, 400)] })], 3600).longestSeconds, 301);
});

t.test('time explained by suspends and steps is subtracted and listed', async (t) => {
  const event = (seconds: number, at: number): ClockEvent => ({ kind: 'suspend', seconds, at: 0, earliest: ms(at - 5), latest: ms(at) });
  const slept = found([scan(0, 7200, { gaps: [gap(100, 1000)], longest_seconds: 900 })], 7200, [event(800, 990)]);
  t.same([slept.longestSeconds, slept.gaps.map(({ excused, seconds }) => [seconds, excused])], [100, [[100, 'suspended for 800 s']]]);
  const seam = found([scan(0, 3600), scan(3600, 7200, { first: ms(5000) })], 7200, [event(1400, 4999)]);
  t.equal(seam.longestSeconds, 1);
  t.equal(seam.gaps.length, 1);
});

t.test('a gap may be hidden where nothing was scanned', async (t) => {
  const hole = found([scan(0, 3600), scan(3900, 7200, { first: ms(3910) })], 7200);
  t.same([hole.unscannedSeconds, hole.longestSeconds, hole.gaps], [311, 1, []]);
  t.equal(hole.covered.toFixed(4), (1 - 300 / 7200).toFixed(4));
  const empty = found([scan(0, 3600), scan(3900, 4000, EMPTY), scan(4000, 7200, { first: ms(4010) })], 7200);
  t.same([empty.unscannedSeconds, empty.longestSeconds], [401, 110], 'what is known of it is a gap');
  t.equal(found([scan(0, 3600), scan(3601, 7200)], 7200).unscannedSeconds, 0, 'a second is no hole');
  t.equal(found([scan(0, 3600), scan(3601.001, 7200, { first: ms(3602) })], 7200).unscannedSeconds, 3);
  const late = found([scan(100, 3600)], 3600);
  t.same([late.unscannedSeconds, late.longestSeconds], [100, 1], 'at the begin');
  const early = found([scan(0, 3600)], 3960);
  t.same([early.unscannedSeconds, early.longestSeconds], [361, 1], 'and at the end');
  t.equal(early.covered, 1 - 360 / 3960);
  t.equal(found([scan(0, 3600)], 3601).unscannedSeconds, 0);
  t.equal(found([scan(0, 3600)], 3601.001).unscannedSeconds, 2.001);
  const asleep: ClockEvent = { kind: 'suspend', seconds: 300, at: 0, earliest: ms(3900), latest: ms(3905) };
  t.equal(found([scan(0, 3600)], 3960, [asleep]).unscannedSeconds, 61, 'which a suspend explains as well');
  t.equal(found([scan(0, 3600), scan(3900, 7200, { first: ms(3910) })], 7200, [{ ...asleep, latest: ms(3909) }]).unscannedSeconds, 11);
});

t.test('scans follow a clock that is set back', async (t) => {
  const back = (scans: readonly CoverageEntry[], end: number, by = 600): CoverageEvidence => {
    const coverage = new Coverage('stored', T);
    for (const [index, entry] of scans.entries()) {
      if (index === 1) coverage.putBack(by);
      coverage.add(entry);
    }
    return coverage.evidence(ms(end), [], []) as CoverageEvidence;
  };
  // At 3600 it was set back to 3000: samples from 3000 to 3600 are stored twice.
  const both = scan(3000, 6000, { count: 3600 });
  t.same(back([scan(0, 3600), both], 6000), { count: 7200, covered: 1, gaps: [], longestSeconds: 1, unscannedSeconds: 0 });
  const missing = back([scan(0, 3600), scan(3000, 6000, { count: 3200 })], 6000);
  t.equal(missing.unscannedSeconds, 399, 'older samples may hide a gap of 400 s but for two');
  const before = back([scan(0, 3600, { last: ms(3499) }), scan(3000, 6000, { count: 3500 })], 6000);
  t.equal(Math.round(before.unscannedSeconds), 199, 'which goes on from what was missing before');
  const silent = back([scan(0, 3600), scan(3000, 6000, { first: ms(3000), count: 2900 })], 6000);
  t.same(
    [silent.longestSeconds, silent.unscannedSeconds],
    [1, 699],
    'nothing came until the time had passed: the older ones are all there is',
  );
  const never = back([scan(0, 3600), scan(3600, 6000)], 6000);
  t.equal(never.unscannedSeconds, 600, 'the time that occurred twice was scanned once');
  // Set back to before the run began, where no older samples are known.
  const empty = [scan(0, 600), scan(-700, -600, EMPTY), scan(-600, 0, { first: ms(-400), count: 400 })];
  const early = back(empty, 0, 1300);
  t.same([early.longestSeconds, early.unscannedSeconds, early.gaps.length], [301, 0, 1], 'of 599 in the old time and −400 in the new one');
  t.equal(early.gaps[0]?.remark, '');
  const down = back([scan(0, 600), scan(-700, 0, { first: ms(-400), count: 400 })], 0, 1300);
  t.same([down.longestSeconds, down.gaps.map(({ remark }) => remark)], [301, ['the clock was set back by 1300 s']]);
  const near = back([scan(0, 600), scan(-700, 0, { first: ms(-660), count: 660 })], 0, 1300);
  t.same([near.longestSeconds, near.gaps], [41, []], 'of which the stamps show less than nothing');
  t.equal(back([scan(0, 3600), scan(3000, 6000, { count: 3600 }), scan(6000, 7000)], 7000).unscannedSeconds, 0);
  const seam = back([scan(0, 3600), scan(3599, 6000, { count: 2402 })], 6000);
  t.equal(seam.unscannedSeconds, 600, 'a second is no going back');
  const twice = back([scan(0, 3600), scan(3000, 6000, { count: 3600 }), scan(5000, 7000, { first: ms(6000), count: 1000 })], 7000);
  t.equal(twice.longestSeconds, 1, 'each time it is set back counts once');
});

t.test('only scans that share stamps can hide a gap', async (t) => {
  const coverage = new Coverage('stored', T);
  for (const entry of [scan(0, 3600), scan(3600, 7200)]) coverage.add(entry);
  coverage.putBack(600);
  coverage.add(scan(6600, 9600, { count: 3200 }));
  t.equal(coverage.evidence(ms(9600), [], [])?.unscannedSeconds, 399);
});

t.test('after the clock was set back the first sample may be an older one', async (t) => {
  const after = (before: readonly CoverageEntry[], back: number, entry: CoverageEntry): number => {
    const coverage = new Coverage('stored', T);
    for (const earlier of before) coverage.add(earlier);
    coverage.putBack(back);
    coverage.add(entry);
    return coverage.evidence(entry.to, [], [])?.longestSeconds ?? 0;
  };
  // Nothing arrived from 3299 to 3600, where it was set back to 3000: the gap is at least that long.
  t.equal(
    after([scan(0, 3600, { last: ms(3299) })], 600, scan(3000, 6000, { count: 3600 })),
    301,
    'older ones from the begin of the scan on',
  );
  t.equal(after([scan(0, 3600, { last: ms(3299) })], 3600, scan(0, 6000, { count: 9600 })), 301, 'right from there on');
  // Set back to a time without known older samples: the first one that is found may come from the middle.
  t.equal(after([scan(0, 600)], 700, scan(-100, 1000, { first: ms(200) })), 1);
  const hole = [scan(700, 1200)];
  t.equal(after([scan(0, 600), ...hole], 600, scan(600, 1000, { first: ms(950) })), 1, 'none where it begins');
  t.equal(after([scan(0, 300), ...hole], 600, scan(600, 1000, { first: ms(950) })), 1, 'nor before');
});

t.test('stamps skipped by a suspend or by a clock set forward hide nothing', async (t) => {
  const blind = (...events: readonly ClockEvent[]): number => {
    const coverage = new Coverage('stored', T);
    coverage.add(scan(0, 3600));
    coverage.putBack(600);
    // 400 s are missing.
    coverage.add(scan(3000, 6000, { count: 3200 }));
    return Math.round(coverage.evidence(ms(6000), events, [])?.unscannedSeconds ?? -1);
  };
  const event = (seconds: number, at: number): ClockEvent => ({ kind: 'suspend', seconds, at: 0, earliest: ms(at), latest: ms(at) });
  t.equal(blind(), 399);
  t.equal(blind(event(300, 5000)), 99);
  t.equal(blind(event(300, 3100)), 299, 'a third of it lies there');
  t.equal(blind(event(300, 6200)), 299);
  t.equal(blind(event(300, 2000)), 399, 'before');
  t.equal(blind(event(300, 6400)), 399, 'after');
  t.equal(blind(event(100, 4000), event(200, 5000)), 99);
  t.equal(blind(event(-600, 3600)), 399);
});
