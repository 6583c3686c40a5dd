/** Faults of memory: leaks, and a limit that is too small. */
import { readFileSync } from 'node:fs';
import { DEBUGGER, dropIn, UNIT } from '../../testkit/container/appliance.ts';
import { type FaultBench, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('memory');

const boot = { files: { [dropIn('debugger')]: DEBUGGER } } as const;

/** How many processes the kernel of this machine has killed for lack of memory, containers included. */
function outOfMemoryKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1]);
}

/** Leaks until another process serves; returns the seconds of the leak and of the recovery. */
async function leak(bench: FaultBench, code: string): Promise<{ leakSeconds: number; recoverySeconds: number }> {
  const before = await bench.serviceProcess();
  const begun = performance.now();
  await bench.appliance.inject(code);
  await bench.machine.until(async () => ![0, before.pid].includes(await bench.appliance.mainPid()), 240);
  const leakSeconds = (performance.now() - begun) / 1000;
  // systemd waits for RestartSec before it starts another process: that is part of the recovery.
  const recoverySeconds = (await bench.recovered(Date.now(), 10)) + 1;
  await bench.checkRestarted(before);
  return { leakSeconds, recoverySeconds };
}

fault(
  'out-of-memory',
  { core: true, boot, expected: 'a leak ends at MemoryMax: the kernel kills it, systemd restarts it, nothing that was published is lost' },
  async (bench) => {
    const kills = outOfMemoryKills();
    const limit = Number(await bench.machine.show(UNIT, 'MemoryMax'));
    bench.check('the unit limits its memory', limit >= 128e6 && limit <= 1e9, limit);
    const { leakSeconds, recoverySeconds } = await leak(
      bench,
      'globalThis.hoard = []; setInterval(() => hoard.push(Buffer.alloc(16 << 20, 1)), 20);',
    );
    bench.check('the kernel killed a process for want of memory', outOfMemoryKills() > kills);
    bench.check('the journal has the kill', /status=9\/KILL/.test(await bench.journalSince(bench.beganMs)));
    return bench.finish({
      observed: `${limit / 2 ** 20} MiB were full after ${leakSeconds.toFixed(1)} s; killed, and restarted`,
      recoverySeconds,
    });
  },
);

fault(
  'heap-full',
  { boot, expected: 'a leak of objects: whether V8 or the kernel ends it, systemd restarts it, nothing that was published is lost' },
  async (bench) => {
    const { recoverySeconds } = await leak(
      bench,
      'globalThis.hoard = []; setInterval(() => { for (let i = 0; i < 2e5; i += 1) hoard.push({ i, s: [i] }); }, 20);',
    );
    return bench.finish({ observed: 'ended, and restarted', recoverySeconds });
  },
);

const TOO_SMALL = '24M';

fault(
  'memory-too-small',
  {
    expected: `MemoryMax=${TOO_SMALL} set while it runs: killed at every start it ends in "failed"; undone and started it has all its data`,
  },
  async (bench) => {
    const { machine } = bench;
    const limit = await machine.show(UNIT, 'MemoryMax');
    const undo = (): Promise<string> => machine.systemctl('set-property', '--runtime', UNIT, `MemoryMax=${limit}`);
    bench.teardown(undo);
    await machine.run(['systemctl', 'set-property', '--runtime', UNIT, `MemoryMax=${TOO_SMALL}`]);
    await machine.run(['systemctl', 'kill', '--signal=KILL', UNIT]); // The kernel may have done so already.
    await bench.checkEventually('the unit ends in "failed"', async () => (await machine.show(UNIT, 'ActiveState')) === 'failed');
    const shown = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    const reason = /Start request repeated too quickly|start-limit-hit|oom-kill|status=9\/KILL/;
    bench.check('systemctl status shows the reason', reason.test(shown), shown);
    await undo();
    await machine.systemctl('reset-failed', UNIT);
    await pause(1);
    const recoverySeconds = await bench.recoverAfter(() => machine.systemctl('start', UNIT), 10);
    return bench.finish({ observed: 'ended in "failed"; undone, it was started by hand, and recovery counts from there', recoverySeconds });
  },
);
