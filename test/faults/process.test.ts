/** Faults of the service's process: it is killed, stopped, or its event loop is blocked. */
import { DEBUGGER, dropIn, UNIT } from '../../testkit/container/appliance.ts';
import { longestGapSeconds } from '../../testkit/weeks/losses.ts';
import { type FaultBench, type Figures, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('process');

/** What is promised of a service that hangs: it serves again within WatchdogSec and this time. */
const OVER_WATCHDOG_SECONDS = 5;
const RESTART_SECONDS = 10;

/** A signal that ends the process at once. */
async function killed(bench: FaultBench, signal: 'KILL' | 'SEGV'): Promise<Figures> {
  const before = await bench.serviceProcess();
  const recoverySeconds = await bench.recoverAfter(() => bench.machine.sh(`kill -${signal} ${before.pid}`), RESTART_SECONDS);
  await bench.checkRestarted(before);
  const journal = await bench.journalSince(bench.beganMs);
  bench.check('the journal has the signal', new RegExp(`status=\\d+/${signal}`).test(journal));
  bench.check('the watchdog was not needed', !/Watchdog timeout/.test(journal));
  return bench.finish({ observed: `killed by SIG${signal}; systemd restarted it`, recoverySeconds });
}

fault('sigkill', { core: true, expected: 'systemd restarts it within seconds; nothing that was published is lost' }, (bench) =>
  killed(bench, 'KILL'),
);

fault(
  'sigsegv',
  { core: true, expected: 'systemd restarts it within seconds; nothing that was published is lost; no core file fills the disk' },
  async (bench) => {
    const figures = await killed(bench, 'SEGV');
    const cores = await bench.machine.sh(
      'find / -xdev \\( -name core -o -name "core.[0-9]*" \\) -type f -not -path "/proc/*" 2>/dev/null || true',
    );
    bench.check('there is no core file', cores === '', cores);
    return figures;
  },
);

/** The process hangs until the watchdog ends it. */
async function hung(bench: FaultBench, action: () => Promise<unknown>): Promise<Figures> {
  const before = await bench.serviceProcess();
  const watchdogSeconds = await bench.appliance.watchdogSeconds();
  bench.check('the unit has a watchdog of at most 30 s', watchdogSeconds > 0 && watchdogSeconds <= 30, watchdogSeconds);
  const recoverySeconds = await bench.recoverAfter(action, watchdogSeconds + OVER_WATCHDOG_SECONDS);
  await bench.checkRestarted(before);
  bench.check('the journal has the watchdog', /Watchdog timeout/.test(await bench.journalSince(bench.beganMs)));
  const stamps = bench.stream.statuses.map(({ it }) => Date.parse(it.timestamp));
  const gap = longestGapSeconds(stamps, bench.beganMs, Date.now()).toFixed(1);
  return bench.finish({
    observed: `no status for ${gap} s; the watchdog of ${watchdogSeconds} s ended it, systemd restarted it`,
    recoverySeconds,
  });
}

fault(
  'sigstop',
  { core: true, expected: 'the watchdog detects it, and systemd restarts the service: back within WatchdogSec and 5 s' },
  (bench) => hung(bench, () => bench.appliance.signal('STOP')),
);

const SHORT_SECONDS = 6;

fault(
  'sigstop-short',
  { expected: 'stopped for less than the watchdog allows it continues where it was: no restart, no client is disconnected' },
  async (bench) => {
    const before = await bench.serviceProcess();
    const { disconnections } = bench.stream;
    const stoppedMs = Date.now();
    await bench.machine.sh(`kill -STOP ${before.pid}; sleep ${SHORT_SECONDS}; kill -CONT ${before.pid}`);
    const recoverySeconds = await bench.recovered(Date.now(), 3);
    await bench.checkPublishing(2);
    await bench.checkSameProcess(before);
    bench.check('the event stream was not disconnected', bench.stream.disconnections === disconnections);
    const { missed } = (await bench.appliance.status()).publish;
    const mostSeconds = (Date.now() - stoppedMs) / 1000;
    const isPlausible = missed >= SHORT_SECONDS * bench.hertz * 0.9 && missed <= mostSeconds * bench.hertz + 1;
    bench.check('/status counts the missed samples', isPlausible, missed);
    return bench.finish({ observed: `stopped for ${SHORT_SECONDS} s; the same process continued`, recoverySeconds });
  },
);

const KILLS = 4;

fault('sigkill-repeated', { expected: `${KILLS} kills, each just as an alert changes, lose nothing that was published` }, async (bench) => {
  const before = await bench.serviceProcess();
  let recoverySeconds = 0;
  for (let kill = 1; kill <= KILLS; kill += 1) {
    bench.load?.turn();
    // The next sample has the change; the kill comes between that sample and its alert on the disk and on the network.
    await pause(0.03 * kill);
    const injectedMs = await bench.inject(() => bench.appliance.signal('KILL'));
    recoverySeconds = Math.max(recoverySeconds, await bench.recovered(injectedMs, RESTART_SECONDS));
  }
  await bench.checkRestarted(before, KILLS);
  return bench.finish({ observed: `killed ${KILLS} times, restarted each time; recovery is the longest`, recoverySeconds });
});

fault('sigkill-at-start', { expected: 'killed, and killed again at moments of its start, it starts with all its data' }, async (bench) => {
  const { machine, appliance } = bench;
  const before = await bench.serviceProcess();
  let { pid } = before;
  let injectedMs = await bench.inject(() => appliance.signal('KILL'));
  for (const seconds of [0.05, 0.25, 0.45]) {
    await machine.until(async () => ![0, pid].includes(await appliance.mainPid()), 60);
    pid = await appliance.mainPid();
    await pause(seconds);
    injectedMs = await bench.inject(() => machine.run(['systemctl', 'kill', '--signal=KILL', UNIT]));
  }
  const recoverySeconds = await bench.recovered(injectedMs, RESTART_SECONDS);
  await bench.checkRestarted(before, 4);
  return bench.finish({ observed: 'killed three times while it started; the fourth start succeeded', recoverySeconds });
});

// On the newer Debian, whose systemd handles the watchdog and the start limit itself: the core faults cover both releases.
const TRIXIE = { suite: 'trixie', files: { [dropIn('debugger')]: DEBUGGER } } as const;

fault(
  'endless-loop',
  { core: true, expected: 'an endless loop in the service: the watchdog detects it, back within WatchdogSec and 5 s', boot: TRIXIE },
  (bench) => hung(bench, () => bench.appliance.inject('for (;;);')),
);

fault(
  'crash-loop',
  {
    core: true,
    expected: 'killed at every start it ends in "failed", which systemctl status shows; reset and started it has all its data',
    boot: TRIXIE,
  },
  async (bench) => {
    const { machine } = bench;
    const burst = Number(await machine.show(UNIT, 'StartLimitBurst'));
    const fromMs = Date.now();
    await machine.sh(
      `while ! systemctl --quiet is-failed ${UNIT}; do systemctl kill --signal=KILL ${UNIT} 2>/dev/null || true; sleep 0.1; done`,
      { timeoutSeconds: 180 },
    );
    const starts = (await bench.journalSince(fromMs)).split('\n').filter((line) => line.startsWith('Starting ')).length;
    bench.check(`it was started at most ${burst} times (StartLimitBurst)`, starts >= 1 && starts <= burst, starts);
    // A unit that waits for another start is "activating".
    bench.check('the unit has failed, and is not started again', (await machine.show(UNIT, 'ActiveState')) === 'failed');
    const shown = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    const reason = /Start request repeated too quickly|start-limit-hit|status=9\/KILL/;
    bench.check('systemctl status shows the reason', reason.test(shown), shown);
    await machine.systemctl('reset-failed', UNIT);
    const recoverySeconds = await bench.recoverAfter(() => machine.systemctl('start', UNIT), RESTART_SECONDS);
    return bench.finish({ observed: 'ended in "failed"; it was started by hand, and recovery counts from there', recoverySeconds });
  },
);
