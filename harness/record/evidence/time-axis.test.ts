import t from 'tap';
import { subjectOf } from '../../../testkit/weeks/week-entries.ts';
import type { BeginEntry, Clocked, ResumeEntry } from '../entries.ts';
import { sharesClock, TimeAxis } from './time-axis.ts';

const WALL = Date.UTC(2026, 2, 4);

/** Clocks `at` seconds after the start, of which the machine slept `slept`, and whose wall clock is `stepped` ahead. */
function clocks(at: number, slept = 0, stepped = 0): Clocked {
  return { boot: 1000 + at, mono: 900 + at - slept, wall: WALL + (at + stepped) * 1000 };
}

function begin(): BeginEntry {
  return { type: 'begin', format: 1, run: 'r', planned_seconds: 60, ...subjectOf({}, 1, 0), ...clocks(0) };
}

function resume(boot: number, at: Clocked): ResumeEntry {
  return { type: 'resume', ...subjectOf({}, 1, boot), ...at };
}

function begun(): TimeAxis {
  const axis = new TimeAxis();
  axis.begin(begin());
  return axis;
}

t.test('the axis begins at 0 and follows the boot-time clock', async (t) => {
  const axis = new TimeAxis();
  t.equal(axis.wallOffset(), 0);
  t.equal(axis.begin(begin()), 0);
  t.equal(axis.place(clocks(60), false), 60);
  t.equal(axis.at(clocks(90)), 90);
  t.same([axis.events, axis.boot], [[], 0]);
  t.equal(axis.wallOffset(), WALL / 1000);
});

t.test('a suspend is time that the boot-time clock counted and the monotonic clock did not', async (t) => {
  const axis = begun();
  axis.place(clocks(60), false);
  axis.place(clocks(160, 90), false);
  t.same(axis.events, [{ kind: 'suspend', seconds: 90, at: 70, earliest: WALL + 150_000, latest: WALL + 160_000 }]);
  axis.place(clocks(200, 90), false);
  t.equal(axis.events.length, 1, 'reported once');
  const detected = begun();
  detected.place(clocks(100, 90), true);
  t.same(detected.events, [{ kind: 'suspend', seconds: 90, at: 10, earliest: WALL + 95_000, latest: WALL + 100_000 }], 'just before');
  const all = begun();
  all.place(clocks(100, 101), false);
  t.equal(all.events[0]?.at, 0, 'not before the entry before');
});

t.test('a step is time that the wall clock counted and the boot-time clock did not', async (t) => {
  const axis = begun();
  axis.place(clocks(60, 0, 3600), false);
  axis.place(clocks(120, 0, 3540), true);
  t.same(axis.events, [
    { kind: 'step', seconds: 3600, at: 60, earliest: WALL + 3_600_000, latest: WALL + 3_660_000 },
    { kind: 'step', seconds: -60, at: 120, earliest: WALL + 3_655_000, latest: WALL + 3_660_000 },
  ]);
  t.equal(axis.wallOffset(), WALL / 1000 + 3540);
  const both = begun();
  both.place(clocks(60, 30, -5), false);
  t.same(
    both.events.map(({ kind, seconds }) => [kind, seconds]),
    [
      ['suspend', 30],
      ['step', -5],
    ],
  );
});

t.test('drift and rounding cause no events', async (t) => {
  const axis = begun();
  axis.place(clocks(60, 0.999, 0.999), false);
  axis.place(clocks(120, 0.999, 0), false);
  t.same(axis.events, []);
  axis.place(clocks(180, 1.999, 1), false);
  t.equal(axis.events.length, 2, 'a second is one');
  const long = begun();
  long.place(clocks(10_000, 0, 4.999), false);
  t.same(long.events, []);
  long.place(clocks(20_000, 0, 9.999), false);
  t.equal(long.events.length, 1, 'half a thousandth of the time is one');
});

t.test('entries whose clocks are not later are ignored', async (t) => {
  const axis = begun();
  axis.place(clocks(60), false);
  t.equal(axis.place({ ...clocks(50), wall: 0 }, false), 50);
  t.equal(axis.place({ ...clocks(60), wall: 0 }, false), 60);
  axis.place(clocks(70), false);
  t.same(axis.events, []);
});

t.test('within one boot the same clocks continue across a monitoring gap', async (t) => {
  const axis = begun();
  axis.place(clocks(60), false);
  t.equal(axis.resume(resume(0, clocks(3660, 1800, 60))), false);
  t.same([axis.boot, axis.at(clocks(3700))], [0, 3700]);
  t.same(
    axis.events.map(({ kind, seconds }) => [kind, seconds]),
    [
      ['suspend', 1800],
      ['step', 60],
    ],
  );
  t.same(
    axis.events.map(({ earliest, latest }) => [(earliest - WALL) / 1000, (latest - WALL) / 1000]),
    [
      [1860, 3720],
      [120, 3720],
    ],
    'any time in it',
  );
});

t.test('across a reboot the axis follows the wall clock, and advances by at least the time since the boot', async (t) => {
  const axis = begun();
  axis.place(clocks(60), false);
  t.equal(axis.resume(resume(1, { boot: 20, mono: 20, wall: WALL + 360_000 })), true);
  t.same([axis.boot, axis.at({ boot: 20, mono: 0, wall: 0 }), axis.at({ boot: 80, mono: 0, wall: 0 })], [1, 360, 420]);
  t.same(axis.events, [], 'what the clocks did meanwhile is not known');
  t.equal(axis.resume(resume(2, { boot: 20, mono: 20, wall: 0 })), true);
  t.same([axis.boot, axis.at({ boot: 20, mono: 0, wall: 0 })], [2, 380], 'a clock that begins in the past');
  axis.place({ boot: 80, mono: 80, wall: 60_000 }, false);
  t.same(axis.events, []);
  t.equal(axis.resume(resume(2, { boot: 90, mono: 90, wall: 70_000 })), false);
});

t.test('a container that is booted again keeps the clocks of its kernel', async (t) => {
  const axis = new TimeAxis();
  axis.begin({ ...begin(), boot_id: 'kernel-a/10' });
  axis.place(clocks(60), false);
  t.equal(axis.resume({ ...resume(1, clocks(75)), boot_id: 'kernel-a/22' }), true, 'it was booted');
  t.equal(axis.at(clocks(75)), 75, 'not later by the time since the boot of the kernel');
  t.equal(axis.boot, 1);
  t.equal(axis.resume({ ...resume(2, { boot: 20, mono: 20, wall: WALL + 100_000 }), boot_id: 'kernel-b/10' }), true);
  t.equal(axis.at({ boot: 21, mono: 21, wall: WALL + 101_000 }), 101, 'another kernel: by the wall clock');
  t.equal(axis.boot, 2);
});

t.test('a record that begins with a resume continues from it', async (t) => {
  const axis = new TimeAxis();
  t.equal(axis.resume(resume(3, clocks(5))), true);
  t.same([axis.at(clocks(5)), axis.boot], [1005, 0]);
});

t.test('boots of one kernel share its clock', async (t) => {
  t.equal(sharesClock('a', 'a'), true);
  t.equal(sharesClock('a', 'b'), false);
  t.equal(sharesClock('kernel/10', 'kernel/22'), true, 'a container that was started again');
  t.equal(sharesClock('kernel/10', 'other/10'), false);
  t.equal(sharesClock('kernel', 'kernel/10'), false, 'a kernel without a boot is not enough');
  t.equal(sharesClock('/10', '/22'), false);
  t.equal(sharesClock(null, 'kernel/10'), false, 'nothing is known of the one before');
});
