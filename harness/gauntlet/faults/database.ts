import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, statSync, truncateSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { UNIT } from '../../../testkit/container/appliance.ts';
import { temporaryFolder } from '../../../testkit/service.ts';
import { type Arena, pause } from '../arena.ts';
import type { BootWish, Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { DATABASE, mustGoOn, runOf } from './tools.ts';

const GROUP = 'database';
/** A disk of its own: what is done to a file goes around no overlay. */
const boot: BootWish = { disk: { path: '/var/lib/edge-health', megabytes: 200 } };

/** Something done to the database's file while the service has it open. */
interface Harm {
  readonly observed: string;
  readonly strike: (arena: Arena) => unknown;
  /** Whether nobody need notice before the next start reads it all: what is written until then goes with it. */
  readonly metAtStart?: boolean;
}

/** Longer than a minute passes until the service writes by itself; an alert, or somebody who wants a copy, has it look sooner. */
const NOTICED_WITHIN_SECONDS = 75;

/** Harms the file, and proves that the service goes on, on a database that is whole, which has everything since. */
async function harmed(arena: Arena, { observed, strike, metAtStart = false }: Harm): Promise<Figures> {
  const before = await runOf(arena);
  const committedMs = await arena.commit();
  await pause(2);
  const struckMs = await arena.strike(() => strike(arena));
  const file = arena.outside(DATABASE);
  const intact = async (): Promise<boolean> => {
    if (!existsSync(file) || !statSync(file).isFile()) return false;
    // Whoever wants a copy has what is recorded written first.
    return arena.isWhole().catch(() => false);
  };
  const what = `a whole database is there within ${NOTICED_WITHIN_SECONDS} s`;
  await arena.mustBe(what, async () => {
    await arena.machine.until(intact, NOTICED_WITHIN_SECONDS);
    return true;
  });
  const recoverySeconds = (Date.now() - struckMs) / 1000;
  await arena.recovered(Date.now(), 30);
  await mustGoOn(arena, before);
  const noticed = (await arena.appliance.status()).storage;
  arena.must('the service gave up no sample', noticed.samples_lost === 0, noticed.samples_lost);
  // A start reads what is there now, not what is remembered.
  const restartedMs = await arena.strike(() => arena.machine.systemctl('restart', UNIT));
  await arena.recovered(restartedMs, 15);
  const after = (await arena.appliance.status()).storage;
  arena.must('/status told of it', noticed.set_aside.length > 0 || (metAtStart && after.set_aside.length > 0));
  return arena.finish({ observed, recoverySeconds, goneBeforeMs: metAtStart ? restartedMs : committedMs });
}

function fault(name: string, core: boolean, expected: string, harm: Harm): Fault {
  return { name, group: GROUP, core, expected, boot, run: (arena) => harmed(arena, harm) };
}

const GOES_ON = 'measuring, serving and alerting go on; a new database has everything since';
const BESIDE = `${GOES_ON}, the old one lies beside it`;

export const databaseDeleted = fault('database-deleted', true, GOES_ON, {
  observed: 'deleted with its side files; a new one was begun',
  strike: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*`),
});

export const databaseFileDeleted = fault('database-file-deleted', false, GOES_ON, {
  observed: 'the main file deleted, its log left; a new one was begun',
  strike: ({ machine }) => machine.sh(`rm ${DATABASE}`),
});

export const databaseEmptied = fault('database-truncated', true, BESIDE, {
  observed: 'cut to nothing; set aside, a new one was begun',
  strike: (arena) => truncateSync(arena.outside(DATABASE), 0),
});

export const databaseHalved = fault('database-halved', false, BESIDE, {
  observed: 'cut to half its length; set aside, a new one was begun',
  strike: (arena) => truncateSync(arena.outside(DATABASE), statSync(arena.outside(DATABASE)).size / 2),
});

/** Writes random bytes over a part of a file, in place. */
function scribble(file: string, from: number, bytes: number): void {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, randomBytes(bytes), 0, bytes, from);
  closeSync(descriptor);
}

export const databaseGarbage = fault('database-garbage', false, BESIDE, {
  observed: 'overwritten with random bytes; set aside, a new one was begun',
  strike: (arena) => scribble(arena.outside(DATABASE), 0, statSync(arena.outside(DATABASE)).size),
});

export const databaseGarbageInside = fault('database-garbage-inside', false, BESIDE, {
  observed: 'everything but its first page overwritten with random bytes; met at the next start at the latest, set aside, a new one begun',
  metAtStart: true,
  strike: (arena) => scribble(arena.outside(DATABASE), 2048, statSync(arena.outside(DATABASE)).size - 2048),
});

export const logGarbage = fault('database-log-garbage', false, BESIDE, {
  observed: 'its log overwritten with random bytes; met at the next start at the latest, set aside, a new one begun',
  metAtStart: true,
  strike: (arena) => scribble(arena.outside(`${DATABASE}-wal`), 0, statSync(arena.outside(`${DATABASE}-wal`)).size),
});

export const databaseFolder = fault('database-a-folder', false, BESIDE, {
  observed: 'replaced by a folder with files in it; that was set aside, a new one was begun',
  strike: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*; mkdir ${DATABASE}; touch ${DATABASE}/file`),
});

export const databasePipe = fault('database-a-pipe', false, BESIDE, {
  observed: 'replaced by a named pipe; that was set aside, a new one was begun',
  strike: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*; mkfifo ${DATABASE}; chmod 666 ${DATABASE}`),
});

export const databaseForeign = fault('database-foreign', false, BESIDE, {
  observed: "replaced by another program's database; that was set aside, a new one was begun",
  strike: async ({ machine }) => {
    const folder = temporaryFolder();
    try {
      const file = `${folder.path}/foreign.db`;
      const db = new DatabaseSync(file);
      db.exec('CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES (1)');
      db.close();
      await machine.sh(`rm -rf ${DATABASE}*`);
      await machine.copyIn(file, DATABASE);
      await machine.sh(`chown edge-health: ${DATABASE}`);
    } finally {
      folder.remove();
    }
  },
});
