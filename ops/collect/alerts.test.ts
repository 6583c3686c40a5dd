import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { collectAlerts } from '../collect_alerts.ts';
import type { JobContext } from '../lib/job.ts';
import type { AlertRecord } from './alert-files.ts';
import { AlertService } from './testing/alert-service.ts';
import { contextFor, NOT_THERE } from './testing/context.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');

function alert(id: number, more: Partial<Alert> = {}): Alert {
  const timestamp = isoUtc(NOW - 1000 + id);
  return {
    alert_id: `robot/cpu_percent/${id}`,
    severity: 'WARNING',
    metric: 'cpu_percent',
    value: 81.5,
    threshold: 80,
    timestamp,
    resolved: false,
    ...more,
  };
}

const run = (context: JobContext, options: Record<string, string | boolean> = {}) =>
  collectAlerts.run(context, { options, positionals: [] });

function linesOf(data: string, day: string): AlertRecord[] {
  const text = readFileSync(join(data, 'alerts', `alerts_${day}.ndjson`), 'utf8');
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as AlertRecord]));
}

t.test('an episode is followed from its first change, across runs', async (t) => {
  const service = await AlertService.start(t, 100);
  const data = temporaryFolder(t);
  const context = contextFor(data, service.url, { nowMs: () => NOW });
  const raised = alert(1, { alert_id: 'fleet/robot/cpu_percent/X' });
  const worse = { ...raised, severity: 'CRITICAL' as const, timestamp: isoUtc(NOW + 4000), value: 93 };
  const resolved = { ...worse, timestamp: isoUtc(NOW + 10_500), resolved: true };
  const unknown = alert(2, { resolved: true });
  service.changes = [raised, worse];
  t.match(await run(context), { status: 'OK', lines: ['OK  2 changes collected, 1 episode open'], document: { collected: 2, open: 1 } });
  service.changes = [raised, worse, resolved, unknown];
  t.match(await run(context), { status: 'OK', lines: ['OK  2 changes collected, 0 episodes open'] });
  const collected = isoUtc(NOW);
  const [first, second, third, fourth, ...more] = linesOf(data, '2026-03-04');
  t.same(first, { ...raised, node: 'fleet/robot', began: raised.timestamp, duration_seconds: 0, sequence: 1, collected });
  t.match(second, { ...worse, began: raised.timestamp, duration_seconds: 4.999, sequence: 2, cursor: String });
  t.match(third, { ...resolved, began: raised.timestamp, duration_seconds: 11.499, sequence: 3 });
  t.match(fourth, { ...unknown, began: null, duration_seconds: null, sequence: 4, cursor: String });
  t.same(more, []);
});

t.test('after a step of the clock, a duration is that of the episode; by a clock that was not set, it is not known', async (t) => {
  for (const stepMs of [3 * DAY_MS, -3 * DAY_MS, -3_600_000]) {
    const service = await AlertService.start(t, 100);
    const data = temporaryFolder(t);
    service.changes = [alert(1), alert(2)];
    await run(contextFor(data, service.url, { nowMs: () => NOW }));
    const over = alert(2, { timestamp: isoUtc(NOW + 500), resolved: true });
    const corrected = alert(1, { timestamp: isoUtc(NOW + stepMs + 9001), resolved: true });
    service.changes = stepMs > 0 ? [alert(1), alert(2), over, corrected] : [alert(1), alert(2), corrected];
    await run(contextFor(data, service.url, { nowMs: () => NOW + stepMs }));
    const days = readdirSync(join(data, 'alerts')).filter((name) => name.endsWith('.ndjson'));
    const lines = days.flatMap((name) => linesOf(data, name.slice(7, 17))).filter(({ resolved }) => resolved);
    const seconds = Object.fromEntries(
      lines.map(({ alert_id, duration_seconds }) => [alert_id.at(-1), Math.round(duration_seconds ?? -1)]),
    );
    t.same(seconds, stepMs > 0 ? { 1: 10, 2: 1 } : { 1: 10 }, `${stepMs} ms`);
  }
  const service = await AlertService.start(t, 100);
  const data = temporaryFolder(t);
  service.changes = [alert(1, { timestamp: '1970-01-01T00:01:00.000Z' }), alert(1, { resolved: true })];
  await run(contextFor(data, service.url, { nowMs: () => NOW }));
  t.match(linesOf(data, '2026-03-04').at(-1), { began: '1970-01-01T00:01:00.000Z', duration_seconds: null });
});

t.test('changes are in the file of their day; implausible clocks create no files', async (t) => {
  const service = await AlertService.start(t, 100);
  const data = temporaryFolder(t);
  const context = contextFor(data, service.url, { nowMs: () => NOW });
  service.changes = [
    alert(1, { timestamp: isoUtc(NOW - 3 * DAY_MS) }),
    alert(2, { timestamp: '1970-01-01T00:00:01.000Z' }),
    alert(3, { timestamp: '2099-01-01T00:00:01.000Z' }),
  ];
  await run(context);
  t.same(readdirSync(join(data, 'alerts')).sort(), ['alerts_2026-03-01.ndjson', 'alerts_2026-03-04.ndjson', 'cursor.json']);
  t.equal(linesOf(data, '2026-03-04').length, 2);
});

t.test('the line with the cursor is written last', async (t) => {
  const service = await AlertService.start(t, 100);
  const data = temporaryFolder(t);
  const context = contextFor(data, service.url, { nowMs: () => NOW });
  service.changes = [alert(1), alert(2, { timestamp: isoUtc(NOW - DAY_MS) }), alert(3)];
  // The file of the day before cannot be written.
  const obstacle = join(data, 'alerts', 'alerts_2026-03-03.ndjson');
  mkdirSync(obstacle, { recursive: true });
  t.match(await run(context), { status: 'CRITICAL', lines: [/alerts not collected: .*nothing is lost/] });
  t.same(readdirSync(join(data, 'alerts')), ['alerts_2026-03-03.ndjson']);
  rmdirSync(obstacle);
  t.match(await run(context), { status: 'OK', document: { collected: 3 } });
});

t.test('--since skips changes permanently, --dry-run writes nothing', async (t) => {
  const service = await AlertService.start(t, 2);
  const data = temporaryFolder(t);
  const context = contextFor(data, service.url, { nowMs: () => NOW });
  service.changes = [alert(1, { timestamp: '2026-03-01T00:00:00.000Z' }), alert(2), alert(3)];
  const shown = await run(context, { 'dry-run': true });
  t.equal(shown.lines.length, 3);
  t.same(readdirSync(data), [], 'nothing is written');
  t.match(await run(context, { since: '2026-03-02' }), { document: { collected: 2 } });
  t.match(await run(context), { document: { collected: 0 } });
  await t.rejects(run(context, { since: 'yesterday' }), { name: 'UsageError', message: /--since is "yesterday"; allowed: a time such as/ });
});

t.test('problems are reported with the remedy', async (t) => {
  const data = temporaryFolder(t);
  t.match(await run(contextFor(data, NOT_THERE)), { status: 'WARNING', lines: [/no response .*nothing is lost.*systemctl status/] });
  const ended = AbortSignal.abort(new Error('timeout'));
  t.match(await run(contextFor(data, NOT_THERE, { signal: ended })), {
    status: 'WARNING',
    lines: [/stopped before all .*timeout/],
  });
});
