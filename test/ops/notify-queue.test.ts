import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { NOT_THERE } from '../../ops/collect/testing/context.ts';
import type { JobArguments, JobContext, JobResult } from '../../ops/lib/job.ts';
import type { Message } from '../../ops/notify/message.ts';
import { createNotifier, type JobRun, type Notifier } from '../../ops/notify/notifier.ts';
import { notify } from '../../ops/notify.ts';
import { RestClient } from '../../src/client/rest.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import type { LogLevel } from '../../src/core/ports.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { accept, Receiver } from '../../testkit/ops/http-receiver.ts';
import { until } from '../../testkit/wait.ts';

interface Site {
  readonly folder: string;
  readonly log: { level: LogLevel; text: string }[];
  config(notify: object): Config;
  /** Started notifications, which are stopped at the end of the test. */
  notifier(notify: object): Notifier;
  /** `edge-health ops notify`. */
  program(notify: object, options?: JobArguments['options'], ...positionals: string[]): Promise<JobResult>;
}

function site(t: Test): Site {
  const folder = temporaryFolder(t);
  const log: Site['log'] = [];
  const config = (settings: object): Config => {
    const file = join(folder, 'config.yaml');
    writeFileSync(file, stringify({ ops: { notify: { group_seconds: 0, ...settings } } }));
    const loaded = loadConfig(file);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
    return loaded.config;
  };
  // No service runs; jobs are notified nevertheless.
  const rest = new RestClient({ base: NOT_THERE, token: null });
  const base = {
    rest,
    dataFolder: folder,
    nowMs: Date.now,
    environment: process.env,
    onState: () => undefined,
    log: (level: LogLevel, text: string, fields?: object) => log.push({ level, text: `${text} ${JSON.stringify(fields ?? {})}` }),
  };
  return {
    folder,
    log,
    config,
    notifier: (settings) => {
      const notifier = createNotifier({ ...base, config: config(settings) });
      t.teardown(() => notifier.stop());
      notifier.start();
      return notifier;
    },
    program: (settings, options = {}, ...positionals) => {
      const context = {
        ...base,
        config: config(settings),
        signal: new AbortController().signal,
        version: '1.2.3',
      } as unknown as JobContext;
      return notify.run(context, { options, positionals });
    },
  };
}

const run = (status: JobRun['status'], ...lines: string[]): JobRun => ({
  started: new Date().toISOString(),
  duration_seconds: 1,
  status,
  exit_code: { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 }[status],
  trigger: 'schedule',
  failed: status === 'CRITICAL' || status === 'UNKNOWN',
  lines,
});

async function receiver(t: Test, ...given: Parameters<typeof Receiver.start>): Promise<Receiver> {
  const started = await Receiver.start(...given);
  t.teardown(() => started.stop());
  return started;
}

function commandIn(folder: string): { file: string; received: () => Message[] } {
  const [file, out] = [join(folder, 'notify'), join(folder, 'received')];
  writeFileSync(file, `#!/bin/sh\ncat >>'${out}'\n`);
  chmodSync(file, 0o755);
  const whole = (): string[] => (existsSync(out) ? readFileSync(out, 'utf8').split('\n').slice(0, -1) : []);
  const received = (): Message[] => whole().map((line) => JSON.parse(line) as Message);
  return { file, received };
}

t.test('a channel that hangs delays neither the other channels nor the end of the scheduler', async (t) => {
  const { folder, log, notifier } = site(t);
  const hook = await receiver(t, () => undefined);
  const { file, received } = commandIn(folder);
  const running = notifier({ webhook: { url: hook.url }, command: file, email: { host: '127.0.0.1', port: 1, to: ['ops@example.org'] } });
  running.jobEnded('backup_logs', run('CRITICAL', 'CRITICAL  disk: full; free some'));
  await until('both were notified', () => received().length === 1 && hook.received.length === 1, { describe: () => log });
  t.match(received()[0], {
    kind: 'update',
    status: 'CRITICAL',
    summary: 'backup_logs failed: disk: full; free some',
    alerts: [{ details: ['CRITICAL  disk: full; free some'] }],
  });
  running.jobEnded('backup_logs', run('OK'));
  await until('the command was notified of the recovery', () => received().length === 2, { describe: () => log });
  t.equal(received()[1]?.status, 'RESOLVED');
  await until('the mail server refused', () => log.some(({ text }) => /not delivered.*refused.*"channel":"email"/.test(text)), {
    describe: () => log,
  });
  await running.stop();
  t.notOk(
    log.some(({ text }) => /"channel":"webhook"/.test(text)),
    'the end cuts the delivery that hangs before its own timeout does',
  );
  t.equal(log.filter(({ level }) => level === 'error').length, 0);
  t.notMatch(JSON.stringify(log), /secret-path/, 'no path of a webhook in the log');
});

t.test('a job that fails when run by hand is not notified; its success resolves what was notified', async (t) => {
  const { folder, log, notifier } = site(t);
  const { file, received } = commandIn(folder);
  const running = notifier({ command: file, group_seconds: 0 });
  const byHand = (status: JobRun['status']): JobRun => ({ ...run(status), trigger: 'manual' });
  running.jobEnded('backup_logs', byHand('CRITICAL'));
  running.jobEnded('collect_alerts', run('CRITICAL'));
  await until('the scheduled run was notified', () => received().length > 0, { describe: () => log });
  running.jobEnded('collect_alerts', byHand('OK'));
  await until('it was resolved', () => received().length > 1, { describe: () => log });
  t.match(received(), [
    { status: 'CRITICAL', alerts: [{ metric: 'collect_alerts' }], open_count: 1 },
    { status: 'RESOLVED', alerts: [{ metric: 'collect_alerts' }], open_count: 0 },
  ]);
  await running.stop();
});

t.test('an undelivered notification is delivered once after a restart, with the same id', async (t) => {
  const { notifier, program } = site(t);
  const hook = await receiver(t, (response) => response.writeHead(503, { 'retry-after': '1' }).end('down'));
  const settings = { webhook: { url: hook.url } };
  const first = notifier(settings);
  first.jobEnded('backup_logs', run('UNKNOWN', 'no idea'));
  await until('the webhook was notified', () => hook.received.length > 0, { describe: () => hook.received });
  await first.stop();
  const pending = await program(settings);
  t.match(pending, {
    status: 'WARNING',
    document: { channels: [{ channel: 'webhook', pending: 1, last_attempt: { delivered: false, detail: 'answered 503: down' } }] },
  });
  t.match(pending.lines.join('\n'), /WARNING {2}webhook: to http:\/\/127\.0\.0\.1:\d+: 0 delivered, 1 pending; 1 attempts? failed/);
  hook.behaviour = accept;
  const before = hook.received.length;
  const second = notifier(settings);
  await until('the webhook was notified', () => hook.received.length > before, { describe: () => hook.received });
  await second.stop();
  t.equal(new Set(hook.received.map(({ headers }) => headers['idempotency-key'])).size, 1);
  t.match(await program(settings), {
    status: 'OK',
    document: { channels: [{ pending: 0, delivered: 1 }], open: [{ id: 'job/backup_logs', severity: 'ERROR' }] },
  });
  const third = notifier(settings);
  third.jobEnded('backup_logs', run('UNKNOWN', 'no idea'));
  third.jobEnded('backup_logs', run('OK'));
  await until('the webhook was notified', () => hook.received.length > before + 1, { describe: () => hook.received });
  await third.stop();
  t.same(
    hook
      .messages<Message>()
      .slice(-2)
      .map(({ status }) => status),
    ['ERROR', 'RESOLVED'],
    'what was notified is not notified again',
  );
});

t.test('a failed attempt is repeated, and a dropped notification is reported in the next one', async (t) => {
  const { log, notifier } = site(t);
  const answers = [503, 200, 400, 200];
  const hook = await receiver(t, (response, _, count) => response.writeHead(answers[count] ?? 200, { 'retry-after': '1' }).end());
  const running = notifier({ webhook: { url: hook.url } });
  running.jobEnded('a', run('CRITICAL'));
  await until('the webhook was notified', () => hook.received.length === 2, { describe: () => log });
  const [first, second] = hook.received;
  t.same(second?.body, first?.body);
  running.jobEnded('b', run('CRITICAL'));
  await until('the webhook was notified', () => hook.received.length === 3, { describe: () => log });
  running.jobEnded('c', run('CRITICAL'));
  await until('the webhook was notified', () => hook.received.length === 4, { describe: () => log });
  t.match(hook.messages<Message>()[3], { summary: 'c failed', notes: [/^1 earlier notification could not be delivered/] });
  t.ok(log.some(({ level, text }) => level === 'error' && /dropped: answered 400; check ops\.notify\.webhook/.test(text)));
});

t.test('without a channel nothing is opened or written; a reload can add, change and remove a channel', async (t) => {
  const { config, folder, log, notifier } = site(t);
  const without = notifier({});
  without.jobEnded('a', run('CRITICAL'));
  await without.stop();
  t.notOk(existsSync(join(folder, 'ops')));
  t.same(log, []);
  const running = notifier({});
  const [one, two] = [await receiver(t), await receiver(t)];
  running.reload(config({ webhook: { url: one.url } }));
  running.jobEnded('a', run('CRITICAL'));
  await until('the webhook was notified', () => one.received.length === 1, { describe: () => log });
  running.reload(config({ webhook: { url: two.url } }));
  running.jobEnded('a', run('OK'));
  await until('the webhook was notified', () => two.received.length === 1, { describe: () => log });
  t.equal(one.received.length, 1);
  running.reload(config({}));
  running.jobEnded('b', run('CRITICAL'));
  await running.stop();
  t.equal(two.received.length, 1);
});

t.test('notifications are sent even if the disk refuses writes', async (t) => {
  const { config, folder, log, notifier } = site(t);
  writeFileSync(join(folder, 'ops'), ''); // No folder can be created there.
  const hook = await receiver(t);
  const running = notifier({ webhook: { url: hook.url } });
  running.jobEnded('a', run('CRITICAL'));
  await until('the webhook was notified', () => hook.received.length === 1, { describe: () => log });
  running.reload(config({ webhook: { url: hook.url } }));
  rmSync(join(folder, 'ops'));
  running.jobEnded('a', run('OK'));
  await until('the webhook was notified', () => hook.received.length === 2, { describe: () => log });
  await running.stop();
  t.equal(log.filter(({ level, text }) => level === 'error' && /cannot be saved to disk/.test(text)).length, 1);
  t.ok(existsSync(join(folder, 'ops/notifications.ndjson')));
});

t.test('edge-health ops notify shows the configuration and sends test notifications', async (t) => {
  const { folder, program } = site(t);
  t.match(await program({}), { status: 'OK', lines: [/^OK {2}no notifications are configured: set ops\.notify\.webhook\.url/] });
  t.match(await program({}, { test: true }), { status: 'UNKNOWN' });
  const hook = await receiver(t);
  const { file, received } = commandIn(folder);
  const settings = { webhook: { url: hook.url }, command: file };
  t.match(await program(settings), {
    status: 'OK',
    document: { configured: true, channels: [{ channel: 'webhook', pending: 0 }, { channel: 'command' }] },
  });
  const link = { alerts: 'unreachable', since: '2026-06-09T10:00:00.000Z', problem: 'no response from the service' };
  mkdirSync(join(folder, 'ops'), { recursive: true });
  writeFileSync(
    join(folder, 'ops/jobs.json'),
    JSON.stringify({ scheduler: { state: 'running', started: null, beat: null }, jobs: [], notifications: link }),
  );
  t.match(
    await program(settings),
    {
      status: 'WARNING',
      lines: [/^OK {2}webhook/, /nothing sent/, /^OK {2}command/, /nothing sent/, /^WARNING {2}alerts have not been received since/],
    },
    'the channels work, but there is nothing to send',
  );
  rmSync(join(folder, 'ops'), { recursive: true });
  t.match(await program(settings, { test: true }), {
    status: 'OK',
    lines: [/^OK {2}webhook: delivered to .*: answered 204$/, /^OK {2}command: delivered to .*exit status 0$/],
  });
  t.match(received(), [{ kind: 'test', status: 'TEST' }]);
  hook.behaviour = (response) => response.writeHead(404).end();
  t.match(await program(settings, { test: true }, 'webhook'), {
    status: 'CRITICAL',
    lines: [/^CRITICAL {2}webhook: not delivered to .*answered 404/],
    document: { channels: [{ channel: 'webhook' }] },
  });
  t.equal(received().length, 1, 'only the one that was named');
  t.match(await program(settings, { test: true, 'dry-run': true }, 'webhook'), { status: 'OK', lines: [/would be sent/, /"kind":"test"/] });
  t.equal(hook.received.length, 2);
  t.match(await program(settings, { test: true }, 'email'), { status: 'UNKNOWN', lines: [/email: this channel is not configured/] });
  t.match(await program(settings, { test: true }, 'pigeon'), {
    status: 'UNKNOWN',
    lines: [/pigeon: there is no such channel; channels: webhook, command, email/],
  });
  t.match(await program(settings, {}, 'webhook'), { status: 'UNKNOWN' });
  const wrong = { webhook: { url: 'ftp://x' }, email: { host: 'mail' } };
  t.match(await program(wrong), { status: 'CRITICAL', lines: [/webhook\.url is no address/, /email\.to is empty/] });
  t.notOk(existsSync(join(folder, 'ops')), 'it writes nothing');
});

t.test('of a URL in a file only the origin is shown, and problems of the file are reported', async (t) => {
  const { folder, log, notifier, program } = site(t);
  const hook = await receiver(t);
  const file = join(folder, 'url');
  const settings = { webhook: { url_file: file } };
  t.match(await program(settings), {
    status: 'CRITICAL',
    lines: [/url_file: .*cannot be read \(ENOENT\)/, /webhook: to .*\/url: 0 delivered/],
  });
  notifier(settings).jobEnded('backup_logs', run('CRITICAL', 'CRITICAL  disk: full'));
  await until('it was tried', () => log.some(({ text }) => /not delivered: .*cannot be read/.test(text)));
  await until('that was recorded', () => readFileSync(join(folder, 'ops/notifications.ndjson'), 'utf8').includes('"failures":1'));
  writeFileSync(file, `${hook.url}\n`);
  chmodSync(file, 0o640);
  t.match(await program(settings, { test: true }), { status: 'OK', lines: [/^OK {2}webhook: delivered to http:\/\/127\.0\.0\.1:\d+: /] });
  t.match(await program(settings), { lines: [/^WARNING {2}webhook: to http:\/\/127\.0\.0\.1:\d+: /] });
  chmodSync(file, 0o644);
  const { lines, document, status } = await program(settings);
  t.equal(status, 'WARNING');
  t.match(lines[0], /^WARNING {2}configuration: ops\.notify\.webhook\.url_file: every user may read .*; chmod o-r /);
  t.notMatch(JSON.stringify([lines, document, log]), /secret-path/);
});
