/** Faults of the disk: full, without inodes, frozen; and of /run, which is in memory. */
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { STATE, UNIT } from '../../testkit/container/appliance.ts';
import { type FaultBench, type Figures, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('disk');

const boot = { disk: { path: STATE, megabytes: 200 } } as const;
const BALLAST = `${STATE}/ballast`;
/** While the store fails it retries every 10 s. */
const RETRY_SECONDS = 15;

/** Fills the disk down to the last block. As root, so that the reserve of ext4 for root is used up as well. */
async function fill({ machine }: FaultBench): Promise<void> {
  const blocks = `for size in 1M 64k 4k 1k; do dd if=/dev/zero bs=$size >>${BALLAST} 2>/dev/null || true; done`;
  await machine.sh(`fallocate -l 190M ${BALLAST} || true; ${blocks}`, { timeoutSeconds: 120 });
}

async function checkDegraded(bench: FaultBench): Promise<void> {
  await bench.checkAsync('/status reports a degraded store, with the reason', async () => {
    const { storage } = await bench.machine.untilJson<StatusDocument>('/status', (status) => status.storage.state === 'degraded', 120);
    if (!/full|space|no response/i.test(storage.error ?? '')) throw new Error(storage.error ?? 'no error');
    return true;
  });
}

/** Keeps the disk full while `during` runs. */
async function full(bench: FaultBench, during: () => Promise<string>): Promise<Figures> {
  const { machine } = bench;
  await bench.flush();
  bench.teardown(() => machine.sh(`rm -f ${BALLAST}`));
  const fullMs = await bench.inject(() => fill(bench));
  await checkDegraded(bench);
  const details = await during();
  const freedMs = await bench.inject(() => machine.sh(`rm ${BALLAST}`));
  const recoverySeconds = await bench.recovered(freedMs, RETRY_SECONDS);
  const { samples_lost: lost } = (await bench.appliance.status()).storage;
  bench.check('the service lost no sample', lost === 0, lost);
  await bench.recoverAfter(() => machine.systemctl('restart', UNIT), 15);
  return bench.finish({
    observed: `full for ${((freedMs - fullMs) / 1000).toFixed(0)} s, which was reported${details}; freed, everything was written`,
    recoverySeconds,
  });
}

fault(
  'disk-full',
  {
    core: true,
    boot,
    expected: 'measuring, serving and alerting continue longer than the watchdog allows, nothing is lost; freed, everything is written',
  },
  (bench) =>
    full(bench, async () => {
      const { appliance, machine } = bench;
      const before = await bench.serviceProcess();
      await bench.checkEventually('the status line of systemctl reports it', async () =>
        /storage degraded/.test(await machine.show(UNIT, 'StatusText')),
      );
      await bench.checkPublishing((await appliance.watchdogSeconds()) + 3);
      await bench.checkSameProcess(before);
      bench.check('the history is served', (await bench.stored(bench.beganMs, Date.now())).length > 0);
      return '';
    }),
);

fault(
  'disk-frozen',
  { core: true, boot, expected: 'a disk that does not respond stops neither measuring nor alerting, and does not trigger the watchdog' },
  async (bench) => {
    const { machine } = bench;
    const before = await bench.serviceProcess();
    const watchdogSeconds = await bench.appliance.watchdogSeconds();
    bench.teardown(() => machine.run(['fsfreeze', '--unfreeze', STATE]));
    await machine.sh(`fsfreeze --freeze ${STATE}`);
    await checkDegraded(bench);
    const refused = await machine.http('/health/history?hours=1');
    const { code } = (await refused.json()) as { code?: string };
    bench.check('what only the store has is refused', refused.status === 503 && code === 'storage_unavailable', { code });
    await bench.checkPublishing(watchdogSeconds + 3);
    await bench.checkSameProcess(before);
    const recoverySeconds = await bench.recoverAfter(() => machine.sh(`fsfreeze --unfreeze ${STATE}`), RETRY_SECONDS);
    await bench.checkSameProcess(before);
    return bench.finish({ observed: 'it was reported, and all continued; thawed, everything was written', recoverySeconds });
  },
);

const HALF_SECONDS = 85;

fault(
  'disk-full-minutes',
  { boot, expected: 'full for three minutes, killed in the middle and restarted by hand: nothing is lost' },
  (bench) =>
    full(bench, async () => {
      const before = await bench.serviceProcess();
      await pause(HALF_SECONDS);
      const injectedMs = await bench.inject(() => bench.appliance.signal('KILL'));
      await bench.checkEventually('killed, it serves with a degraded store', async () =>
        Boolean((await bench.problem(injectedMs))?.startsWith('the store is degraded')),
      );
      await bench.checkRestarted(before);
      await pause(HALF_SECONDS);
      await bench.machine.systemctl('restart', UNIT);
      return '; killed and restarted meanwhile, it served and measured';
    }),
);

fault(
  'disk-without-inodes',
  { boot, expected: 'no file can be created on its disk, and it is killed: it comes back with all its data' },
  async (bench) => {
    const { machine } = bench;
    const free = (): Promise<string> => machine.sh(`rm -rf ${STATE}/many`, { timeoutSeconds: 240 });
    bench.teardown(free);
    await machine.sh(`mkdir ${STATE}/many; cd ${STATE}/many; seq -f 'file-%.0f' 200000 | xargs -n 5000 touch 2>/dev/null || true`, {
      timeoutSeconds: 240,
    });
    bench.check('there is no inode left', (await machine.run(['touch', `${STATE}/one-more`])).code !== 0);
    const before = await bench.serviceProcess();
    const injectedMs = await bench.inject(() => bench.appliance.signal('KILL'));
    await bench.checkEventually('killed, it serves', async () => {
      const problem = await bench.problem(injectedMs);
      return problem === null || problem.startsWith('the store');
    });
    await bench.checkRestarted(before);
    await bench.checkPublishing(5);
    const recoverySeconds = await bench.recoverAfter(free, RETRY_SECONDS);
    return bench.finish({
      observed: 'killed on a disk without inodes it served all the same; freed, everything was written',
      recoverySeconds,
    });
  },
);

fault(
  'run-full',
  { expected: '/run, which has the last minute, full: measuring, serving and alerting continue; freed, all is as before' },
  async (bench) => {
    const { machine } = bench;
    const before = await bench.serviceProcess();
    const free = (): Promise<string> => machine.sh('rm -f /run/ballast; mount -o remount,size=1G /run');
    bench.teardown(free);
    await machine.sh(
      `mount -o remount,size=$(($(df --output=used -k /run | tail -n1) + 512))k /run; dd if=/dev/zero of=/run/ballast bs=4k 2>/dev/null || true`,
    );
    await bench.checkPublishing(10);
    await bench.checkSameProcess(before);
    const freedMs = await bench.inject(free);
    await pause(1);
    const recoverySeconds = await bench.recovered(freedMs, RETRY_SECONDS);
    // From here on SIGKILL loses nothing again, and what was published meanwhile is still in memory.
    await bench.flush();
    await bench.recoverAfter(() => bench.appliance.signal('KILL'), 10);
    return bench.finish({ observed: 'full for 10 s; all continued, and what was published was written from memory', recoverySeconds });
  },
);
