import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import type { Alert, Severity } from '../../src/core/alerts/alert.ts';
import { changeKey } from '../../src/core/alerts/alert.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { collectAlerts } from '../collect_alerts.ts';
import type { AlertRecord } from './alert-files.ts';
import { AlertService } from './testing/alert-service.ts';
import { contextFor, GIVEN } from './testing/context.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');

type Files = ReadonlyMap<string, Buffer>;

function filesOf(folder: string): Files {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

function restore(folder: string, files: Files): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
}

function recordsOf(folder: string): AlertRecord[] {
  const lines = readdirSync(folder)
    .filter((name) => name.endsWith('.ndjson'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean));
  return lines.map((line) => JSON.parse(line) as AlertRecord);
}

/** What SIGKILL leaves between two states of the folder: a part of the bytes appended, and the old cursor.json. */
function killedBetween(before: Files, after: Files, part: number): Files {
  const grown = [...after].filter(([name, content]) => name.endsWith('.ndjson') && content.length !== before.get(name)?.length);
  // The file whose line has the cursor is written last.
  const appended = grown
    .map(([name, content]) => ({ name, bytes: content.subarray(before.get(name)?.length ?? 0) }))
    .sort((a, b) => Number(a.bytes.includes('"cursor"')) - Number(b.bytes.includes('"cursor"')));
  let left = Math.round(part * appended.reduce((sum, { bytes }) => sum + bytes.length, 0));
  const killed = new Map(before);
  for (const { name, bytes } of appended) {
    if (left > 0) killed.set(name, Buffer.concat([before.get(name) ?? Buffer.alloc(0), bytes.subarray(0, left)]));
    left -= bytes.length;
  }
  return killed;
}

const change: fc.Arbitrary<Omit<Alert, 'alert_id'> & { alert: number }> = fc.record({
  alert: fc.nat(6),
  severity: fc.constantFrom<Severity>('WARNING', 'ERROR', 'CRITICAL'),
  metric: fc.constant('cpu_percent'),
  value: fc.constant(95.5),
  threshold: fc.constant(90),
  // Several changes within one millisecond, over days, and from nodes whose clocks are far off.
  timestamp: fc.constantFrom(0, 0, 0, -1, -DAY_MS, -2 * DAY_MS, -20_000 * DAY_MS, 900 * DAY_MS).map((ago) => isoUtc(NOW + ago)),
  resolved: fc.boolean(),
});

type Step =
  | {
      readonly kind: 'run' | 'kill';
      readonly added: readonly Alert[];
      readonly page: number;
      readonly part: number;
      readonly loses: boolean;
    }
  | { readonly kind: 'replace'; readonly added: readonly Alert[]; readonly keeps: readonly boolean[] };

const changes = fc
  .array(change, { maxLength: 12 })
  .map((list) => list.map(({ alert, ...more }) => ({ alert_id: `robot_${alert % 3}/cpu_percent/${alert}`, ...more })));

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('run' as const, 'kill' as const, 'kill' as const),
    added: changes,
    page: fc.nat(4),
    part: fc.oneof(
      fc.nat(1000).map((thousandths) => thousandths / 1000),
      fc.constantFrom(0, 1),
    ),
    loses: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('replace' as const), added: changes, keeps: fc.array(fc.boolean(), { maxLength: 30 }) }),
);

t.test('each change is collected once, even if runs are killed, the cursor is lost or the database is replaced', async (t) => {
  const service = await AlertService.start(t, 3);
  const folders = temporaryFolder(t);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const data = mkdtempSync(join(folders, 'data-'));
      const folder = join(data, 'alerts');
      service.replace([]);
      const everything = new Map<string, Alert>();
      const run = async (): Promise<void> => {
        const { status } = await collectAlerts.run(contextFor(data, service.url, { nowMs: () => NOW }), GIVEN);
        t.equal(status, 'OK');
      };
      for (const one of steps) {
        // The database contains each change once.
        const added = one.added.filter((alert, i, all) => {
          const key = changeKey(alert);
          return !everything.has(key) && all.findIndex((other) => changeKey(other) === key) === i;
        });
        for (const alert of added) everything.set(changeKey(alert), alert);
        if (one.kind === 'replace') {
          service.replace([...added, ...service.changes.filter((_, i) => one.keeps[i % (one.keeps.length || 1)] ?? true)]);
          continue;
        }
        service.changes = [...service.changes, ...added];
        const states: Files[] = [];
        service.beforePage = () => states.push(filesOf(folder));
        await run();
        service.beforePage = () => undefined;
        if (one.kind === 'run') continue;
        states.push(filesOf(folder));
        const at = Math.min(one.page, states.length - 2);
        restore(folder, killedBetween(states[at] as Files, states[at + 1] as Files, one.part));
        if (one.loses) rmSync(join(folder, 'cursor.json'), { force: true });
      }
      const collectable = new Set(service.changes.map(changeKey));
      await run();
      const records = recordsOf(folder);
      const keys = records.map(changeKey);
      t.equal(new Set(keys).size, keys.length, 'none twice');
      t.equal(new Set(records.map(({ sequence }) => sequence)).size, records.length, 'each with a number of its own');
      for (const key of collectable) if (!keys.includes(key)) t.fail(`lost: ${key}`);
      for (const record of records) {
        const { alert_id, metric, resolved, severity, threshold, timestamp, value } = record;
        t.same({ alert_id, severity, metric, value, threshold, timestamp, resolved }, everything.get(changeKey(record)), 'as it was');
      }
      const names = readdirSync(folder).filter((name) => name.endsWith('.ndjson'));
      if (names.some((name) => name < 'alerts_2026-03-02' || name > 'alerts_2026-03-04.ndjson')) t.fail(`odd files: ${names}`);
      const before = filesOf(folder);
      await run();
      t.same(filesOf(folder), before, 'without new changes nothing is written');
      rmSync(data, { recursive: true });
    }),
    { numRuns: runs(20, 300), seed: SEED },
  );
});
