import { readFileSync } from 'node:fs';
import { DEBUGGER, dropIn, UNIT } from '../../../testkit/container/appliance.ts';
import { pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import { mustBeRestarted, runOf, saidSince } from './tools.ts';

const GROUP = 'memory';

/** How many processes this machine's kernel has killed for want of memory, containers included. */
function outOfMemoryKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1]);
}

export const outOfMemory: Fault = {
  name: 'out-of-memory',
  group: GROUP,
  core: true,
  boot: { files: { [dropIn('debugger')]: DEBUGGER } },
  expected: 'a leak ends at MemoryMax: the kernel kills it, systemd starts it again, nothing that was published is lost',
  async run(arena) {
    const before = await runOf(arena);
    const kills = outOfMemoryKills();
    const limit = Number(await arena.machine.show(UNIT, 'MemoryMax'));
    arena.must('its memory is limited', limit > 0 && limit <= 1e9, limit);
    const began = performance.now();
    await arena.appliance.inject('globalThis.hoard = []; setInterval(() => hoard.push(Buffer.alloc(16 << 20, 1)), 20);');
    await arena.machine.until(async () => ![0, before.pid].includes(await arena.appliance.mainPid()), 60);
    const killedMs = Date.now();
    const leakSeconds = (performance.now() - began) / 1000;
    arena.must('the kernel killed something for want of memory', outOfMemoryKills() > kills);
    // systemd waits RestartSec before there is another process: that is part of the recovery.
    const recoverySeconds = (await arena.recovered(killedMs, 10)) + 1;
    await mustBeRestarted(arena, before);
    const said = await saidSince(arena, killedMs - 60_000);
    arena.must('the journal tells of the kill', /status=9\/KILL/.test(said));
    return arena.finish({
      observed: `${limit / 2 ** 20} MiB were full after ${leakSeconds.toFixed(1)} s; killed, and started again`,
      recoverySeconds,
    });
  },
};

export const heapFull: Fault = {
  name: 'heap-full',
  group: GROUP,
  core: false,
  boot: { files: { [dropIn('debugger')]: DEBUGGER } },
  expected: 'a leak of objects: whether V8 or the kernel ends it, systemd starts it again, nothing that was published is lost',
  async run(arena) {
    const before = await runOf(arena);
    await arena.appliance.inject(
      'globalThis.hoard = []; setInterval(() => { for (let i = 0; i < 2e5; i += 1) hoard.push({ i, s: [i] }); }, 20);',
    );
    await arena.machine.until(async () => ![0, before.pid].includes(await arena.appliance.mainPid()), 90);
    const recoverySeconds = (await arena.recovered(Date.now(), 10)) + 1;
    await mustBeRestarted(arena, before);
    return arena.finish({ observed: 'ended, and started again', recoverySeconds });
  },
};

const TOO_LITTLE = '24M';

export const memoryTooLittle: Fault = {
  name: 'memory-too-little',
  group: GROUP,
  core: false,
  expected: `MemoryMax=${TOO_LITTLE} set while it runs: killed at every start it ends in "failed"; lifted and started it has everything it had`,
  async run(arena) {
    const { machine } = arena;
    const limit = await machine.show(UNIT, 'MemoryMax');
    const lift = (): Promise<string> => machine.systemctl('set-property', '--runtime', UNIT, `MemoryMax=${limit}`);
    arena.afterwards(lift);
    await machine.run(['systemctl', 'set-property', '--runtime', UNIT, `MemoryMax=${TOO_LITTLE}`]);
    await arena.appliance.signal('KILL');
    await arena.mustBe('the unit ends in "failed"', async () => {
      await machine.until(async () => (await machine.show(UNIT, 'ActiveState')) === 'failed', 60);
      return true;
    });
    const told = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    arena.must('systemctl status tells why', /Start request repeated too quickly|start-limit-hit|oom-kill|status=9\/KILL/.test(told), told);
    await lift();
    await machine.systemctl('reset-failed', UNIT);
    await pause(1);
    const startedMs = await arena.strike(() => machine.systemctl('start', UNIT));
    const recoverySeconds = await arena.recovered(startedMs, 10);
    return arena.finish({ observed: 'ended in "failed"; lifted, it was started by hand; recovery is from there', recoverySeconds });
  },
};
