import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import type { OpsDocument } from '../../src/client/documents.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { holderOf, lockByHand, lockNamed } from './job-lock.ts';
import { lastLines, newRecord } from './job-records.ts';
import { leaveRun, leftRuns, takeRuns } from './manual-run.ts';
import { isRunning, liveFolder, NEVER, readState, StateFiles } from './state.ts';

function folders(t: Test) {
  const data = temporaryFolder(t);
  const environment = { RUNTIME_DIRECTORY: join(data, 'run') };
  mkdirSync(environment.RUNTIME_DIRECTORY);
  const log: string[] = [];
  return {
    data,
    live: liveFolder(data, environment),
    log,
    open: () => new StateFiles(data, environment, (level, message) => void log.push(`${level} ${message}`)),
  };
}
const documentAt = (beat: string, since: string | null = null): OpsDocument => ({
  scheduler: { state: 'running', started: beat, beat },
  jobs: [{ ...newRecord('backup_logs', '0 0 * * *'), running_since: since }],
});
const EARLY = documentAt('2026-06-10T12:00:00.000Z');
const LATE = documentAt('2026-06-10T12:05:00.000Z');
const LATE_MS = Date.parse('2026-06-10T12:05:00.000Z');

t.test('of both copies the newer one counts', async (t) => {
  const { data, live, open } = folders(t);
  t.same(readState(data), { document: NEVER, isLive: false });
  const files = open();
  t.same(files.load(), NEVER);
  t.equal(readlinkSync(join(data, 'ops/live')), live);
  await files.saveDurable(EARLY);
  t.same(readState(data), { document: EARLY, isLive: false });
  files.saveLive(LATE);
  t.same(readState(data), { document: LATE, isLive: true });
  t.same(open().load(), LATE);
  t.equal(statSync(join(data, 'ops/jobs.json')).mode & 0o777, 0o640);
  t.equal(statSync(join(data, 'ops')).mode & 0o777, 0o750);
  t.ok(isRunning(readState(data), LATE_MS + 60_000));
  t.notOk(isRunning(readState(data), LATE_MS + 600_000), 'one that was killed');
  rmSync(live, { recursive: true });
  t.same(readState(data), { document: EARLY, isLive: false }, 'after a reboot');
  t.notOk(isRunning(readState(data), Date.parse('2026-06-10T12:00:01Z')));
  t.same(open().load(), EARLY);
});

t.test('of two copies with the same beat the live one counts, because the durable one is written later', async (t) => {
  const { data, open } = folders(t);
  const files = open();
  const ended = documentAt('2026-06-10T12:05:00.000Z', '2026-06-10T12:04:00.000Z');
  await files.saveDurable(LATE);
  files.saveLive(ended);
  t.same(readState(data).document, ended);
  t.same(open().load(), ended);
});

t.test('concurrent writes end with the last one', async (t) => {
  const { data, open } = folders(t);
  const files = open();
  await Promise.all([files.saveDurable(EARLY), files.saveDurable(EARLY), files.saveDurable(LATE)]);
  t.same(readState(data).document, LATE);
  t.same(
    readdirSync(join(data, 'ops')).filter((name) => name.endsWith('.new')),
    [],
  );
});

t.test('damaged state files are quarantined', async (t) => {
  for (const text of ['', '{"scheduler":{"state":"run', '[]', '{"scheduler":{},"jobs":[]}', '\0\0\0\0']) {
    const { data, live, log, open } = folders(t);
    const files = open();
    await files.saveDurable(EARLY);
    writeFileSync(join(live, 'jobs.json'), text);
    t.same(readState(data).document, EARLY, 'readers take the other');
    t.same(open().load(), EARLY);
    t.equal(readFileSync(join(live, 'jobs.json.damaged'), 'utf8'), text);
    writeFileSync(join(data, 'ops/jobs.json'), text);
    t.same(open().load(), NEVER);
    t.ok(existsSync(join(data, 'ops/jobs.json.damaged')));
    t.equal(log.filter((line) => line.startsWith('warning job state unreadable')).length, 2);
  }
});

t.test('write failures are logged once, and jobs continue', async (t) => {
  const { data, live, log, open } = folders(t);
  const files = open();
  rmSync(live, { recursive: true });
  writeFileSync(live, 'a file in its place');
  for (let times = 0; times < 3; times += 1) files.saveLive(EARLY);
  rmSync(join(data, 'ops'), { recursive: true });
  for (let times = 0; times < 3; times += 1) await files.saveDurable(EARLY);
  t.equal(log.length, 2);
  t.match(log, [/^error live job state cannot be written; jobs continue/, /^error job state cannot be written to the disk/]);
  mkdirSync(join(data, 'ops'));
  await files.saveDurable(LATE);
  t.match(log.at(-1) ?? '', /can be written again/);
  t.same(readState(data).document, LATE);
});

t.test('the live copy is in memory, in a folder of its own', async (t) => {
  const { data } = folders(t);
  const runtime = temporaryFolder(t);
  const environment = { RUNTIME_DIRECTORY: `${runtime}:/run/other` };
  t.equal(dirname(liveFolder(data, environment)), runtime);
  // Another storage.path: its scheduler must not continue with the runs of this folder.
  const log: string[] = [];
  const files = (folder: string) => new StateFiles(folder, environment, (_, message) => log.push(message));
  files(data).saveLive(LATE);
  t.same(files(temporaryFolder(t)).load(), NEVER);
  t.same(files(data).load(), LATE);
  t.same(log, []);
  const own = liveFolder(data, {});
  t.teardown(() => rmSync(own, { recursive: true }));
  t.equal(liveFolder(data, {}), own, 'the same each time');
  t.match(own, /^\/dev\/shm\/edge-health-ops-\d+-[0-9a-f]{16}$/);
  t.equal(statSync(own).mode & 0o777, 0o700);
});

const RUN = {
  started: '2026-06-10T12:00:00.000Z',
  duration_seconds: 1,
  status: 'OK',
  exit_code: 0,
  trigger: 'manual',
  failed: false,
  lines: ['OK'],
} as const;

t.test('manual runs are loaded once', async (t) => {
  const { data, log } = folders(t);
  const logged = (level: string, message: string): void => void log.push(`${level} ${message}`);
  t.same(takeRuns(data, logged), []);
  const run = { ...RUN, lines: ['OK'] };
  leaveRun(data, { name: 'backup_logs', run });
  leaveRun(data, { name: 'health_check', run });
  writeFileSync(join(data, 'ops/inbox/0-torn.json'), '{"name":"backup');
  writeFileSync(join(data, 'ops/inbox/half.json.new'), '{');
  t.equal(leftRuns(data).size, 3);
  t.same(takeRuns(data, logged), [
    { name: 'backup_logs', run },
    { name: 'health_check', run },
  ]);
  t.same(log, ['warning unreadable manual run removed from the inbox']);
  t.same(takeRuns(data, logged), []);
});

t.test('one process at a time holds the lock of a job, and the holder is shown', async (t) => {
  const { data, open } = folders(t);
  const byHand = lockByHand(data, 'backup_logs', LATE_MS);
  t.ok(byHand);
  t.equal(lockByHand(data, 'backup_logs', LATE_MS), null);
  t.equal(lockNamed(data, 'backup_logs'), null);
  t.equal(holderOf(data, 'backup_logs'), `manually, process ${process.pid}, since 2026-06-10T12:05:00.000Z`);
  byHand?.release();
  t.equal(holderOf(data, 'backup_logs'), 'by another process');
  open().saveLive(documentAt('2026-06-10T12:05:00.000Z', '2026-06-10T12:04:00.000Z'));
  t.equal(holderOf(data, 'backup_logs'), 'by the scheduler, since 2026-06-10T12:04:00.000Z');
  const again = lockNamed(data, 'backup_logs');
  t.ok(again);
  again?.release();
});

t.test('of many lines those that report OK are dropped first', async (t) => {
  const many = ['CRITICAL  disk: full', ...Array.from({ length: 60 }, (_, index) => `OK        check ${index}`), 'x'.repeat(1000)];
  const kept = lastLines(many);
  t.equal(kept.length, 30);
  t.equal(kept[0], 'CRITICAL  disk: full');
  t.equal(kept.at(-2), 'OK        check 59');
  t.equal(kept.at(-1)?.length, 400);
  t.same(lastLines(['a\n\nb\n']), ['a', 'b']);
});
