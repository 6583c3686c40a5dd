/** Faults of sensors: sources of the metrics vanish and come back. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type Alert, isAbout } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { METRICS, type Metric } from '../../src/core/metrics.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { dropIn, UNIT } from '../../testkit/container/appliance.ts';
import type { Container } from '../../testkit/container/container.ts';
import { LOAD_FOLDER } from '../../testkit/weeks/alert-load.ts';
import { type FaultBench, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('sensors');

const ROOT = '/srv/sensors';
const SYSFS = `${ROOT}/sysfs`;
const INTERFACE = 'sensor0';
/** The file with millidegrees is the MTU of an interface: a sysfs file that appears and vanishes with it, as that of a driver does. */
const MILLIDEGREES = 45_000;
const COPY_MS = 40;
/** The gauges of the metrics in /metrics. */
const GAUGES: Readonly<Record<Metric, string>> = {
  cpu_percent: 'edge_health_cpu_usage_ratio',
  memory_percent: 'edge_health_memory_usage_ratio',
  disk_percent: 'edge_health_disk_usage_ratio',
  temperature: 'edge_health_temperature_celsius',
};

/** Boots a machine whose sensors the test controls: procfs and sysfs are read below /srv/sensors. */
const SENSOR_FILES: Readonly<Record<string, string>> = {
  [dropIn('sensors')]:
    `[Service]\nExecStart=\nExecStart=/usr/lib/edge-health/bin/with-ros2 /usr/bin/edge-health run --proc ${ROOT}/proc --sys ${ROOT}/sys\n`,
  [`${ROOT}/sys/class/thermal/thermal_zone0/type`]: 'cpu-thermal\n',
  [`${ROOT}/proc/none`]: '',
};

/** The sensors of a machine: temperature is a file of a real sysfs, the counters of CPU and memory are copied from this machine all the time, and the disk is that of the alert load. */
class Sensors {
  readonly #machine: Container;
  #timer: NodeJS.Timeout | null = null;

  constructor(bench: FaultBench) {
    this.#machine = bench.machine;
    bench.teardown(() => this.stop());
  }

  async start(): Promise<void> {
    const zone = `${ROOT}/sys/class/thermal/thermal_zone0`;
    // The container's own /sys shows the interfaces of the machine below it.
    await this.#machine.sh(`mkdir -p ${SYSFS}; mountpoint -q ${SYSFS} || mount -t sysfs sysfs ${SYSFS}
      ln -sfn ${SYSFS}/class/net/${INTERFACE}/mtu ${zone}/temp; ln -sfn /proc/sys ${ROOT}/proc/sys; ln -sfn /proc/1 ${ROOT}/proc/1`);
    this.temperature(true);
    this.counters(true);
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** As a driver that is loaded or unloaded: a reader that has the file open then gets ENODEV. */
  temperature(isPresent: boolean): void {
    const { host } = this.#machine;
    if (!isPresent) {
      host.ip('link', 'del', INTERFACE);
      return;
    }
    // With its value from the start.
    host.ip('link', 'add', INTERFACE, 'mtu', String(MILLIDEGREES), 'type', 'bridge');
  }

  /** The counters of CPU and memory in /proc; absent: empty files, as of a procfs that is not mounted correctly. */
  counters(arePresent: boolean): void {
    this.stop();
    if (arePresent) this.#timer = setInterval(() => this.#copyCounters(), COPY_MS);
    for (const name of ['stat', 'meminfo']) this.#write(name, arePresent ? readFileSync(`/proc/${name}`) : Buffer.alloc(0));
  }

  /** The file system that is measured; absent: unmounted, and its folder removed. */
  async disk(isPresent: boolean): Promise<void> {
    await this.#machine.sh(isPresent ? `mkdir -p ${LOAD_FOLDER}; mount ${LOAD_FOLDER}` : `umount -l ${LOAD_FOLDER}; rmdir ${LOAD_FOLDER}`);
  }

  #copyCounters(): void {
    for (const name of ['stat', 'meminfo']) this.#write(name, readFileSync(`/proc/${name}`));
  }

  #write(name: string, content: Buffer): void {
    const pid = this.#machine.pid1;
    if (pid === null) return;
    const file = `/proc/${pid}/root${ROOT}/proc/${name}`;
    writeFileSync(`${file}.new`, content);
    renameSync(`${file}.new`, file);
  }
}

const TIMEOUT_SECONDS = 2;
/** An absent sensor is searched for this often. */
const SEARCH_SECONDS = 10;
/** Two sampling intervals and the time of a reading: statuses may have been in progress at the start. */
const SETTLED_MS = 600;
/** Only bounds a broken test. */
const LIMIT_SECONDS = 120;

const BOOT = { files: SENSOR_FILES, config: { alerts: { sensor_timeout_seconds: TIMEOUT_SECONDS } } } as const;

/** The values of a metric in a span, from the event stream, and from the topic, where NaN stands for null. */
function valuesOf(bench: FaultBench, metric: Metric, fromMs: number, toMs: number): { stream: (number | null)[]; topic: unknown[] } {
  const inSpan = ({ it }: { it: HealthStatus }): boolean => Date.parse(it.timestamp) >= fromMs && Date.parse(it.timestamp) < toMs;
  return {
    stream: bench.stream.statuses.filter(inSpan).map(({ it }) => it[metric]),
    topic: (bench.topic?.statuses ?? []).filter(inSpan).map(({ it }) => it[metric]),
  };
}

async function untilMeasured(bench: FaultBench, metrics: readonly Metric[]): Promise<number> {
  const began = performance.now();
  await bench.machine.untilJson<HealthStatus>(
    '/health',
    (health) => metrics.every((metric) => typeof health[metric] === 'number'),
    LIMIT_SECONDS,
  );
  return (performance.now() - began) / 1000;
}

/** Checks everything published about metrics that cannot be read, from the moment on when they could not. */
async function checkUnavailable(bench: FaultBench, metrics: readonly Metric[], fromMs: number): Promise<void> {
  const toMs = Date.now();
  const { machine } = bench;
  for (const metric of metrics) {
    const { stream, topic } = valuesOf(bench, metric, fromMs + SETTLED_MS, toMs);
    bench.check(`${metric} is null in every event`, stream.length > 0 && stream.every((value) => value === null), stream.slice(0, 10));
    bench.check(`and NaN on the topic`, topic.length > 0 && topic.every((value) => value === 'NaN'), topic.slice(0, 10));
  }
  for (const metric of METRICS.filter((name) => !metrics.includes(name))) {
    const { stream } = valuesOf(bench, metric, fromMs, toMs);
    // While this process is busy for a third of a second, the copied counters of the CPU stand still.
    const mostNulls = metric === 'cpu_percent' ? stream.length / 10 : 0;
    const nulls = stream.filter((value) => typeof value !== 'number');
    bench.check(`${metric} is measured as before`, stream.length > 0 && nulls.length <= mostNulls, stream.slice(0, 10));
  }
  const { collectors } = await machine.json<StatusDocument>('/status');
  const problems = collectors.filter(({ available, problem }) => !available && problem !== null).map(({ metric }) => metric);
  bench.check('/status reports the problem of each', problems.toSorted().join() === metrics.toSorted().join(), collectors);
  const csv = await (
    await fetch(`${await machine.url()}/health/history?hours=1&limit=1&order=desc`, { headers: { accept: 'text/csv' } })
  ).text();
  const [names = '', values = ''] = csv.trim().split(/\r?\n/);
  const cells = Object.fromEntries(names.split(',').map((name, index) => [name, values.split(',')[index]]));
  bench.check(
    'CSV leaves it empty',
    metrics.every((metric) => cells[metric] === ''),
    csv,
  );
  const exposed = (await (await machine.http('/metrics')).text()).split('\n');
  const gauges = metrics.map((metric) => `${GAUGES[metric]}{`);
  bench.check('/metrics does not have it', !exposed.some((line) => gauges.some((gauge) => line.startsWith(gauge))), exposed);
}

/** An ERROR about the disk names its path. */
const metricOf = (alert: Alert): Metric => METRICS.find((metric) => isAbout(alert, metric)) as Metric;

async function errorsOf(bench: FaultBench, metrics: readonly Metric[], resolved: boolean): Promise<Alert[]> {
  const { data } = await bench.machine.json<{ data: Alert[] }>(
    `/alerts?severity=ERROR&resolved=${resolved}&from=${new Date(bench.beganMs).toISOString()}`,
  );
  return data.filter((alert) => metrics.includes(metricOf(alert)));
}

const isOneEach = (alerts: readonly Alert[], metrics: readonly Metric[]): boolean =>
  alerts.map(metricOf).toSorted().join() === metrics.toSorted().join();

async function checkRaised(bench: FaultBench, metrics: readonly Metric[]): Promise<Alert[]> {
  const found = async (): Promise<boolean> => isOneEach(await errorsOf(bench, metrics, false), metrics);
  await bench.checkAsync('an ERROR is raised for each', async () => {
    await bench.machine.until(found, LIMIT_SECONDS, () => 'it is not raised');
    return true;
  });
  return errorsOf(bench, metrics, false);
}

async function checkResolved(bench: FaultBench, raised: readonly Alert[]): Promise<void> {
  const ids = raised
    .map(({ alert_id }) => alert_id)
    .toSorted()
    .join();
  await bench.checkAsync('the same ERRORs are resolved, and there were no others', async () => {
    const done = async (): Promise<boolean> => (await errorsOf(bench, METRICS, false)).length === 0;
    await bench.machine.until(done, LIMIT_SECONDS, () => 'an ERROR stays open');
    return (
      (await errorsOf(bench, METRICS, true))
        .map(({ alert_id }) => alert_id)
        .toSorted()
        .join() === ids
    );
  });
  const received = bench.stream.alerts.map(({ it }) => it).filter(({ severity }) => severity === 'ERROR');
  bench.check('each was published twice: raised, resolved', received.length === 2 * raised.length, received);
}

fault(
  'sensor-gone-and-back',
  {
    core: true,
    expected:
      'the driver of the temperature sensor is removed: null, never 0, an ERROR; everything else continues; it is back: measured again within 12 s, the ERROR resolved',
    boot: BOOT,
  },
  async (bench) => {
    const sensors = new Sensors(bench);
    await sensors.start();
    await untilMeasured(bench, METRICS);
    bench.beganMs = Date.now();
    await pause(1);
    const goneMs = await bench.inject(() => sensors.temperature(false));
    const raised = await checkRaised(bench, ['temperature']);
    await pause(1);
    await checkUnavailable(bench, ['temperature'], goneMs);
    bench.check(
      'the alert has the time without a reading',
      (raised[0]?.value ?? 0) > TIMEOUT_SECONDS && raised[0]?.threshold === TIMEOUT_SECONDS,
      raised,
    );
    sensors.temperature(true);
    const recoverySeconds = await untilMeasured(bench, ['temperature']);
    bench.target('it is measured again within 12 s', recoverySeconds <= SEARCH_SECONDS + 2, `${recoverySeconds.toFixed(1)} s`);
    await checkResolved(bench, raised);
    const { metrics } = await bench.machine.json<{ metrics: Record<Metric, { min: number; max: number }> }>(
      `/health/aggregate?from=${new Date(bench.beganMs).toISOString()}`,
    );
    bench.check(
      'the statistics have only the true temperature',
      metrics.temperature.min === 45 && metrics.temperature.max === 45,
      metrics.temperature,
    );
    const figures = await bench.finish({
      observed: `null meanwhile, ERROR after ${raised[0]?.value.toFixed(1)} s, measured again ${recoverySeconds.toFixed(1)} s after it was back`,
      recoverySeconds,
    });
    sensors.temperature(false);
    return figures;
  },
);

fault(
  'sensors-all-gone-and-back',
  {
    expected:
      'nothing can be measured: UNKNOWN, all null, an ERROR each, one episode also over a restart; statuses continue; all back: measured, resolved',
    boot: { ...BOOT, alertLoad: false },
  },
  async (bench) => {
    const sensors = new Sensors(bench);
    await sensors.start();
    await untilMeasured(bench, METRICS);
    bench.beganMs = Date.now();
    await pause(1);
    const goneMs = await bench.inject(async () => {
      sensors.temperature(false);
      sensors.counters(false);
      await sensors.disk(false);
    });
    const raised = await checkRaised(bench, METRICS);
    await pause(1);
    await checkUnavailable(bench, METRICS, goneMs);
    const health = await bench.machine.json<HealthStatus>('/health');
    bench.check('the status is UNKNOWN', health.status === 'UNKNOWN', health);
    const restarted = Date.now();
    await bench.machine.systemctl('restart', UNIT);
    await bench.machine.untilJson<HealthStatus>('/health', ({ timestamp }) => Date.parse(timestamp) > restarted, LIMIT_SECONDS);
    await pause(TIMEOUT_SECONDS + 1.5);
    const open = await errorsOf(bench, METRICS, false);
    const idsOf = (alerts: readonly Alert[]): string =>
      alerts
        .map(({ alert_id }) => alert_id)
        .toSorted()
        .join();
    bench.check('after a restart the same ERRORs are open', idsOf(open) === idsOf(raised), open);
    sensors.temperature(true);
    sensors.counters(true);
    await sensors.disk(true);
    const recoverySeconds = await untilMeasured(bench, METRICS);
    bench.target('all is measured again within 12 s', recoverySeconds <= SEARCH_SECONDS + 2, `${recoverySeconds.toFixed(1)} s`);
    await checkResolved(bench, raised);
    const figures = await bench.finish({
      observed: `UNKNOWN and null meanwhile, four ERRORs, the same after a restart; measured again after ${recoverySeconds.toFixed(1)} s`,
      recoverySeconds,
    });
    sensors.temperature(false);
    return figures;
  },
);

fault(
  'sensor-flickers',
  {
    expected: 'a sensor that is present for moments only: one ERROR, no threshold alert, only true values',
    boot: { ...BOOT, config: { alerts: { sensor_timeout_seconds: TIMEOUT_SECONDS, clear_after_seconds: 15 } }, alertLoad: false },
  },
  async (bench) => {
    const sensors = new Sensors(bench);
    await sensors.start();
    await untilMeasured(bench, METRICS);
    bench.beganMs = Date.now();
    await pause(1);
    sensors.temperature(false);
    const raised = await checkRaised(bench, ['temperature']);
    for (let times = 0; times < 3; times += 1) {
      sensors.temperature(true);
      await untilMeasured(bench, ['temperature']);
      await pause(0.3);
      sensors.temperature(false);
      await pause(TIMEOUT_SECONDS + 1);
    }
    const open = await errorsOf(bench, ['temperature'], false);
    bench.check('the same ERROR is open all the time', open.length === 1 && open[0]?.alert_id === raised[0]?.alert_id, open);
    const { data } = await bench.machine.json<{ data: Alert[] }>(
      `/alerts?changes=true&metric=temperature&from=${new Date(bench.beganMs).toISOString()}`,
    );
    bench.check('and there is no other change', data.length === 1, data);
    const values = new Set(valuesOf(bench, 'temperature', bench.beganMs, Date.now()).stream);
    bench.check(
      'only true values',
      [...values].every((value) => value === null || value === 45),
      [...values],
    );
    sensors.temperature(true);
    const recoverySeconds = await untilMeasured(bench, ['temperature']);
    await checkResolved(bench, raised);
    const figures = await bench.finish({ observed: 'present three times for 0.3 s: one ERROR from first to last', recoverySeconds });
    sensors.temperature(false);
    return figures;
  },
);
