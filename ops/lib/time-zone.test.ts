import { spawnSync } from 'node:child_process';
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { HOUR_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { LocalClock } from '../schedule/local-time.ts';
import { resolveTimeZone } from './time-zone.ts';

const ZONES = '/usr/share/zoneinfo';

t.test('TZ becomes the name of the zone that it means', async (t) => {
  const link = join(temporaryFolder(t), 'localtime');
  symlinkSync(`${ZONES}/Europe/Berlin`, link);
  const cases: Record<string, string | undefined> = {
    'Europe/Berlin': 'Europe/Berlin',
    ':Europe/Berlin': 'Europe/Berlin',
    'posix/Europe/Berlin': 'Europe/Berlin',
    ':right/Europe/Berlin': 'Europe/Berlin',
    [`${ZONES}/Europe/Berlin`]: 'Europe/Berlin',
    [`:${ZONES}/posix/America/Argentina/Ushuaia`]: 'America/Argentina/Ushuaia',
    EST5EDT: 'EST5EDT',
    '': 'UTC',
    ':': 'UTC',
    '/etc/localtime': undefined,
    ':/etc/localtime': undefined,
    ...(existsSync(`${ZONES}/Europe/Berlin`) ? { [link]: 'Europe/Berlin', [`:${link}`]: 'Europe/Berlin' } : {}),
  };
  for (const [given, zone] of Object.entries(cases)) {
    const environment: NodeJS.ProcessEnv = { TZ: given };
    t.equal(resolveTimeZone(environment), null, given);
    t.equal(environment['TZ'], zone, given);
  }
  t.equal(resolveTimeZone({}), null, 'unset: the zone of the machine');
});

t.test('the change is in effect at once, with daylight saving', async (t) => {
  const before = process.env['TZ'];
  t.teardown(() => {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  });
  process.env['TZ'] = `:${ZONES}/Europe/Berlin`;
  t.equal(resolveTimeZone(process.env), null);
  const clock = new LocalClock(null);
  t.same([clock.offsetMs(Date.UTC(2026, 0)), clock.offsetMs(Date.UTC(2026, 6))], [HOUR_MS, 2 * HOUR_MS]);
});

t.test('a value of TZ that names no zone is UTC, with a warning', async (t) => {
  for (const given of ['CET-1CEST,M3.5.0,M10.5.0/3', '<-03>3', 'Nowhere/City', '/etc/hostname', ':/nowhere']) {
    const environment: NodeJS.ProcessEnv = { TZ: given };
    t.ok(resolveTimeZone(environment)?.startsWith(`TZ is "${given}", `));
    t.equal(environment['TZ'], 'UTC');
  }
});

t.test('the schedules follow the file that TZ names, and a warning names a TZ that is not understood', async (t) => {
  const folder = temporaryFolder(t);
  const config = join(folder, 'config.yaml');
  const list = (TZ: string, ops = {}) => {
    writeFileSync(config, JSON.stringify({ storage: { path: folder }, rest: { host: '127.0.0.1', port: 1 }, ops }));
    const command = ['ops', 'list', '--config', config];
    return spawnSync(join(ROOT, 'bin/edge-health'), command, { encoding: 'utf8', env: { ...process.env, TZ } }).stderr;
  };
  t.equal(list(`:${ZONES}/Asia/Kathmandu`), '');
  t.match(list('CET-1CEST'), /TZ is "CET-1CEST".*ops\.timezone/);
  t.equal(list('CET-1CEST', { timezone: 'Europe/Berlin' }), '', 'ops.timezone has precedence');
});
