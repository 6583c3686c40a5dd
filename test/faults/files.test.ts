/** Faults of permissions, and of the files beside the database. They last a while, and recovery counts from their end. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { STATE, UNIT } from '../../testkit/container/appliance.ts';
import { DATABASE, type FaultBench, pause, SPOOL } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('files');

const boot = { disk: { path: STATE, megabytes: 200 } } as const;
const DURATION_SECONDS = 15;
/** While the store fails it retries every 10 s. */
const RETRY_SECONDS = 15;

/** Checks that the service reports what is wrong with its store, and continues to publish. */
async function checkDegraded(bench: FaultBench, reason: RegExp): Promise<void> {
  await bench.checkAsync('/status reports a degraded store, with the reason', async () => {
    const { storage } = await bench.machine.untilJson<StatusDocument>('/status', (status) => status.storage.state === 'degraded', 120);
    if (!reason.test(storage.error ?? '')) throw new Error(storage.error ?? 'no error');
    return true;
  });
  await bench.checkPublishing(2);
}

fault(
  'database-read-only',
  { boot, expected: 'made immutable: it is reported, samples and alerts wait in memory; undone, everything is written' },
  async (bench) => {
    const before = await bench.serviceProcess();
    await bench.flush();
    const change = (how: '+i' | '-i'): void => {
      for (const file of [DATABASE, `${DATABASE}-wal`]) {
        if (existsSync(bench.hostPath(file))) execFileSync('chattr', [how, bench.hostPath(file)]);
      }
    };
    bench.teardown(() => change('-i'));
    change('+i');
    await checkDegraded(bench, /not permitted|I\/O|readonly|read-only/i);
    await pause(DURATION_SECONDS);
    await bench.checkSameProcess(before);
    const recoverySeconds = await bench.recoverAfter(() => change('-i'), RETRY_SECONDS);
    await bench.checkSameProcess(before);
    return bench.finish({
      observed: 'nothing was written for a while, which was reported; undone, everything was written',
      recoverySeconds,
    });
  },
);

fault(
  'database-read-only-at-start',
  { boot, expected: 'started with a database that it may only read: it serves, reports it, and all waits; undone, everything is written' },
  async (bench) => {
    const { machine } = bench;
    await machine.sh(`chown root: ${DATABASE}; chmod 444 ${DATABASE}`);
    bench.teardown(() => machine.run(['chown', 'edge-health:', DATABASE]));
    await bench.appliance.signal('KILL');
    await checkDegraded(bench, /readonly|read-only|permission/i);
    const before = await bench.serviceProcess();
    await pause(5);
    const recoverySeconds = await bench.recoverAfter(
      () => machine.sh(`chown edge-health: ${DATABASE}; chmod 640 ${DATABASE}`),
      RETRY_SECONDS,
    );
    await bench.checkSameProcess(before);
    return bench.finish({ observed: 'started all the same, and reported it; undone, everything was written', recoverySeconds });
  },
);

const FORBID_STATE = `chown root: ${STATE}; chmod 000 ${STATE}`;
const ALLOW_STATE = `chown edge-health: ${STATE}; chmod 750 ${STATE}`;

fault(
  'state-folder-forbidden',
  { boot, expected: 'its folder made inaccessible (chmod 000, of root): it is reported, and all continues; undone, everything is written' },
  async (bench) => {
    const { machine } = bench;
    const before = await bench.serviceProcess();
    await bench.flush();
    bench.teardown(() => machine.sh(ALLOW_STATE));
    await machine.sh(FORBID_STATE);
    // A request for a copy makes the service check its store.
    const refused = await machine.snapshot();
    bench.check('a copy is refused, with a reason', refused.status === 503, refused.status);
    await checkDegraded(bench, /permission|EACCES/i);
    await pause(DURATION_SECONDS);
    const recoverySeconds = await bench.recoverAfter(() => machine.sh(ALLOW_STATE), RETRY_SECONDS);
    await bench.checkSameProcess(before);
    return bench.finish({
      observed: 'nothing was written for a while, which was reported; undone, everything was written',
      recoverySeconds,
    });
  },
);

fault(
  'state-folder-forbidden-at-start',
  { boot, expected: 'killed while its folder is inaccessible: systemd gives the folder back and starts it with all its data' },
  async (bench) => {
    const { machine } = bench;
    const before = await bench.serviceProcess();
    bench.teardown(() => machine.sh(ALLOW_STATE));
    await machine.sh(FORBID_STATE);
    const recoverySeconds = await bench.recoverAfter(() => bench.appliance.signal('KILL'), 30);
    await bench.checkRestarted(before);
    return bench.finish({ observed: 'killed; systemd gave it the folder again and started it', recoverySeconds });
  },
);

fault(
  'database-log-deleted',
  { boot, expected: "only the database's log deleted, then SIGKILL: nothing that was stored or published is lost" },
  async (bench) => {
    const before = await bench.serviceProcess();
    await bench.flush();
    await bench.machine.sh(`rm ${DATABASE}-wal`);
    // Detected at the next alert, or within a minute.
    await bench.checkEventually('the log is there again', () => existsSync(bench.hostPath(`${DATABASE}-wal`)));
    const recoverySeconds = await bench.recoverAfter(() => bench.appliance.signal('KILL'), 10);
    await bench.checkRestarted(before);
    const { quarantined } = (await bench.appliance.status()).storage;
    bench.check('no database was quarantined', quarantined.length === 0, quarantined);
    return bench.finish({ observed: 'noticed; its content was in the database before the kill', recoverySeconds });
  },
);

fault(
  'spool-deleted',
  { boot, expected: 'the folder of the last minute deleted, a little later SIGKILL: what was published after the deletion is not lost' },
  async (bench) => {
    const before = await bench.serviceProcess();
    await bench.flush();
    const deletedMs = await bench.inject(() => bench.machine.sh(`rm -r ${SPOOL}`));
    await bench.checkPublishing(6);
    const recoverySeconds = await bench.recoverAfter(() => bench.appliance.signal('KILL'), 10);
    await bench.checkRestarted(before);
    return bench.finish({
      observed: 'the spool was created again; after the kill it had what was published since',
      recoverySeconds,
      removedBeforeMs: deletedMs,
    });
  },
);

fault(
  'spool-forbidden',
  {
    boot,
    expected:
      'the folder of the last minute inaccessible (chmod 000, of root), then SIGKILL: it starts all the same; undone, nothing is lost',
  },
  async (bench) => {
    const { machine } = bench;
    const before = await bench.serviceProcess();
    const undo = `chown -R edge-health: ${SPOOL}; chmod 700 ${SPOOL}`;
    bench.teardown(() => machine.run(['sh', '-c', undo]));
    await bench.flush();
    await machine.sh(`chown root: ${SPOOL}; chmod 000 ${SPOOL}`);
    await bench.checkPublishing(2);
    const recoverySeconds = await bench.recoverAfter(() => bench.appliance.signal('KILL'), 15);
    await bench.checkRestarted(before);
    const journal = await bench.journalSince(bench.beganMs);
    bench.check('the journal has that it cannot be read', /cannot read the spool of an earlier run/.test(journal));
    await machine.sh(undo);
    // What could not be read is kept for the next start.
    await bench.recoverAfter(() => machine.systemctl('restart', UNIT), 15);
    return bench.finish({ observed: 'started all the same, and reported it; undone, the next start loaded its content', recoverySeconds });
  },
);
