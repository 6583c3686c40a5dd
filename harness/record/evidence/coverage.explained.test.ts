import t from 'tap';
import { explain } from './coverage.ts';
import type { ClockEvent } from './time-axis.ts';

const T = Date.UTC(2026, 2, 4);

function event(seconds: number, earliest: number, latest: number, kind: ClockEvent['kind'] = 'suspend'): ClockEvent {
  return { kind, seconds, at: 0, earliest: T + earliest * 1000, latest: T + latest * 1000 };
}

function secondsOf(from: number, to: number, events: readonly ClockEvent[]): number {
  return explain({ from: T + from * 1000, to: T + to * 1000, backSeconds: 0 }, events, []).seconds;
}

t.test('without a clock event a gap keeps its length', async (t) => {
  const gap = explain({ from: T, to: T + 301_500, backSeconds: 0 }, [], []);
  t.same(gap, { from: '2026-03-04T00:00:00.000Z', to: '2026-03-04T00:05:01.500Z', seconds: 301.5, excused: '', remark: '' });
});

t.test('the length of a suspend or a forward step is excused and reported', async (t) => {
  const suspend = explain({ from: T, to: T + 500_000, backSeconds: 0 }, [event(400, 450, 455)], []);
  t.same([suspend.seconds, suspend.excused], [100, 'suspended for 400 s']);
  const step = explain({ from: T, to: T + 500_000, backSeconds: 0 }, [event(400.1234567, 450, 455, 'step')], []);
  t.same([step.seconds.toFixed(3), step.excused], ['99.877', 'the clock was set forward by 400.123 s']);
  const both = explain({ from: T, to: T + 500_000, backSeconds: 0 }, [event(200, 300, 305), event(100, 450, 455, 'step')], []);
  t.same([both.seconds, both.excused], [200, 'suspended for 200 s, the clock was set forward by 100 s']);
});

t.test('an event explains only the part of it that can lie in the gap', async (t) => {
  const suspend = event(400, 495, 500);
  t.equal(secondsOf(90, 501, [suspend]), 11);
  t.equal(secondsOf(100, 500, [suspend]), 0);
  t.equal(secondsOf(95, 495, [suspend]), 0, 'it was recorded 5 s later');
  t.equal(secondsOf(101, 900, [suspend]), 405, 'but for the 5 s in which it may have ended');
  t.equal(secondsOf(0, 494, [suspend]), 100, 'nothing was stamped meanwhile');
  t.equal(secondsOf(600, 1100, [suspend]), 500);
  t.equal(secondsOf(-400, 90, [suspend]), 490);
  t.equal(secondsOf(0, 94, [event(3, 495, 500)]), 94, 'one that is short is not taken for near');
  const touching = explain({ from: T - 400_000, to: T + 100_000, backSeconds: 0 }, [suspend], []);
  t.same([touching.seconds, touching.excused], [500, ''], 'ends where it began');
  t.equal(secondsOf(150, 300, [suspend]), 0, 'older samples lie around it');
  t.equal(secondsOf(-100, 300, [suspend]), 200, 'on one side of it');
  t.equal(secondsOf(300, 700, [suspend]), 205, 'on the other, but for 5 s');
  const vague = event(100, 200, 1000);
  t.equal(secondsOf(100, 400, [vague]), 200, 'anywhere in its bounds');
  t.equal(secondsOf(0, 150, [vague]), 150, 'but not beyond them');
  t.equal(secondsOf(920, 1200, [vague]), 280);
});

t.test('a clock that was set back excuses nothing and makes the gap longer', async (t) => {
  t.equal(secondsOf(0, 500, [event(-400, 250, 255, 'step')]), 500);
  const gap = explain({ from: T + 500_000, to: T + 1000, backSeconds: 600 }, [], []);
  t.same([gap.seconds, gap.excused, gap.remark], [101, '', 'the clock was set back by 600 s']);
  t.equal(explain({ from: T + 500_000, to: T + 1000, backSeconds: 100 }, [], []).seconds, 0, 'never less than nothing');
});

t.test('a machine that was off is noted and excuses nothing', async (t) => {
  const off = { from: T + 100_000, to: T + 400_000 };
  const gap = (from: number, to: number, backSeconds = 0): string =>
    explain({ from: T + from * 1000, to: T + to * 1000, backSeconds }, [], [off]).remark;
  t.equal(explain({ from: T, to: T + 500_000, backSeconds: 0 }, [], [off]).seconds, 500);
  t.same([gap(0, 500), gap(200, 300), gap(0, 100), gap(400, 500)], ['the machine was off', 'the machine was off', '', '']);
  t.equal(gap(0, 500, 60.5), 'the machine was off, the clock was set back by 60.5 s');
});
