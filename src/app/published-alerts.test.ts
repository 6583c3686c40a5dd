import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { Alert } from '../core/alerts/alert.ts';
import { PublishedAlerts } from './published-alerts.ts';

const alertOf = (n: number, resolved = false): Alert => ({
  alert_id: `robot/cpu_percent/${n}`,
  severity: 'CRITICAL',
  metric: 'cpu_percent',
  value: 95,
  threshold: 90,
  timestamp: '2026-01-02T03:04:05.000Z',
  resolved,
});

t.test('an alert is in the file from its first publication until its resolution was received', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const folder = temporaryFolder(t);
  const alerts = new PublishedAlerts(folder, () => undefined);
  t.same(alerts.read(), [], 'no file yet');
  const stored = async (): Promise<Alert[]> => {
    await alerts.flush();
    return new PublishedAlerts(folder, () => undefined).read();
  };
  for (const alert of [alertOf(1), alertOf(2), alertOf(3, true)]) alerts.add(alert);
  t.same(await stored(), [alertOf(1), alertOf(2)], 'one that was never published as open is not held by anyone');
  t.same(
    [1, 2, 3].map((n) => alerts.has(alertOf(n).alert_id)),
    [true, true, false],
  );
  alerts.add(alertOf(1, true));
  t.same(await stored(), [alertOf(1, true), alertOf(2)], 'subscribers may have missed the resolution');
  mock.timers.tick(5000);
  t.same(await stored(), [alertOf(2)]);
  alerts.add({ ...alertOf(2), value: 99 });
  t.same(await stored(), [alertOf(2)], 'a change of the value costs no write');
});

t.test('a damaged file, or one that cannot be written, loses nothing else', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'published_alerts.json');
  for (const text of ['', '{}', '[', '7']) {
    writeFileSync(file, text);
    t.same(new PublishedAlerts(folder, () => undefined).read(), []);
  }
  writeFileSync(file, JSON.stringify([{ ...alertOf(1), value: 'high' }, null, alertOf(2)]));
  t.same(new PublishedAlerts(folder, () => undefined).read(), [alertOf(2)]);
  const lines: string[] = [];
  const lost = new PublishedAlerts(join(folder, 'none'), (_level, message) => lines.push(message));
  for (const n of [1, 2]) {
    lost.add(alertOf(n));
    await lost.flush();
  }
  t.same(lines, ['list of published alerts not saved']);
  t.ok(lost.has(alertOf(1).alert_id));
  t.match(readFileSync(file, 'utf8'), /cpu_percent/);
});
