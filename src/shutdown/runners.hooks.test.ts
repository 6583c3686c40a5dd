import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { ShutdownContext, StepItem } from '../core/shutdown/shutdown.ts';
import { hookEnvironment, hookItems, unsafe } from './runners.ts';

const CONTEXT: ShutdownContext = {
  requestId: '01J',
  reason: 'MAINTENANCE',
  requestedBy: 'operator; $(touch /tmp/x)',
  action: 'dry-run',
  secondsLeft: () => 12.9,
};

class Hooks {
  readonly folder: string;
  readonly logged: string[] = [];

  constructor(t: Test) {
    this.folder = temporaryFolder(t);
  }

  add(name: string, script = 'exit 0', mode = 0o755): this {
    const path = join(this.folder, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, mode);
    return this;
  }

  items(required = true, folder = this.folder): Promise<StepItem[]> {
    const log = (_level: string, message: string, fields: object = {}): void => {
      this.logged.push(`${message} ${JSON.stringify(fields)}`);
    };
    const environment = {
      PATH: process.env['PATH'],
      ROS_DOMAIN_ID: '7',
      NOTIFY_SOCKET: '/x',
      EDGE_HEALTH_CONFIG: 'y',
    };
    return hookItems({ folder, required, environment, log, uid: process.geteuid?.() ?? 0 });
  }

  /** Runs all hooks; returns the outcome of each. */
  async outcomes(): Promise<Record<string, string | null>> {
    const outcomes: Record<string, string | null> = {};
    for (const item of await this.items()) outcomes[item.name] = await item.start(CONTEXT).ended;
    return outcomes;
  }
}

t.test('executables are run in the order of their names; other files are skipped', async (t) => {
  const hooks = new Hooks(t);
  for (const name of ['20-b', '10-a.sh', '9-z', 'Z', 'a_b']) hooks.add(name);
  for (const name of ['.hidden', '10-a~', '#10-a#', 'x.bak', 'x.dpkg-old', 'x.dpkg-dist', 'x.swp', 'x.orig', 'x.rpmsave', 'x.disabled']) {
    hooks.add(name, 'exit 9');
  }
  hooks.add('README', 'exit 9', 0o644).add('notes.txt', 'exit 9', 0o644);
  mkdirSync(join(hooks.folder, '50-folder'));
  t.same(Object.keys(await hooks.outcomes()), ['10-a.sh', '20-b', '9-z', 'Z', 'a_b']);
  t.match(hooks.logged.join('\n'), /shutdown hook skipped.*notes\.txt/);
  t.notMatch(hooks.logged.join('\n'), /README/);
});

t.test('a hook gets the shutdown in its environment, and its output is logged', async (t) => {
  const hooks = new Hooks(t).add('10-tell', 'env | grep -E "^(EDGE_|ROS_|NOTIFY_)"; echo "by $EDGE_HEALTH_SHUTDOWN_REQUESTED_BY"');
  t.same(await hooks.outcomes(), { '10-tell': null });
  const log = hooks.logged.join('\n');
  for (const [name, value] of Object.entries({
    REASON: 'MAINTENANCE',
    SECONDS_LEFT: '12',
    ACTION: 'dry-run',
    REQUEST_ID: '01J',
  })) {
    t.match(log, `{"hook":"10-tell","output":"EDGE_HEALTH_SHUTDOWN_${name}=${value}"}`);
  }
  t.match(log, '"by operator; $(touch /tmp/x)"', 'nothing of it is run');
  t.match(log, 'ROS_DOMAIN_ID=7');
  t.notMatch(log, /NOTIFY_SOCKET|EDGE_HEALTH_CONFIG/, 'what is the service’s alone stays with it');
});

t.test('private variables of the service are not passed on, by their names', async (t) => {
  const environment = {
    NODE_PATH: 'a',
    NODE_OPTIONS: 'a',
    WATCHDOG_USEC: 'b',
    LISTEN_FDS: 'c',
    NODENAME: 'd',
    EDGE_HEALTH_SHUTDOWN_REASON: 'forged',
  };
  const made = hookEnvironment(environment, CONTEXT);
  t.same(
    Object.keys(made).filter((name) => !name.startsWith('EDGE_HEALTH_SHUTDOWN_')),
    ['NODENAME'],
  );
  t.equal(made['EDGE_HEALTH_SHUTDOWN_REASON'], 'MAINTENANCE');
});

t.test('a hook that other users may write to is not run and counts as failed', async (t) => {
  const hooks = new Hooks(t).add('10-open', 'exit 0', 0o757).add('20-well');
  const outcomes = await hooks.outcomes();
  t.match(outcomes['10-open'], /not run: others may write .*10-open; chmod/);
  t.equal(outcomes['20-well'], null);
});

t.test('a hook in a folder that other users may write to is not run', async (t) => {
  const hooks = new Hooks(t).add('10-well');
  chmodSync(hooks.folder, 0o777);
  t.match((await hooks.outcomes())['10-well'], /not run: others may write .*edge-health-test-/);
});

t.test('a link is checked by its target', async (t) => {
  const other = new Hooks(t).add('real', 'exit 5').add('open', 'exit 0', 0o777);
  const hooks = new Hooks(t);
  symlinkSync(join(other.folder, 'real'), join(hooks.folder, '10-link'));
  symlinkSync(join(other.folder, 'open'), join(hooks.folder, '20-open'));
  symlinkSync(join(other.folder, 'gone'), join(hooks.folder, '30-broken'));
  const outcomes = await hooks.outcomes();
  t.equal(outcomes['10-link'], 'exit code 5');
  t.match(outcomes['20-open'], /others may write/);
  t.match(outcomes['30-broken'], /cannot be run: ENOENT/);
  chmodSync(other.folder, 0o777);
  t.match((await hooks.outcomes())['10-link'], /others may write/, 'and by the folder of that');
});

t.test('root trusts only files of root; other users trust files of root and their own', async (t) => {
  t.equal(unsafe('/f', { mode: 0o100755, uid: 0 }, 0), null);
  t.match(unsafe('/f', { mode: 0o100775, uid: 0 }, 0), /chmod go-w/);
  t.match(unsafe('/f', { mode: 0o100755, uid: 1000 }, 0), /belongs to user 1000/);
  t.equal(unsafe('/f', { mode: 0o100775, uid: 1000 }, 1000), null);
  t.equal(unsafe('/f', { mode: 0o100755, uid: 0 }, 1000), null);
  t.match(unsafe('/f', { mode: 0o100757, uid: 1000 }, 1000), /chmod o-w/);
  t.match(unsafe('/f', { mode: 0o100755, uid: 1001 }, 1000), /belongs to user 1001/);
});

t.test('without a folder there are no hooks; a configured folder must exist', async (t) => {
  const hooks = new Hooks(t);
  t.same(await hooks.items(false, '/no/such/folder'), []);
  await t.rejects(hooks.items(true, '/no/such/folder'), /safe_shutdown\.hooks_path \/no\/such\/folder cannot be read: ENOENT/);
  await t.rejects(hooks.items(false, '/proc/self/status'), /ENOTDIR/);
});
