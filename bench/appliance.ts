/** The installed package in a container: installation, start, memory and CPU, recovery. */
import { mainPidOnHost } from '../testkit/container/appliance.ts';
import { Container } from '../testkit/container/container.ts';
import { containersUnavailable, SUITES, type Suite } from '../testkit/container/images.ts';
import { builtPackage } from '../testkit/container/package.ts';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import { Teardowns } from '../testkit/teardown.ts';
import { measureRecoverySeconds, startSeconds, UNIT } from './support/appliance.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { median, pause, worst } from './support/statistics.ts';

const INSTALLATIONS = 3;
const STARTS = 10;
const FREEZES = 4;
const KILLS = 4;
const WARM_UP_SECONDS = 60;
const POLL_SECONDS = 5;
const WATCHDOG_SECONDS = 10;

type Progress = (text: string) => void;

/** Installs the package on a fresh machine. Returns the seconds that apt-get took. */
async function install(machine: Container, deb: string): Promise<number> {
  await machine.copyIn(deb, '/root/edge-health.deb');
  const begun = performance.now();
  await machine.sh('DEBIAN_FRONTEND=noninteractive apt-get install -y /root/edge-health.deb', { timeoutSeconds: 120 });
  const seconds = (performance.now() - begun) / 1000;
  if ((await machine.show(UNIT, 'ActiveState')) !== 'active') throw new Error(await machine.journal(UNIT));
  return seconds;
}

/** Throws if dpkg in the container skips fsync: installation times would be meaningless. */
async function requireSafeDpkg(machine: Container): Promise<void> {
  const { code } = await machine.run(['grep', '-rqs', 'force-unsafe-io', '/etc/dpkg']);
  if (code === 0) throw new Error('dpkg in the container is configured with force-unsafe-io');
}

async function measureResources(machine: Container, minutes: number, progress: Progress): Promise<Row[]> {
  progress(`warm-up, ${WARM_UP_SECONDS} s`);
  await pause(WARM_UP_SECONDS);
  const meter = new ProcessMeter(await mainPidOnHost(machine));
  const cpuBefore = meter.cpuSeconds();
  const begun = performance.now();
  let highest = 0;
  progress(`CPU and memory, ${minutes} min`);
  do {
    await pause(Math.min(POLL_SECONDS, minutes * 60));
    meter.cpuSeconds(); // Records the CPU time of threads that end before the next reading.
    highest = Math.max(highest, meter.memory().residentMegabytes);
  } while (performance.now() - begun < minutes * 60_000);
  const cpuPercent = (100 * (meter.cpuSeconds() - cpuBefore)) / ((performance.now() - begun) / 1000);
  const { anonymousMegabytes } = meter.memory();
  const transport = (await machine.json<{ ros: { transport: string } }>('/status')).ros.transport;
  if (transport !== 'embedded') throw new Error(`the service uses the ROS 2 transport ${transport}, not embedded`);
  const charged = Number(await machine.show(UNIT, 'MemoryCurrent')) / 1e6;
  return [
    { figure: 'CPU of the installed service at 1 Hz, embedded transport, of one core', unit: '%', value: cpuPercent, atMost: 0.4 },
    { figure: 'its resident memory, highest', unit: 'MB', value: highest, atMost: 80 },
    { figure: 'of that, anonymous', unit: 'MB', value: anonymousMegabytes },
    { figure: 'its MemoryCurrent in systemd', unit: 'MB', value: charged },
  ];
}

/** Repeats a measurement; `reset-failed` clears the start count that StartLimitBurst would stop at. */
async function repeat(machine: Container, times: number, measure: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  for (let n = 0; n < times; n += 1) {
    await machine.systemctl('reset-failed', UNIT);
    values.push(await measure());
  }
  return values;
}

await benchmark('appliance', async ({ minutes, progress }): Promise<Outcome> => {
  const unavailable = containersUnavailable();
  if (unavailable) throw new Error(unavailable);
  const teardowns = new Teardowns();
  const { file, version } = await builtPackage();
  try {
    const rows: Row[] = [];
    let machine: Container | undefined;
    const installIn = async (suite: Suite): Promise<number> => {
      await teardowns.run();
      machine = await Container.boot(teardowns, { suite });
      await requireSafeDpkg(machine);
      return install(machine, file);
    };
    for (const suite of SUITES) {
      progress(`installing ${INSTALLATIONS} times in ${suite}`);
      const seconds: number[] = [];
      for (let n = 0; n < INSTALLATIONS; n += 1) seconds.push(await installIn(suite));
      rows.push({ figure: `apt-get install in ${suite}, median of ${INSTALLATIONS}`, unit: 's', value: median(seconds), atMost: 10 });
      rows.push({ figure: 'the same, worst', unit: 's', value: worst(seconds) });
    }
    if (machine === undefined) throw new Error('no container');
    const installed = machine;
    rows.push(...(await measureResources(installed, minutes, progress)));

    progress(`${STARTS} starts`);
    const starts = await repeat(installed, STARTS, async () => {
      await installed.systemctl('restart', UNIT);
      return startSeconds(installed);
    });
    rows.push({ figure: `start of the unit to READY, median of ${STARTS}`, unit: 's', value: median(starts), atMost: 1.5 });
    rows.push({ figure: 'the same, worst', unit: 's', value: worst(starts), atMost: 1.5 });

    progress(`${FREEZES} times SIGSTOP, ${KILLS} times SIGKILL`);
    const frozen = await repeat(installed, FREEZES, () => measureRecoverySeconds(installed, 'STOP'));
    rows.push({ figure: `SIGSTOP until recovered, worst of ${FREEZES}`, unit: 's', value: worst(frozen), atMost: WATCHDOG_SECONDS + 5 });
    const killed = await repeat(installed, KILLS, () => measureRecoverySeconds(installed, 'KILL'));
    rows.push({ figure: `SIGKILL until recovered, worst of ${KILLS}`, unit: 's', value: worst(killed) });

    const last = SUITES.at(-1);
    return {
      rows,
      notes: [
        `The package ${version}, in containers with a real systemd as PID 1, on this machine's disk, with only the loopback interface. Everything after the installations was measured in ${last}.`,
        `Installation: the \`.deb\` is in the container and its dependencies are installed; dpkg calls fsync as usual. The time ends when the service is active.`,
        `READY: by systemd's own time stamps, from forking to the notification, when the first sample is taken and REST responds.`,
        `Memory and CPU: of the service's process after ${WARM_UP_SECONDS} s, over ${minutes} min, without any client.`,
        'Recovered: a new process has published a health status. The 10 s of the watchdog count from the last ping before SIGSTOP.',
      ],
    };
  } finally {
    await teardowns.run();
  }
});
