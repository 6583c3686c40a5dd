/** Faults of the database file: it is removed, damaged, or replaced by something else while the service has it open. */
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { UNIT } from '../../testkit/container/appliance.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Teardowns } from '../../testkit/teardown.ts';
import { DATABASE, type FaultBench, type Figures, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('database');

/** A disk of its own: changes of the file from outside bypass the overlay otherwise. */
const boot = { disk: { path: '/var/lib/edge-health', megabytes: 200 } } as const;

/** Something done to the database's file. */
interface Damage {
  readonly observed: string;
  readonly inject: (bench: FaultBench) => unknown;
  /** Whether only the next start, which reads the whole file, may detect it: what is written until then is lost with it. */
  readonly noticedAtStart?: boolean;
}

/** More than a minute passes until the service writes by itself; an alert, or a request for a copy, makes it access the file sooner. */
const NOTICED_TARGET_SECONDS = 75;

/** Checks that the service continues with an intact database that has everything since. */
async function damaged(bench: FaultBench, { observed, inject, noticedAtStart = false }: Damage): Promise<Figures> {
  const before = await bench.serviceProcess();
  const flushedMs = await bench.flush();
  await pause(2);
  const injectedMs = await bench.inject(() => inject(bench));
  const file = bench.hostPath(DATABASE);
  // A request for a copy makes the service write what it has recorded.
  const isIntact = async (): Promise<boolean> =>
    existsSync(file) && statSync(file).isFile() && (await bench.databaseIsIntact().catch(() => false));
  await bench.checkEventually('a whole database is in its place', isIntact);
  const intactMs = Date.now();
  const recoverySeconds = (intactMs - injectedMs) / 1000;
  const target = `a whole database is in its place within ${NOTICED_TARGET_SECONDS} s`;
  bench.target(target, recoverySeconds <= NOTICED_TARGET_SECONDS, `${recoverySeconds.toFixed(1)} s`);
  await bench.recovered(Date.now(), 30);
  await bench.checkSameProcess(before);
  const noticed = (await bench.appliance.status()).storage;
  bench.check('the service lost no sample', noticed.samples_lost === 0, noticed.samples_lost);
  // A start reads what is on the disk, not what is in memory.
  const restartedMs = await bench.inject(() => bench.machine.systemctl('restart', UNIT));
  await bench.recovered(restartedMs, 15);
  const after = (await bench.appliance.status()).storage;
  const isReported = noticed.quarantined.length > 0;
  if (!noticedAtStart) bench.check('/status has reported it', isReported);
  if (isReported) return bench.finish({ observed, recoverySeconds, removedBeforeMs: noticedAtStart ? intactMs : flushedMs });
  if (after.quarantined.length > 0) return bench.finish({ observed, recoverySeconds, removedBeforeMs: restartedMs });
  // Nothing may be missing that was not reported.
  return bench.finish({ observed: 'nothing was lost, and nothing had to be quarantined', recoverySeconds });
}

function databaseFault(name: string, core: boolean, expected: string, damage: Damage): void {
  fault(name, { core, expected, boot }, (bench) => damaged(bench, damage));
}

const CONTINUES = 'measuring, serving and alerting continue; a new database has everything since';
const QUARANTINED = `${CONTINUES}, the old one is quarantined`;

/** Overwrites a part of a file with random bytes, in place. */
function scribble(file: string, from: number): void {
  const bytes = statSync(file).size - from;
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, randomBytes(bytes), 0, bytes, from);
  closeSync(descriptor);
}

databaseFault('database-deleted', true, CONTINUES, {
  observed: 'deleted with its side files; a new one was created',
  inject: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*`),
});

databaseFault('database-file-deleted', false, CONTINUES, {
  observed: 'the main file deleted, its log left; a new one was created',
  inject: ({ machine }) => machine.sh(`rm ${DATABASE}`),
});

databaseFault('database-truncated', true, QUARANTINED, {
  observed: 'truncated to nothing; quarantined, a new one was created',
  inject: (bench) => truncateSync(bench.hostPath(DATABASE), 0),
});

databaseFault('database-halved', false, QUARANTINED, {
  // As long as the log has the pages of the other half, SQLite finds no error.
  observed: 'truncated to half its length; noticed by the next start at the latest, quarantined, a new one created',
  noticedAtStart: true,
  inject: (bench) => truncateSync(bench.hostPath(DATABASE), statSync(bench.hostPath(DATABASE)).size / 2),
});

databaseFault('database-garbage', false, QUARANTINED, {
  observed: 'overwritten with random bytes; quarantined, a new one was created',
  inject: (bench) => scribble(bench.hostPath(DATABASE), 0),
});

databaseFault('database-garbage-inside', false, QUARANTINED, {
  observed: 'all but its first page overwritten with random bytes; noticed by the next start at the latest, quarantined, a new one created',
  noticedAtStart: true,
  inject: (bench) => scribble(bench.hostPath(DATABASE), 2048),
});

databaseFault('database-log-garbage', false, QUARANTINED, {
  observed: 'its log overwritten with random bytes; noticed by the next start at the latest, quarantined, a new one created',
  noticedAtStart: true,
  inject: (bench) => scribble(bench.hostPath(`${DATABASE}-wal`), 0),
});

databaseFault('database-a-folder', false, QUARANTINED, {
  observed: 'replaced by a folder with files in it; that was quarantined, a new one was created',
  inject: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*; mkdir ${DATABASE}; touch ${DATABASE}/file`),
});

databaseFault('database-a-pipe', false, QUARANTINED, {
  observed: 'replaced by a named pipe; that was quarantined, a new one was created',
  inject: ({ machine }) => machine.sh(`rm -rf ${DATABASE}*; mkfifo ${DATABASE}; chmod 666 ${DATABASE}`),
});

databaseFault('database-of-other-program', false, QUARANTINED, {
  observed: "replaced by another program's database; that was quarantined, a new one was created",
  inject: async ({ machine }) => {
    const teardowns = new Teardowns();
    try {
      const file = join(temporaryFolder(teardowns), 'other-program.db');
      const db = new DatabaseSync(file);
      db.exec('CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES (1)');
      db.close();
      await machine.sh(`rm -rf ${DATABASE}*`);
      await machine.copyIn(file, DATABASE);
      await machine.sh(`chown edge-health: ${DATABASE}`);
    } finally {
      await teardowns.run();
    }
  },
});
