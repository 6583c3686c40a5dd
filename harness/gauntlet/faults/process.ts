import { UNIT } from '../../../testkit/container/appliance.ts';
import { longestSilenceSeconds } from '../account.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { mustBeRestarted, mustGoOn, runOf, saidSince } from './tools.ts';

const GROUP = 'process';
/** What is promised of a service that hangs: back within WatchdogSec and this. */
const OVER_WATCHDOG_SECONDS = 5;
const RESTART_SECONDS = 10;

/** A signal that ends it at once. */
async function ended(arena: Arena, signal: 'KILL' | 'SEGV' | 'ABRT'): Promise<Figures> {
  const before = await runOf(arena);
  const struckMs = await arena.strike(() => arena.machine.sh(`kill -${signal} ${before.pid}`));
  const recoverySeconds = await arena.recovered(struckMs, RESTART_SECONDS);
  await mustBeRestarted(arena, before);
  arena.must('the journal tells of the signal', new RegExp(`status=\\d+/${signal}`).test(await saidSince(arena, struckMs - 1000)));
  return arena.finish({ observed: `ended by SIG${signal}; systemd started it again`, recoverySeconds });
}

export const sigkill: Fault = {
  name: 'sigkill',
  group: GROUP,
  core: true,
  expected: 'systemd starts it again within seconds; nothing that was published is lost',
  run: (arena) => ended(arena, 'KILL'),
};

export const sigsegv: Fault = {
  name: 'sigsegv',
  group: GROUP,
  core: true,
  expected: 'systemd starts it again within seconds; nothing that was published is lost; no core file fills the disk',
  async run(arena) {
    const figures = await ended(arena, 'SEGV');
    const cores = await arena.machine.sh(
      'find / -xdev \\( -name core -o -name "core.[0-9]*" \\) -type f -not -path "/proc/*" 2>/dev/null || true',
    );
    arena.must('no core file lies about', cores === '', cores);
    return figures;
  },
};

export const sigstop: Fault = {
  name: 'sigstop',
  group: GROUP,
  core: true,
  expected: 'the watchdog notices, and systemd starts it again: back within WatchdogSec and 5 s',
  async run(arena) {
    const before = await runOf(arena);
    const watchdogSeconds = await arena.appliance.watchdogSeconds();
    const struckMs = await arena.strike(() => arena.appliance.signal('STOP'));
    const recoverySeconds = await arena.recovered(struckMs, watchdogSeconds + OVER_WATCHDOG_SECONDS);
    await mustBeRestarted(arena, before);
    arena.must('the journal tells of the watchdog', /Watchdog timeout/.test(await saidSince(arena, struckMs)));
    return arena.finish({ observed: `frozen; the watchdog of ${watchdogSeconds} s ended it, systemd started it again`, recoverySeconds });
  },
};

const SHORT_SECONDS = 6;

export const sigstopShort: Fault = {
  name: 'sigstop-short',
  group: GROUP,
  core: false,
  expected: 'frozen for less than the watchdog allows it goes on where it was: no restart, nobody is cut off',
  async run(arena) {
    const before = await runOf(arena);
    const { cuts } = arena.stream;
    await arena.appliance.signal('STOP');
    await pause(SHORT_SECONDS);
    const thawedMs = await arena.strike(() => arena.machine.sh(`kill -CONT ${before.pid}`));
    const recoverySeconds = await arena.recovered(thawedMs, 3);
    await pause(2);
    await mustGoOn(arena, before);
    arena.must('the event stream was not cut off', arena.stream.cuts === cuts, arena.stream.cuts - cuts);
    const { missed } = (await arena.appliance.status()).publish;
    const slots = SHORT_SECONDS * arena.hertz;
    arena.must('/status counts the slots that were slept through', missed >= slots * 0.9 && missed <= slots * 1.5, missed);
    return arena.finish({ observed: `frozen for ${SHORT_SECONDS} s; the same process went on`, recoverySeconds });
  },
};

const KILLS = 4;

export const sigkillRepeated: Fault = {
  name: 'sigkill-repeated',
  group: GROUP,
  core: false,
  expected: `${KILLS} kills, each just as an alert changes, lose nothing that was published`,
  async run(arena) {
    const before = await runOf(arena);
    let recoverySeconds = 0;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      arena.tide?.turn();
      // The next sample sees the turn: somewhere on the way of its alert to the disk and out.
      await pause(0.03 * kill);
      const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
      recoverySeconds = Math.max(recoverySeconds, await arena.recovered(struckMs, RESTART_SECONDS));
    }
    await mustBeRestarted(arena, before, KILLS);
    return arena.finish({ observed: `killed ${KILLS} times, started again each time; recovery is the longest`, recoverySeconds });
  },
};

export const sigkillAtStart: Fault = {
  name: 'sigkill-at-start',
  group: GROUP,
  core: false,
  expected: 'killed, and killed again at moments of its start, it comes up with everything it had',
  async run(arena) {
    const { machine, appliance } = arena;
    const before = await runOf(arena);
    let struckMs = await arena.strike(() => appliance.signal('KILL'));
    for (const seconds of [0.05, 0.25, 0.45]) {
      const { pid } = await runOf(arena);
      await machine.until(async () => ![0, pid].includes(await appliance.mainPid()), 10);
      await pause(seconds);
      struckMs = await arena.strike(() => machine.run(['systemctl', 'kill', '--signal=KILL', UNIT]));
    }
    const recoverySeconds = await arena.recovered(struckMs, RESTART_SECONDS);
    await mustBeRestarted(arena, before, 4);
    return arena.finish({ observed: 'killed three times while it started; the fourth start came up', recoverySeconds });
  },
};

export const crashLoop: Fault = {
  name: 'crash-loop',
  group: GROUP,
  core: false,
  expected: 'killed at every start it ends in "failed", which systemctl status tells; reset and started it has everything it had',
  async run(arena) {
    const { machine } = arena;
    await machine.sh(
      `while ! systemctl --quiet is-failed ${UNIT}; do systemctl kill --signal=KILL ${UNIT} 2>/dev/null || true; sleep 0.1; done`,
    );
    await pause(2.5);
    arena.must('the unit stays failed', (await machine.show(UNIT, 'ActiveState')) === 'failed');
    const told = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    arena.must('systemctl status tells why', /Start request repeated too quickly|start-limit-hit|status=9\/KILL/.test(told), told);
    await machine.systemctl('reset-failed', UNIT);
    const startedMs = await arena.strike(() => machine.systemctl('start', UNIT));
    const recoverySeconds = await arena.recovered(startedMs, RESTART_SECONDS);
    return arena.finish({ observed: 'ended in "failed"; by hand it was started again; recovery is from there', recoverySeconds });
  },
};

export const endlessLoop: Fault = {
  name: 'endless-loop',
  group: GROUP,
  core: false,
  boot: {
    files: { '/etc/systemd/system/edge-health.service.d/debugger.conf': '[Service]\nEnvironment=NODE_OPTIONS=--inspect=127.0.0.1:9229\n' },
  },
  expected: 'a loop without end in the service: the watchdog notices, back within WatchdogSec and 5 s',
  async run(arena) {
    const before = await runOf(arena);
    const watchdogSeconds = await arena.appliance.watchdogSeconds();
    const struckMs = await arena.strike(() => arena.appliance.inject('for (;;);'));
    const recoverySeconds = await arena.recovered(struckMs, watchdogSeconds + OVER_WATCHDOG_SECONDS);
    await mustBeRestarted(arena, before);
    const gap = longestSilenceSeconds(
      arena.stream.statuses.map(({ it }) => Date.parse(it.timestamp)),
      arena.beganMs,
      Date.now(),
    );
    return arena.finish({ observed: `nothing for ${gap.toFixed(1)} s; the watchdog ended it, systemd started it again`, recoverySeconds });
  },
};
