import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { ShutdownContext, ShutdownReason } from '../core/shutdown/shutdown.ts';
import { busctl, Logind } from './logind.ts';

/** A busctl that records its calls and runs a shell script for each method. test/system/appliance tests the real one. */
class Bus {
  readonly folder: string;
  readonly logged: string[] = [];
  seconds = 0;
  /** Far longer than any script takes, until a test makes one of them short. */
  readonly timeouts = { querySeconds: 120, answerSeconds: 120, wallSeconds: 120 };
  readonly logind: Logind;

  constructor(t: Test, answers: Readonly<Record<string, string>> = {}, { helperSocket = null as string | null } = {}) {
    const folder = temporaryFolder(t);
    this.folder = folder;
    this.answer(answers);
    writeFileSync(join(folder, 'passwd'), `root:x:0:0::/:/bin/sh\nme:x:${userInfo().uid === 0 ? 5 : userInfo().uid}:5::/:/bin/sh\n`);
    this.logind = new Logind({
      environment: { PATH: `${folder}:${process.env['PATH']}` },
      log: (_, message) => this.logged.push(message),
      monotonicSeconds: () => this.seconds,
      helperSocket,
      passwordFile: join(folder, 'passwd'),
      timeouts: this.timeouts,
    });
  }

  answer(answers: Readonly<Record<string, string>>): void {
    const cases = { ListInhibitors: LOCKS(), ...answers };
    const lines = Object.entries(cases).map(([method, script]) => `*" ${method}"*) ${script};;`);
    const file = join(this.folder, 'busctl');
    // Replaced by a rename, because a shell reads a running script step by step.
    writeFileSync(
      `${file}.next`,
      `#!/bin/sh\nprintf '%s|' "$@" >> '${this.folder}/calls'; echo >> '${this.folder}/calls'\ncase " $*" in\n${lines.join('\n')}\nesac\n`,
      { mode: 0o755 },
    );
    renameSync(`${file}.next`, file);
  }

  /** The method and its arguments of every call so far. */
  calls(): string[] {
    const file = join(this.folder, 'calls');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    return lines.map((line) => line.split('org.freedesktop.login1.Manager|')[1] ?? line);
  }

  /** A script that responds only after `proceed`, or when the test has ended and removed its folder. */
  waiting(script: string): string {
    return `while [ -d '${this.folder}' ] && [ ! -e '${this.folder}/proceed' ]; do sleep 0.02; done; ${script}`;
  }

  proceed(): void {
    writeFileSync(join(this.folder, 'proceed'), '');
  }

  perform(reason: ShutdownReason, action: 'poweroff' | 'reboot' | 'halt' = 'poweroff'): Promise<void> {
    return this.logind.perform({ action, reason, requestedBy: 'Zoë', requestId: '01J' } as ShutdownContext);
  }
}

const says = (json: string): string => `echo '${json}'`;
const fails = (words: string): string => `echo 'Call failed: ${words}' >&2; exit 1`;
const LOCKS = (...rows: string[]): string => says(`{"type":"a(ssssuu)","data":[[${rows.join()}]]}`);
const LOCK = '["shutdown:sleep","apt","upgrading","block",0,7]';
const WALL = 'SetWallMessage|sb|edge-health: MANUAL, requested by Zoë, request 01J|true|';

t.test('each response of logind for an action, with the remedy', async (t) => {
  const answers: readonly [string, RegExp | null][] = [
    [says('{"type":"s","data":["yes"]}'), null],
    [says('{"type":"s","data":["inhibited"]}'), null],
    [says('{"type":"s","data":["na"]}'), /which this machine cannot do; choose another/],
    [says('{"type":"s","data":["challenge"]}'), /which polkit does not allow the user \S+; install polkitd .* and the rules/],
    [says('{"type":"s","data":["no"]}'), /polkit does not allow/],
    [fails('The name org.freedesktop.login1 was not provided'), /needs systemd-logind on the system's D-Bus \(.*not provided\); install/],
    ['echo nonsense', /returned "undefined"/],
    [says('{"type":"s","data":["maybe"]}'), /for which systemd-logind returned "maybe"; set it to dry-run/],
  ];
  for (const [script, expected] of answers) {
    const refusal = await new Bus(t, { CanReboot: script }).logind.refusal('reboot');
    if (expected === null) t.equal(refusal, null);
    else t.match(refusal, expected);
  }
  const bus = new Bus(t, { CanPowerOff: says('{"type":"s","data":["yes"]}'), CanHalt: says('{"type":"s","data":["na"]}') });
  t.equal(await bus.logind.refusal('poweroff'), null);
  t.match(await bus.logind.refusal('halt'), /cannot do/);
  t.equal(await bus.logind.refusal('dry-run'), null);
  t.equal(bus.calls().length, 2, 'a dry run causes no query');
});

t.test('without systemd the action is refused with the reason', async (t) => {
  const environment = { PATH: '/nowhere' };
  const logind = new Logind({ environment, log: () => undefined, monotonicSeconds: () => 0, helperSocket: null });
  t.match(await logind.refusal('poweroff'), /busctl is not installed.*install systemd, dbus and polkitd, or set it to dry-run/);
});

t.test('logind is queried seldom and once at a time, and no caller waits for a slow response', async (t) => {
  const yes = says('{"type":"s","data":["yes"]}');
  const bus = new Bus(t, { CanPowerOff: yes });
  for (let n = 0; n < 5; n += 1) await bus.logind.refusal('poweroff');
  t.equal(bus.calls().length, 1);
  bus.answer({ CanPowerOff: says('{"type":"s","data":["no"]}') });
  bus.seconds = 59;
  t.equal(await bus.logind.refusal('poweroff'), null);
  bus.seconds = 61;
  t.match(await Promise.all([bus.logind.refusal('poweroff'), bus.logind.refusal('poweroff')]), [/polkit/, /polkit/]);
  t.equal(bus.calls().length, 2);
  bus.answer({ CanPowerOff: bus.waiting(yes) });
  bus.seconds = 67;
  bus.timeouts.querySeconds = 0.05;
  t.match(await bus.logind.refusal('poweroff'), /polkit/, 'what was known before');
  bus.proceed();
  await bus.logind.prepare('poweroff');
  t.equal(await bus.logind.refusal('poweroff'), null);
  t.equal(bus.calls().length, 3, 'the slow answer was not asked for twice');
  const slow = new Bus(t);
  slow.answer({ CanPowerOff: slow.waiting(yes) });
  slow.timeouts.querySeconds = 0.05;
  t.match(await slow.logind.refusal('poweroff'), /has not responded yet/);
  slow.proceed();
  await slow.logind.prepare('poweroff');
  t.equal(await slow.logind.refusal('poweroff'), null);
});

t.test('locks are listed if the reason respects them, otherwise they are not even queried', async (t) => {
  const bus = new Bus(t, { ListInhibitors: LOCKS(LOCK, '["shutdown","NetworkManager","x","delay",5,8]') });
  t.match(await bus.logind.inhibition('poweroff', 'MAINTENANCE'), /^inhibited by apt \(pid 7, user root\): upgrading; try/);
  for (const reason of ['OVERTEMP', 'EMERGENCY', 'CRITICAL_ALERT', 'POWER_LOW'] as const) {
    t.equal(await bus.logind.inhibition('poweroff', reason), null);
  }
  t.equal(await bus.logind.inhibition('dry-run', 'MANUAL'), null);
  t.equal(bus.calls().length, 1);
  t.equal(await new Bus(t).logind.inhibition('poweroff', 'MANUAL'), null);
  for (const script of [fails('no'), 'echo {}']) {
    const unknown = await new Bus(t, { ListInhibitors: script }).logind.inhibition('poweroff', 'MANUAL');
    t.match(unknown, /did not report its shutdown locks/, 'unknown is not none');
  }
  const slow = new Bus(t);
  slow.answer({ ListInhibitors: slow.waiting(LOCKS()) });
  slow.timeouts.querySeconds = 0.05;
  t.match(await slow.logind.inhibition('poweroff', 'MANUAL'), /did not report its shutdown locks; try again/);
  slow.proceed();
});

t.test('the last step checks the locks again, sends a message to logged-in users and overrides no lock', async (t) => {
  for (const [action, method] of [
    ['poweroff', 'PowerOff'],
    ['reboot', 'Reboot'],
    ['halt', 'Halt'],
  ] as const) {
    const bus = new Bus(t);
    await bus.perform('MANUAL', action);
    t.same(bus.calls(), ['ListInhibitors|', WALL, `${method}|b|false|`]);
  }
  const locked = new Bus(t, { ListInhibitors: LOCKS(LOCK) });
  await t.rejects(locked.perform('MANUAL'), /^inhibited by apt/);
  t.same(locked.calls(), ['ListInhibitors|']);
});

t.test('in an emergency locks are overridden: with the flag, without it for an old systemd, and through the helper', async (t) => {
  const wall = WALL.replace('MANUAL', 'OVERTEMP');
  const flag = 'PowerOffWithFlags|t|16|';
  const newer = new Bus(t, { ListInhibitors: LOCKS(LOCK) });
  await newer.perform('OVERTEMP');
  t.same(newer.calls(), [wall, flag]);
  const older = new Bus(t, { PowerOffWithFlags: fails('Invalid flags parameter') });
  await older.perform('OVERTEMP');
  t.same(older.calls(), [wall, flag, 'PowerOff|b|false|']);

  const asked: string[] = [];
  const helperSocket = join(older.folder, 'helper.sock');
  const helper = createServer((connection) => {
    connection.once('data', (text) => {
      asked.push(text.toString());
      connection.end('ok\n');
    });
  }).listen(helperSocket);
  t.teardown(() => helper.close());
  const stale = { PowerOff: fails('Stale file handle'), 'get-property': says('{"type":"b","data":false}') };
  await new Bus(t, stale, { helperSocket }).perform('OVERTEMP');
  t.same(asked, ['poweroff\n']);
  await t.rejects(new Bus(t, stale, { helperSocket }).perform('MANUAL'), /Stale/);
  t.equal(asked.length, 1, 'for that root is not asked');
});

t.test('a refusal of logind is an error with its text, unless the machine is going down anyway', async (t) => {
  const refused = { PowerOff: fails('Access denied') };
  const up = new Bus(t, { ...refused, 'get-property': says('{"type":"b","data":false}') });
  await t.rejects(up.perform('EMERGENCY'), /^systemd-logind: Call failed: Access denied$/);
  t.equal(await up.logind.isGoingDown(), false);
  const down = new Bus(t, { ...refused, 'get-property': says('{"type":"b","data":true}') });
  await down.perform('EMERGENCY');
  t.equal(await down.logind.isGoingDown(), true);
  const unknown = new Bus(t, { ...refused, 'get-property': fails('no bus') });
  await t.rejects(unknown.perform('EMERGENCY'), /Access denied/);
  t.equal(await unknown.logind.isGoingDown(), null);
});

t.test('a failure to send the message does not delay the shutdown', async (t) => {
  const bus = new Bus(t, { SetWallMessage: fails('Access denied') });
  await bus.perform('MANUAL');
  t.match(bus.logged, [/not sent to logged-in users/]);
  t.equal(bus.calls().at(-1), 'PowerOff|b|false|');
});

t.test('busctl survives the SIGTERM caused by its own request, but not its timeout', async (t) => {
  const bus = new Bus(t, { Slow: 'kill -TERM $$; echo survived', Hangs: 'exec sleep 3000' });
  const environment = { PATH: `${bus.folder}:${process.env['PATH']}` };
  t.same(await busctl(['Slow'], 120, environment), { ok: true, text: 'survived\n' });
  t.same(await busctl(['Hangs'], 0.01, environment), { ok: false, problem: 'no response within 0.01 s' });
});
