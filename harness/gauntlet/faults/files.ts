import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { type Arena, pause } from '../arena.ts';
import type { BootWish, Fault } from '../fault.ts';
import { DATABASE, mustBeRestarted, mustGoOn, runOf, saidSince, TAIL } from './tools.ts';

// Permissions and files beside the database. What is laid on lasts a while, and recovery counts from its lifting.

const GROUP = 'database';
const boot: BootWish = { disk: { path: STATE, megabytes: 200 } };
const LASTS_SECONDS = 15;
/** While the store fails it tries again every 10 s. */
const RETRY_SECONDS = 15;

/** That the service says what is wrong with its store, and publishes on. */
async function mustSaySo(arena: Arena, words: RegExp): Promise<void> {
  await arena.mustBe('/status says that the store is degraded, and why', async () => {
    const { storage } = await arena.machine.untilJson<StatusDocument>('/status', (status) => status.storage.state === 'degraded', 30);
    if (!words.test(storage.error ?? '')) throw new Error(storage.error ?? 'no error');
    return true;
  });
  const heard = arena.stream.statuses.length;
  await pause(2);
  arena.must('statuses are published all the same', arena.stream.statuses.length > heard + arena.hertz);
}

export const databaseReadOnly: Fault = {
  name: 'database-read-only',
  group: GROUP,
  core: false,
  boot,
  expected: 'made immutable under it: it says so and goes on, samples and alerts wait in memory; lifted, all is written',
  async run(arena) {
    const before = await runOf(arena);
    await arena.commit();
    const change = (how: '+i' | '-i'): void => {
      for (const file of [DATABASE, `${DATABASE}-wal`]) {
        if (existsSync(arena.outside(file))) execFileSync('chattr', [how, arena.outside(file)]);
      }
    };
    arena.afterwards(() => change('-i'));
    change('+i');
    await mustSaySo(arena, /not permitted|I\/O|readonly|read-only/i);
    await pause(LASTS_SECONDS);
    await mustGoOn(arena, before);
    const liftedMs = await arena.strike(() => change('-i'));
    const recoverySeconds = await arena.recovered(liftedMs, RETRY_SECONDS);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'written nothing for a while, and said so; lifted, everything was written', recoverySeconds });
  },
};

export const databaseReadOnlyAtStart: Fault = {
  name: 'database-read-only-at-start',
  group: GROUP,
  core: false,
  boot,
  expected: 'started with a database that it may only read: it serves, says so, and everything waits; lifted, all is written',
  async run(arena) {
    const { machine } = arena;
    await machine.sh(`chown root: ${DATABASE}; chmod 444 ${DATABASE}`);
    arena.afterwards(() => machine.run(['chown', 'edge-health:', DATABASE]));
    await arena.appliance.signal('KILL');
    await mustSaySo(arena, /readonly|read-only|permission/i);
    const before = await runOf(arena);
    await pause(5);
    const liftedMs = await arena.strike(() => machine.sh(`chown edge-health: ${DATABASE}; chmod 640 ${DATABASE}`));
    const recoverySeconds = await arena.recovered(liftedMs, RETRY_SECONDS);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'started all the same, and said so; lifted, everything was written', recoverySeconds });
  },
};

export const folderForbidden: Fault = {
  name: 'state-folder-forbidden',
  group: GROUP,
  core: false,
  boot,
  expected: 'its folder taken from it (chmod 000, of root): it says so and goes on; given back, all is written',
  async run(arena) {
    const { machine } = arena;
    const before = await runOf(arena);
    await arena.commit();
    const lift = `chown edge-health: ${STATE}; chmod 750 ${STATE}`;
    arena.afterwards(() => machine.sh(lift));
    await machine.sh(`chown root: ${STATE}; chmod 000 ${STATE}`);
    // Somebody who wants a copy has it look.
    const refused = await machine.http('/snapshot');
    arena.must('a copy is refused, with a reason', refused.status === 503, refused.status);
    await mustSaySo(arena, /permission|EACCES/i);
    await pause(LASTS_SECONDS);
    const liftedMs = await arena.strike(() => machine.sh(lift));
    const recoverySeconds = await arena.recovered(liftedMs, RETRY_SECONDS);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'written nothing for a while, and said so; given back, everything was written', recoverySeconds });
  },
};

export const folderForbiddenAtStart: Fault = {
  name: 'state-folder-forbidden-at-start',
  group: GROUP,
  core: false,
  boot,
  expected: 'killed while its folder is taken from it: systemd gives the folder back and starts it with everything it had',
  async run(arena) {
    const { machine } = arena;
    const before = await runOf(arena);
    arena.afterwards(() => machine.sh(`chown edge-health: ${STATE}; chmod 750 ${STATE}`));
    await machine.sh(`chown root: ${STATE}; chmod 000 ${STATE}`);
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    const recoverySeconds = await arena.recovered(struckMs, 30);
    await mustBeRestarted(arena, before);
    return arena.finish({ observed: 'killed; systemd made the folder its own again and started it', recoverySeconds });
  },
};

export const logDeleted: Fault = {
  name: 'database-log-deleted',
  group: GROUP,
  core: false,
  boot,
  expected: "the database's log deleted alone, then SIGKILL: nothing that was stored or published is lost",
  async run(arena) {
    const before = await runOf(arena);
    await arena.commit();
    await arena.machine.sh(`rm ${DATABASE}-wal`);
    // The next alert, at the latest the next minute, notices.
    await arena.mustBe('the log is there again', async () => {
      await arena.machine.until(() => existsSync(arena.outside(`${DATABASE}-wal`)), 75);
      return true;
    });
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    const recoverySeconds = await arena.recovered(struckMs, 10);
    await mustBeRestarted(arena, before);
    const { set_aside: aside } = (await arena.appliance.status()).storage;
    arena.must('no database was set aside', aside.length === 0, aside);
    return arena.finish({ observed: 'noticed; what it held was brought into the database before the kill', recoverySeconds });
  },
};

export const tailDeleted: Fault = {
  name: 'tail-deleted',
  group: GROUP,
  core: false,
  boot,
  expected: 'the folder of the last minute deleted, a little later SIGKILL: what was published after that is not lost',
  async run(arena) {
    const before = await runOf(arena);
    await arena.commit();
    const deletedMs = await arena.strike(() => arena.machine.sh(`rm -r ${TAIL}`));
    await pause(6);
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    const recoverySeconds = await arena.recovered(struckMs, 10);
    await mustBeRestarted(arena, before);
    return arena.finish({
      observed: 'the tail was begun anew; after the kill it had what came since',
      recoverySeconds,
      goneBeforeMs: deletedMs,
    });
  },
};

export const tailForbidden: Fault = {
  name: 'tail-forbidden',
  group: GROUP,
  core: false,
  boot,
  expected:
    'the folder of the last minute taken from it (chmod 000, of root), then SIGKILL: it starts all the same; given back, nothing is lost',
  async run(arena) {
    const { machine } = arena;
    const before = await runOf(arena);
    const lift = `chown -R edge-health: ${TAIL}; chmod 700 ${TAIL}`;
    arena.afterwards(() => machine.run(['sh', '-c', lift]));
    await arena.commit();
    await machine.sh(`chown root: ${TAIL}; chmod 000 ${TAIL}`);
    await pause(2);
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    const recoverySeconds = await arena.recovered(struckMs, 15);
    await mustBeRestarted(arena, before);
    arena.must('the journal says that it cannot be read', /cannot read what an earlier run left/.test(await saidSince(arena, struckMs)));
    await machine.sh(lift);
    // What could not be read is there for the next start.
    await machine.systemctl('restart', UNIT);
    await arena.recovered(Date.now(), 15);
    return arena.finish({
      observed: 'started all the same, and said so; given back, the next start brought in what it held',
      recoverySeconds,
    });
  },
};
