import t from 'tap';
import { HOUR_MS } from '../../src/core/time/time.ts';
import { evaluateBackup, newestBackup } from './backups.ts';

const NOW = Date.parse('2026-03-04T12:00:00Z');

t.test('finds the newest backup by its name', async (t) => {
  const names = [
    'edge-health_20260303T000000Z.tar.zst',
    'edge-health_20260304T000000Z.tar.zst',
    'edge-health_20260304T060000Z.tar.zst.partial',
    'lost+found',
  ];
  t.equal(newestBackup(names, NOW), Date.parse('2026-03-04T00:00:00Z'));
  t.equal(
    newestBackup([...names, 'edge-health_20360101T000000Z.tar.zst'], NOW),
    Date.parse('2026-03-04T00:00:00Z'),
    'made under a wrong clock',
  );
  t.equal(newestBackup(['edge-health_20360101T000000Z.tar.zst'], NOW), Date.parse('2036-01-01T00:00:00Z'));
  t.equal(newestBackup([], NOW), null);
});

t.test('judges the age of the newest backup', async (t) => {
  const facts = { newestMs: NOW - 12 * HOUR_MS, dataSinceMs: NOW - 1000 * HOUR_MS, nowMs: NOW, maxAgeHours: 26 };
  t.match(evaluateBackup(facts), { status: 'OK', message: 'the last one is 12 h old' });
  t.match(evaluateBackup({ ...facts, newestMs: NOW - 26 * HOUR_MS }), { status: 'OK' });
  t.match(evaluateBackup({ ...facts, newestMs: NOW - 27 * HOUR_MS }), {
    status: 'WARNING',
    message: 'the last one is 27 h old; at most 26 h are allowed',
    remedy: /backup_logs/,
  });
  t.match(evaluateBackup({ ...facts, newestMs: null }), { status: 'WARNING', message: 'none' });
  t.match(
    evaluateBackup({ ...facts, newestMs: null, dataSinceMs: NOW - HOUR_MS }),
    { status: 'OK', isNote: true },
    'the first night is still to come',
  );
  t.match(evaluateBackup({ ...facts, newestMs: null, dataSinceMs: null }), { status: 'OK', isNote: true });
  t.match(evaluateBackup({ ...facts, newestMs: NOW + 60_000 }), { status: 'OK', message: 'the last one is 0 h old' });
  t.match(evaluateBackup({ ...facts, newestMs: NOW + HOUR_MS }), { status: 'WARNING', message: /from the future, 2026-03-04T13:00:00/ });
});
