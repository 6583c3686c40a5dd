import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { type Arena, pause } from '../arena.ts';
import type { BootWish, Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { mustBeRestarted, mustGoOn, mustPublishOn, runOf } from './tools.ts';

const GROUP = 'disk';
const boot: BootWish = { disk: { path: STATE, megabytes: 200 } };
const BALLAST = `${STATE}/ballast`;
/** While the store fails it tries again every 10 s. */
const RETRY_SECONDS = 15;

/** As root: what ext4 reserves for root is gone as well. Down to the last block. */
async function fill({ machine }: Arena): Promise<void> {
  await machine.sh(
    `fallocate -l 190M ${BALLAST} || true; for size in 1M 64k 4k 1k; do dd if=/dev/zero bs=$size >>${BALLAST} 2>/dev/null || true; done`,
    {
      timeoutSeconds: 120,
    },
  );
}

async function mustBeDegraded(arena: Arena): Promise<void> {
  await arena.mustBe('/status says that the store is degraded, and why', async () => {
    const { storage } = await arena.machine.untilJson<StatusDocument>('/status', (status) => status.storage.state === 'degraded', 75);
    if (!/full|space|answer/i.test(storage.error ?? '')) throw new Error(storage.error ?? 'no error');
    return true;
  });
}

/** The disk is full for so long; `during` may do worse meanwhile. */
async function full(arena: Arena, seconds: number, during: () => Promise<string>): Promise<Figures> {
  const { machine } = arena;
  await arena.commit();
  arena.afterwards(() => machine.sh(`rm -f ${BALLAST}`));
  const fullMs = await arena.strike(() => fill(arena));
  await mustBeDegraded(arena);
  const what = await during();
  await pause(Math.max(0, seconds - (Date.now() - fullMs) / 1000));
  const freedMs = await arena.strike(() => machine.sh(`rm ${BALLAST}`));
  const recoverySeconds = await arena.recovered(freedMs, RETRY_SECONDS);
  const { samples_lost: lost } = (await arena.appliance.status()).storage;
  arena.must('the service gave up no sample', lost === 0, lost);
  await machine.systemctl('restart', UNIT);
  await arena.recovered(Date.now(), 15);
  return arena.finish({
    observed: `full for ${((freedMs - fullMs) / 1000).toFixed(0)} s, and said so${what}; freed, everything was written`,
    recoverySeconds,
  });
}

export const diskFull: Fault = {
  name: 'disk-full',
  group: GROUP,
  core: true,
  boot,
  expected: 'measuring, serving and alerting go on, nothing is lost, and it says so; freed, everything is written',
  run: (arena) =>
    full(arena, 0, async () => {
      const [run, beganMs] = [await runOf(arena), Date.now()];
      await pause(4);
      await mustGoOn(arena, run);
      mustPublishOn(arena, beganMs);
      return '';
    }),
};

export const diskFullMinutes: Fault = {
  name: 'disk-full-minutes',
  group: GROUP,
  core: false,
  boot,
  expected: 'full for three minutes, killed in the middle and restarted by hand: nothing is lost',
  run: (arena) =>
    full(arena, 180, async () => {
      const before = await runOf(arena);
      await pause(40);
      const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
      await arena.machine.until(async () => (await arena.complaint(struckMs))?.startsWith('the store is degraded') === true, 30);
      await mustBeRestarted(arena, before);
      await pause(40);
      await arena.machine.systemctl('restart', UNIT);
      return '; killed and restarted meanwhile, it served and measured';
    }),
};

export const inodesUsedUp: Fault = {
  name: 'disk-without-inodes',
  group: GROUP,
  core: false,
  boot,
  expected: 'no file can be made on its disk, and it is killed: it comes back with everything it had',
  async run(arena) {
    const { machine } = arena;
    arena.afterwards(() => machine.sh(`rm -rf ${STATE}/many`, { timeoutSeconds: 120 }));
    await machine.sh(`mkdir ${STATE}/many; cd ${STATE}/many; seq -f 'file-%.0f' 200000 | xargs -n 5000 touch 2>/dev/null || true`, {
      timeoutSeconds: 120,
    });
    arena.must('there is no inode left', (await machine.run(['touch', `${STATE}/one-more`])).code !== 0);
    const before = await runOf(arena);
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    await machine.until(async () => /^(the store|the topic)|^$/.test((await arena.complaint(struckMs)) ?? ''), 30);
    await mustBeRestarted(arena, before);
    await pause(5);
    const freedMs = await arena.strike(() => machine.sh(`rm -rf ${STATE}/many`, { timeoutSeconds: 120 }));
    const recoverySeconds = await arena.recovered(freedMs, RETRY_SECONDS);
    return arena.finish({
      observed: 'killed on a disk without inodes it served all the same; freed, everything was written',
      recoverySeconds,
    });
  },
};

export const diskFrozen: Fault = {
  name: 'disk-frozen',
  group: GROUP,
  core: false,
  boot,
  expected: 'a disk that does not answer stops neither measuring nor alerting, and is no reason for the watchdog',
  async run(arena) {
    const { machine } = arena;
    const before = await runOf(arena);
    const watchdogSeconds = await arena.appliance.watchdogSeconds();
    arena.afterwards(() => machine.run(['fsfreeze', '--unfreeze', STATE]));
    await machine.sh(`fsfreeze --freeze ${STATE}`);
    const frozenMs = Date.now();
    await mustBeDegraded(arena);
    await pause(watchdogSeconds + 3);
    await mustGoOn(arena, before);
    mustPublishOn(arena, frozenMs);
    const thawedMs = await arena.strike(() => machine.sh(`fsfreeze --unfreeze ${STATE}`));
    const recoverySeconds = await arena.recovered(thawedMs, RETRY_SECONDS);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'said so, and went on; thawed, everything was written', recoverySeconds });
  },
};

export const memoryDiskFull: Fault = {
  name: 'run-full',
  group: GROUP,
  core: false,
  expected: '/run, where the last minute lies, full: measuring, serving and alerting go on; freed, it is as before',
  async run(arena) {
    const { machine } = arena;
    const before = await runOf(arena);
    const lift = 'rm -f /run/ballast; mount -o remount,size=1G /run';
    arena.afterwards(() => machine.sh(lift));
    await machine.sh(
      `mount -o remount,size=$(($(df --output=used -k /run | tail -n1) + 512))k /run; dd if=/dev/zero of=/run/ballast bs=4k 2>/dev/null || true`,
    );
    const fullMs = Date.now();
    await pause(10);
    await mustGoOn(arena, before);
    mustPublishOn(arena, fullMs);
    const freedMs = await arena.strike(() => machine.sh(lift));
    await pause(1);
    const recoverySeconds = await arena.recovered(freedMs, RETRY_SECONDS);
    // From here on a kill loses nothing again, and what came meanwhile is in memory still.
    await arena.commit();
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    await arena.recovered(struckMs, 10);
    return arena.finish({ observed: 'full for 10 s; went on, and what came meanwhile was written from memory', recoverySeconds });
  },
};
