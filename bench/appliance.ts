/** The installed package in a container of its own: installation, start, memory and CPU, recovery. */
import { mainPidOnHost } from '../testkit/container/appliance.ts';
import { Container } from '../testkit/container/container.ts';
import { containersUnavailable, SUITES, type Suite } from '../testkit/container/images.ts';
import { builtPackage } from '../testkit/container/package.ts';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import { Teardowns } from '../testkit/teardown.ts';
import { secondsUntilBack, startSeconds, UNIT } from './support/appliance.ts';
import type { Outcome, Row } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { median, pause, worst } from './support/statistics.ts';

const INSTALLATIONS = 3;
const STARTS = 10;
const FREEZES = 4;
const KILLS = 4;
const WARM_UP_SECONDS = 60;
const LOOK_EVERY_SECONDS = 5;
const WATCHDOG_SECONDS = 10;

type Progress = (text: string) => void;

/** A fresh machine, where the package is put in and installed. Returns the seconds that apt-get took. */
async function install(machine: Container, deb: string): Promise<number> {
  await machine.copyIn(deb, '/root/edge-health.deb');
  const begun = performance.now();
  await machine.sh('DEBIAN_FRONTEND=noninteractive apt-get install -y /root/edge-health.deb', { timeoutSeconds: 120 });
  const seconds = (performance.now() - begun) / 1000;
  if ((await machine.show(UNIT, 'ActiveState')) !== 'active') throw new Error(await machine.journal(UNIT));
  return seconds;
}

/** Whether apt wrote safely in there: figures without fsync would be no figures. */
async function refuseUnsafe(machine: Container): Promise<void> {
  const { code } = await machine.run(['grep', '-rqs', 'force-unsafe-io', '/etc/dpkg']);
  if (code === 0) throw new Error('dpkg of the container does not write safely');
}

async function resources(machine: Container, minutes: number, progress: Progress): Promise<Row[]> {
  progress(`warm-up, ${WARM_UP_SECONDS} s`);
  await pause(WARM_UP_SECONDS);
  const meter = new ProcessMeter(await mainPidOnHost(machine));
  const cpuBefore = meter.cpuSeconds();
  const begun = performance.now();
  let highest = 0;
  progress(`CPU and memory, ${minutes} min`);
  do {
    await pause(Math.min(LOOK_EVERY_SECONDS, minutes * 60));
    meter.cpuSeconds(); // So that a thread that ends later is not forgotten.
    highest = Math.max(highest, meter.memory().residentMegabytes);
  } while (performance.now() - begun < minutes * 60_000);
  const cpuPercent = (100 * (meter.cpuSeconds() - cpuBefore)) / ((performance.now() - begun) / 1000);
  const { anonymousMegabytes } = meter.memory();
  const transport = (await machine.json<{ ros: { transport: string } }>('/status')).ros.transport;
  if (transport !== 'embedded') throw new Error(`it is on the ROS 2 graph by ${transport}`);
  const charged = Number(await machine.show(UNIT, 'MemoryCurrent')) / 1e6;
  return [
    { figure: 'CPU of the installed service at 1 Hz, embedded transport, of one core', unit: '%', ours: cpuPercent, atMost: 0.4 },
    { figure: 'resident memory of it, highest', unit: 'MB', ours: highest, atMost: 80 },
    { figure: 'of it anonymous', unit: 'MB', ours: anonymousMegabytes },
    { figure: 'memory that systemd charges it with', unit: 'MB', ours: charged },
  ];
}

/** Repeats a measurement; StartLimit counts the starts, so it is told to forget them. */
async function repeated(machine: Container, times: number, measure: () => Promise<number>): Promise<number[]> {
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
      await refuseUnsafe(machine);
      return install(machine, file);
    };
    for (const suite of SUITES) {
      progress(`installing ${INSTALLATIONS} times in ${suite}`);
      const seconds: number[] = [];
      for (let n = 0; n < INSTALLATIONS; n += 1) seconds.push(await installIn(suite));
      rows.push({ figure: `apt-get install in ${suite}, median of ${INSTALLATIONS}`, unit: 's', ours: median(seconds), atMost: 10 });
      rows.push({ figure: 'the same, worst', unit: 's', ours: worst(seconds) });
    }
    if (machine === undefined) throw new Error('no container');
    const installed = machine;
    rows.push(...(await resources(installed, minutes, progress)));

    progress(`${STARTS} starts`);
    const starts = await repeated(installed, STARTS, async () => {
      await installed.systemctl('restart', UNIT);
      return startSeconds(installed);
    });
    rows.push({ figure: `start of the unit to READY, median of ${STARTS}`, unit: 's', ours: median(starts), atMost: 1.5 });
    rows.push({ figure: 'the same, worst', unit: 's', ours: worst(starts), atMost: 1.5 });

    progress(`${FREEZES} freezes and ${KILLS} kills`);
    const frozen = await repeated(installed, FREEZES, () => secondsUntilBack(installed, 'STOP'));
    rows.push({ figure: `frozen (SIGSTOP) until back, worst of ${FREEZES}`, unit: 's', ours: worst(frozen), atMost: WATCHDOG_SECONDS + 5 });
    const killed = await repeated(installed, KILLS, () => secondsUntilBack(installed, 'KILL'));
    rows.push({ figure: `SIGKILL until back, worst of ${KILLS}`, unit: 's', ours: worst(killed) });

    const last = SUITES.at(-1);
    return {
      rows,
      notes: [
        `The package ${version}, in containers whose process 1 is a real systemd, on this machine's disk; only loopback as network. Everything after the installations was measured in ${last}.`,
        `Installation: the \`.deb\` lies in the container and what it depends on is installed; dpkg writes safely (fsync). It ends when the service is active.`,
        `READY: by systemd's own time stamps, from forking to the notification; a first sample is taken and REST answers.`,
        `Memory and CPU: of the service's process after ${WARM_UP_SECONDS} s, over ${minutes} min, asked by nobody.`,
        'Back: a new process has published a health status. The watchdog’s 10 s count from the last ping before the freeze.',
      ],
    };
  } finally {
    await teardowns.run();
  }
});
