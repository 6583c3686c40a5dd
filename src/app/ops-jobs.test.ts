import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { isoUtc } from '../core/time/time.ts';
import type { OpsDocument } from '../http/api/ops-schema.ts';
import { OpsJobs } from './ops-jobs.ts';

const NOW = Date.parse('2026-03-04T12:00:00Z');
const NEVER = { scheduler: { state: 'never', started: null, beat: null }, jobs: [] };

function reported(beatMs: number, runs = 1): OpsDocument {
  const job = { name: 'health_check', schedule: '*/5 * * * *', next: isoUtc(NOW + 60_000), running_since: null, last_success: isoUtc(NOW) };
  const last: OpsDocument['jobs'][number]['last'] = {
    started: isoUtc(NOW),
    duration_seconds: 1.5,
    status: 'OK',
    exit_code: 0,
    trigger: 'schedule',
    failed: false,
    lines: ['OK  all is well'],
  };
  return {
    scheduler: { state: 'running', started: isoUtc(NOW - 3_600_000), beat: isoUtc(beatMs) },
    jobs: [{ ...job, last, runs, failures: 0, missed: 0, overlaps: 0 }],
  };
}

const stopped = (document: OpsDocument): OpsDocument => ({ ...document, scheduler: { ...document.scheduler, state: 'stopped' } });

class Place {
  readonly logged: string[] = [];
  readonly durable: string;
  readonly live: string;
  readonly jobs: OpsJobs;
  nowMs = NOW;

  constructor(t: Test) {
    const folder = temporaryFolder(t);
    this.durable = join(folder, 'ops/jobs.json');
    this.live = join(folder, 'memory/jobs.json');
    this.jobs = new OpsJobs({
      dataPath: folder,
      log: (level, message) => this.logged.push(`${level}: ${message}`),
      wallMilliseconds: () => this.nowMs,
    });
  }

  makeFolders(): void {
    mkdirSync(join(this.durable, '..'));
    mkdirSync(join(this.live, '..'));
    symlinkSync(join(this.live, '..'), join(this.durable, '../live'));
  }

  write(file: string, document: unknown): void {
    writeFileSync(`${file}.new`, typeof document === 'string' ? document : JSON.stringify(document));
    renameSync(`${file}.new`, file);
  }
}

t.test('the live copy takes precedence over the durable one; without either there is no scheduler', async (t) => {
  const place = new Place(t);
  t.same(await place.jobs.read(), NEVER, 'no folder');
  place.makeFolders();
  t.same(await place.jobs.read(), NEVER, 'an empty one');
  place.write(place.durable, reported(NOW - 200_000));
  t.same(await place.jobs.read(), stopped(reported(NOW - 200_000)), 'after a reboot the durable copy dates from an earlier boot');
  place.write(place.live, reported(NOW - 10_000, 2));
  t.same(await place.jobs.read(), reported(NOW - 10_000, 2));
  place.write(place.live, reported(NOW - 5000, 3));
  t.same(await place.jobs.read(), reported(NOW - 5000, 3), 'a newer one');
  place.write(place.durable, reported(NOW - 4000, 4));
  t.same((await place.jobs.read()).jobs[0]?.runs, 4, 'a live copy older than the durable one is of an earlier scheduler');
  rmSync(place.durable);
  rmSync(join(place.live, '..'), { recursive: true });
  t.same(await place.jobs.read(), NEVER, 'a dangling link');
  t.same(place.logged, [], 'none of this is logged');
});

t.test('a scheduler without an update for three minutes has stopped, whatever its last state', async (t) => {
  const place = new Place(t);
  place.makeFolders();
  place.write(place.live, reported(NOW));
  for (const [seconds, state] of [
    [0, 'running'],
    [179, 'running'],
    [181, 'stopped'],
    [-60, 'running'],
    [-3600, 'stopped'],
  ] as const) {
    place.nowMs = NOW + seconds * 1000;
    t.equal((await place.jobs.read()).scheduler.state, state, `after ${seconds} s`);
  }
  place.nowMs = NOW;
  place.write(place.live, stopped(reported(NOW)));
  t.equal((await place.jobs.read()).scheduler.state, 'stopped');
});

t.test('an invalid document is harmless and logged once', async (t) => {
  const text = JSON.stringify(reported(NOW));
  const wrong: Readonly<Record<string, string>> = {
    empty: '',
    'half-written': text.slice(0, text.length / 2),
    'no JSON': 'hello',
    null: 'null',
    'a list': '[]',
    'without jobs': '{"scheduler":{"state":"running","started":null,"beat":null}}',
    'a wrong type': text.replace('"runs":1', '"runs":"many"'),
    'a wrong time': text.replace(/"next":"[^"]+"/, '"next":"tomorrow"'),
    'something unknown': text.replace('"runs":1', '"runs":1,"__proto__":{"x":1}'),
    'a large one': text.replace('all is well', 'x'.repeat(300_000)),
  };
  for (const [what, content] of Object.entries(wrong)) {
    const place = new Place(t);
    place.makeFolders();
    place.write(place.live, content);
    for (let n = 0; n < 3; n += 1) t.same(await place.jobs.read(), NEVER, what);
    t.equal(place.logged.length, 1, what);
    t.match(place.logged[0], /^warning: scheduler state unreadable/);
    place.write(place.durable, reported(NOW));
    t.equal((await place.jobs.read()).scheduler.state, 'stopped', 'the durable copy serves');
    place.write(place.live, text);
    t.same(await place.jobs.read(), reported(NOW), 'and the live one again');
    t.match(place.logged, [/./, /^notice: scheduler state readable again/]);
    t.equal(place.logged.length, 2);
  }
});

t.test('a path that is not a regular file is harmless and does not block', async (t) => {
  const place = new Place(t);
  place.makeFolders();
  execFileSync('mkfifo', [place.live]);
  t.same(await place.jobs.read(), NEVER, 'a pipe');
  t.match(place.logged, [/warning/]);
  mkdirSync(place.durable);
  t.same(await place.jobs.read(), NEVER, 'a folder');
  rmSync(place.live);
  symlinkSync('jobs.json', place.live);
  t.same(await place.jobs.read(), NEVER, 'a link to itself');
  rmSync(place.live);
  symlinkSync('/dev/zero', place.live);
  t.same(await place.jobs.read(), NEVER, 'a device');
});

t.test('an unchanged file is not read again, a changed one is', async (t) => {
  const place = new Place(t);
  place.makeFolders();
  place.write(place.live, reported(NOW));
  const first = await place.jobs.read();
  t.equal(await place.jobs.read(), first, 'the same object');
  const both = await Promise.all([place.jobs.read(), place.jobs.read()]);
  t.same(both, [first, first]);
  utimesSync(place.live, 1, 1);
  t.not(await place.jobs.read(), first, 'another time');
  t.same(await place.jobs.read(), first);
  truncateSync(place.live, 10);
  t.same(await place.jobs.read(), NEVER, 'another length');
});
