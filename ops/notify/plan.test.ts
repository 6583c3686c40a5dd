import t from 'tap';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time/time.ts';
import { decide, EMPTY_PLAN, type Line, openAsNotified, type Plan, type Rules, reconsidered, taken } from './plan.ts';
import { alertChange, type Change, jobChange, type Level } from './subject.ts';

const START_MS = Date.parse('2026-03-01T12:00:00Z');
const RULES: Rules = {
  minSeverity: 'WARNING',
  failedJobs: true,
  groupMs: 30_000,
  repeatMs: 0,
  quietUntil: () => null,
  quietMinSeverity: 'CRITICAL',
};

function change(metric: string, level: Level, atMs: number, id = `n/${metric}/1`): Change {
  const at = new Date(atMs).toISOString();
  return { key: `n/${metric}`, source: 'alert', id, node: 'n', metric, level, at, value: 1, threshold: 1, lines: [], findings: [] };
}

const run = (status: 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN', ...lines: string[]) => ({
  started: new Date(START_MS).toISOString(),
  status,
  failed: status === 'CRITICAL' || status === 'UNKNOWN',
  lines,
});

/** A plan driven step by step: time in seconds since its start. */
class Driven {
  plan: Plan = EMPTY_PLAN;
  rules: Rules;
  readonly notified: { seconds: number; lines: readonly Line[] }[] = [];

  constructor(rules: Partial<Rules> = {}) {
    this.rules = { ...RULES, ...rules };
  }

  at(seconds: number, ...changes: Change[]): this {
    const nowMs = START_MS + seconds * 1000;
    this.#last = nowMs;
    for (const entry of changes) this.plan = taken(this.plan, entry, nowMs);
    const { lines, plan } = decide(this.plan, this.rules, nowMs);
    this.plan = plan;
    if (lines) this.notified.push({ seconds, lines });
    return this;
  }

  /** Advances to a time, deciding again exactly when the previous decision scheduled it. */
  until(seconds: number): this {
    for (;;) {
      const nowMs = START_MS + seconds * 1000;
      const first = this.plan;
      const { nextMs } = decide(first, this.rules, this.#last);
      if (nextMs === null || nextMs > nowMs) return this;
      this.#last = Math.max(nextMs, this.#last + 1);
      this.at((this.#last - START_MS) / 1000);
    }
  }

  #last = START_MS;

  get summary(): string[] {
    return this.notified.map(
      ({ lines, seconds }) =>
        `${seconds}: ${lines.map(({ severity, state, subject }) => `${state} ${severity} ${subject.metric}`).join(', ')}`,
    );
  }
}

const at = (seconds: number): number => START_MS + seconds * 1000;

t.test('updates are grouped for the group time, with the worst first', async (t) => {
  const driven = new Driven()
    .at(0, change('cpu', 'WARNING', at(0)))
    .at(10, change('disk', 'CRITICAL', at(10)))
    .until(100);
  t.same(driven.summary, ['30: raised CRITICAL disk, raised WARNING cpu']);
});

t.test('an alert that is raised and resolved within the group time is notified as one line', async (t) => {
  const driven = new Driven()
    .at(0, change('cpu', 'CRITICAL', at(0)))
    .at(10, change('cpu', null, at(10)))
    .until(1000);
  t.same(driven.summary, ['30: passed CRITICAL cpu']);
});

t.test('the resolution of a notified alert is notified with its worst level', async (t) => {
  const driven = new Driven()
    .at(0, change('cpu', 'WARNING', at(0)))
    .at(30)
    .at(40, change('cpu', 'CRITICAL', at(40)))
    .at(50, change('cpu', null, at(50)))
    .until(200);
  t.same(driven.summary, ['30: raised WARNING cpu', '70: resolved CRITICAL cpu']);
  t.same(openAsNotified(driven.plan), []);
});

t.test('a repeated change is notified once, the resolution of an unknown alert not at all', async (t) => {
  const driven = new Driven()
    .at(0, change('cpu', 'WARNING', at(0)), change('cpu', 'WARNING', at(0)), change('disk', null, at(0)))
    .at(30)
    .at(31, change('cpu', 'WARNING', at(0)))
    .until(3000);
  t.same(driven.summary, ['30: raised WARNING cpu']);
});

t.test('the end of an older episode does not end the open one', async (t) => {
  const driven = new Driven()
    .at(0, change('cpu', 'WARNING', at(0), 'n/cpu/2'))
    .at(1, change('cpu', null, at(1), 'n/cpu/1'))
    .until(60);
  t.same(driven.summary, ['30: raised WARNING cpu']);
  t.equal(driven.plan.subjects['n/cpu']?.level, 'WARNING');
});

t.test('below min_severity nothing is notified; a fall below it is notified once, as changed', async (t) => {
  const driven = new Driven({ minSeverity: 'CRITICAL' })
    .at(0, change('cpu', 'WARNING', at(0)))
    .until(100)
    .at(100, change('cpu', 'CRITICAL', at(100)))
    .at(130)
    .at(200, change('cpu', 'WARNING', at(200)))
    .at(230)
    .at(300, change('cpu', null, at(300)))
    .until(2000);
  t.same(driven.summary, ['130: raised CRITICAL cpu', '230: changed WARNING cpu']);
});

t.test('lowering min_severity notifies open alerts', async (t) => {
  const driven = new Driven({ minSeverity: 'CRITICAL' }).at(0, change('cpu', 'WARNING', at(0))).at(50);
  driven.rules = { ...driven.rules, minSeverity: 'WARNING' };
  driven.plan = reconsidered(driven.plan, at(60));
  driven.at(60).at(90);
  t.same(driven.summary, ['90: raised WARNING cpu']);
});

t.test('open alerts are notified again after repeat_hours, counted from the last notification', async (t) => {
  const driven = new Driven({ repeatMs: 4 * HOUR_MS })
    .at(0, change('cpu', 'WARNING', at(0)))
    .at(30)
    .at(3600, change('disk', 'WARNING', at(3600)))
    .at(3630);
  driven.until(3630 + 8 * 3600);
  t.same(driven.summary, ['30: raised WARNING cpu', '3630: raised WARNING disk', `${3630 + 4 * 3600}: `, `${3630 + 8 * 3600}: `]);
  driven.at(50_000, change('cpu', null, at(50_000)), change('disk', null, at(50_000))).at(50_030);
  const before = driven.notified.length;
  t.equal(driven.until(200_000).notified.length, before, 'nothing is open: no reminder');
});

t.test('quiet hours let severe updates through; the rest is notified once afterwards, including what is over', async (t) => {
  const end = at(10_000);
  const driven = new Driven({ quietUntil: (ms) => (ms < end ? end : null), repeatMs: HOUR_MS })
    .at(0, change('cpu', 'WARNING', at(0)))
    .at(100, change('disk', 'WARNING', at(100)))
    .at(200, change('disk', null, at(200)))
    .at(300, change('memory', 'CRITICAL', at(300)))
    .at(330)
    .at(400, change('memory', null, at(400)))
    .at(430)
    .until(12_000);
  t.same(driven.summary, [
    '330: raised CRITICAL memory',
    '430: resolved CRITICAL memory',
    '10000: raised WARNING cpu, passed WARNING disk',
  ]);
});

t.test(
  'an alert that flaps a thousand times in an hour leads to a bounded number of notifications, with counts, and its last state',
  async (t) => {
    const driven = new Driven({ groupMs: 0 });
    for (let i = 0; i < 1000; i++) {
      driven.at(i * 3.6, change('cpu', 'CRITICAL', at(i * 3.6), `n/cpu/${i}`)).until(i * 3.6 + 1);
      driven.at(i * 3.6 + 1.8, change('cpu', null, at(i * 3.6 + 1.8), `n/cpu/${i}`)).until(i * 3.6 + 3);
    }
    t.ok(driven.notified.length <= 32, `${driven.notified.length} notifications`);
    driven.until(10_000);
    t.ok(driven.notified.length <= 33, `${driven.notified.length} notifications`);
    t.equal(driven.notified.at(-1)?.lines[0]?.subject.level, null, 'its end was notified');
    const episodes = driven.notified.flatMap(({ lines }) => lines).reduce((sum, line) => sum + line.episodes, 0);
    t.equal(episodes, 1000, 'every episode is counted');
  },
);

t.test('jobs: failures and recoveries are notified; OK, WARNING and disabled jobs are not', async (t) => {
  const driven = new Driven({ groupMs: 0, minSeverity: 'CRITICAL' })
    .at(0, jobChange('h', 'backup_logs', run('WARNING', 'WARNING  disk: nearly full')))
    .at(1, jobChange('h', 'backup_logs', run('UNKNOWN', 'no idea')))
    .at(2, jobChange('h', 'backup_logs', run('UNKNOWN', 'no idea')))
    .at(3, jobChange('h', 'backup_logs', run('WARNING')));
  t.same(driven.summary, ['1: raised ERROR backup_logs', '3: resolved ERROR backup_logs']);
  const verdict = { ...run('CRITICAL', 'FAIL: 1 of 6 criteria'), failed: false };
  t.same(new Driven({ groupMs: 0 }).at(0, jobChange('h', 'generate_7day_report', verdict)).summary, [], 'a verdict is a result');
  const silent = new Driven({ groupMs: 0, failedJobs: false }).at(0, jobChange('h', 'backup_logs', run('CRITICAL')));
  t.same(silent.summary, []);
});

t.test('health_check: a changed status or a new finding is notified', async (t) => {
  const disk = 'WARNING  disk: 1.9 GB free';
  const driven = new Driven({ groupMs: 0 })
    .at(0, jobChange('h', 'health_check', run('WARNING', 'OK  unit: active', disk)))
    .at(300, jobChange('h', 'health_check', run('WARNING', 'WARNING  disk: 1.8 GB free')))
    .at(600, jobChange('h', 'health_check', run('WARNING', disk, 'WARNING  clock: not synchronised')))
    .at(900, jobChange('h', 'health_check', run('CRITICAL', 'CRITICAL  unit: failed', disk)))
    .at(1200, jobChange('h', 'health_check', run('OK', 'OK  unit: active')));
  t.same(driven.summary, [
    '0: raised WARNING health_check',
    '600: changed WARNING health_check',
    '900: changed CRITICAL health_check',
    '1200: resolved CRITICAL health_check',
  ]);
  t.same(driven.notified[0]?.lines[0]?.subject.lines, [disk], 'only what is wrong is in it');
});

t.test('health_check: findings with notifications of their own are not repeated, and the number of findings is no finding', async (t) => {
  const disk = 'WARNING  disk /: 1.9 GB free';
  const driven = new Driven({ groupMs: 0 })
    .at(
      0,
      jobChange(
        'h',
        'health_check',
        run(
          'CRITICAL',
          'CRITICAL  2 of 9 checks: alerts, job backup_logs',
          'CRITICAL  alerts: 1 critical open',
          'WARNING  job backup_logs: failed',
        ),
      ),
    )
    .at(
      300,
      jobChange('h', 'health_check', run('CRITICAL', 'CRITICAL  2 of 9 checks: alerts, disk /', 'CRITICAL  alerts: 1 critical open', disk)),
    )
    .at(600, jobChange('h', 'health_check', run('WARNING', 'WARNING  1 of 9 checks: disk /', disk)))
    .at(900, jobChange('h', 'health_check', run('UNKNOWN', 'Error: it broke')))
    .at(1200, jobChange('h', 'health_check', run('WARNING', 'WARNING  1 of 9 checks: alerts', 'WARNING  alerts: 1 open')));
  t.same(driven.summary, ['300: raised WARNING health_check', '900: changed ERROR health_check', '1200: resolved ERROR health_check']);
  t.same(driven.notified[0]?.lines[0]?.subject.lines, [disk]);
});

t.test('a clock that is set back delays nothing', async (t) => {
  const driven = new Driven().at(1_000_000, change('cpu', 'WARNING', at(1_000_000)));
  driven.at(0);
  driven.at(30);
  t.same(driven.summary, ['30: raised WARNING cpu']);
});

t.test('an unchanged plan remains the same object, and resolved subjects are removed', async (t) => {
  const driven = new Driven().at(0, change('cpu', 'WARNING', at(0))).at(30);
  t.equal(decide(driven.plan, RULES, at(40)).plan, driven.plan);
  driven.at(50, change('cpu', null, at(50))).at(80);
  t.equal(decide(driven.plan, RULES, at(90)).plan, driven.plan);
  driven.at(80 + (HOUR_MS + MINUTE_MS) / 1000);
  t.same(driven.plan.subjects, {});
});

t.test('an alert that is published again with only its time corrected is no update; its start follows', async (t) => {
  const at = (timestamp: string, more = {}) =>
    alertChange({
      alert_id: 'robot/cpu_percent/1',
      severity: 'WARNING',
      metric: 'cpu_percent',
      value: 85,
      threshold: 80,
      timestamp,
      resolved: false,
      ...more,
    });
  const raised = taken(EMPTY_PLAN, at('1970-01-01T00:00:30.000Z'), START_MS);
  const worse = taken(raised, at('1970-01-01T00:01:30.000Z', { severity: 'CRITICAL', value: 95, threshold: 90 }), START_MS);
  const corrected = taken(worse, at('2026-03-04T05:01:30.000Z', { severity: 'CRITICAL', value: 95, threshold: 90 }), START_MS);
  const [before, after] = [worse, corrected].map(({ subjects }) => Object.values(subjects)[0]);
  t.same(after, { ...before, at: '2026-03-04T05:01:30.000Z', since: '2026-03-04T05:00:30.000Z' });
  t.equal(taken(corrected, at('2026-03-04T05:02:00.000Z', { severity: 'CRITICAL', value: 95, threshold: 70 }), START_MS), corrected);
});
