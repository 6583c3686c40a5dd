import type { Alert } from '../../../src/core/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import { METRICS, type Metric } from '../../../src/core/metrics.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { UNIT } from '../../../testkit/container/appliance.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import { SENSOR_FILES, Sensors } from './sensors-bench.ts';

const GROUP = 'sensors';
const TIMEOUT_SECONDS = 2;
/** A sensor that is gone is looked for this often. */
const SEARCH_SECONDS = 10;
/** Two slots of the grid and what a reading takes: statuses before that may have been under way. */
const SETTLED_MS = 600;

const BOOT = { files: SENSOR_FILES, config: { alerts: { sensor_timeout_seconds: TIMEOUT_SECONDS } } } as const;

/** What is heard of a metric: on the event stream, and on the topic, where NaN is what null is in JSON. */
function heard(arena: Arena, metric: Metric, fromMs: number, toMs: number): { stream: (number | null)[]; topic: unknown[] } {
  const inSpan = ({ it }: { it: HealthStatus }): boolean => Date.parse(it.timestamp) >= fromMs && Date.parse(it.timestamp) < toMs;
  return {
    stream: arena.stream.statuses.filter(inSpan).map(({ it }) => it[metric]),
    topic: (arena.topic?.statuses ?? []).filter(inSpan).map(({ it }) => it[metric]),
  };
}

async function untilMeasured(arena: Arena, metrics: readonly Metric[], seconds: number): Promise<number> {
  const began = performance.now();
  await arena.machine.untilJson<HealthStatus>(
    '/health',
    (health) => metrics.every((metric) => typeof health[metric] === 'number'),
    seconds,
  );
  return (performance.now() - began) / 1000;
}

/** Checks everything that is said of metrics that cannot be read, between two moments in which they could not. */
async function mustBeUnavailable(arena: Arena, metrics: readonly Metric[], fromMs: number): Promise<void> {
  const toMs = Date.now();
  const { machine } = arena;
  for (const metric of metrics) {
    const { stream, topic } = heard(arena, metric, fromMs + SETTLED_MS, toMs);
    arena.must(`${metric} is null in every event`, stream.length > 0 && stream.every((value) => value === null), stream.slice(0, 10));
    arena.must(`and NaN on the topic`, topic.length > 0 && topic.every((value) => value === 'NaN'), topic.slice(0, 10));
  }
  for (const metric of METRICS.filter((name) => !metrics.includes(name))) {
    const { stream } = heard(arena, metric, fromMs, toMs);
    arena.must(
      `${metric} goes on being measured`,
      stream.length > 0 && stream.every((value) => typeof value === 'number'),
      stream.slice(0, 10),
    );
  }
  const { collectors } = await machine.json<StatusDocument>('/status');
  const problems = collectors.filter(({ available, problem }) => !available && problem !== null).map(({ metric }) => metric);
  arena.must('/status says what is wrong with which', problems.toSorted().join() === metrics.toSorted().join(), collectors);
  const csv = await (
    await fetch(`${await machine.url()}/health/history?hours=1&limit=1&order=desc`, { headers: { accept: 'text/csv' } })
  ).text();
  const [names = '', values = ''] = csv.trim().split(/\r?\n/);
  const cells = Object.fromEntries(names.split(',').map((name, index) => [name, values.split(',')[index]]));
  arena.must(
    'CSV leaves it empty',
    metrics.every((metric) => cells[metric] === ''),
    csv,
  );
  const exposed = (await (await machine.http('/metrics')).text())
    .split('\n')
    .filter((line) => /^edge_health_(cpu|memory|disk|temperature)/.test(line));
  arena.must('/metrics has no 0 for it', !exposed.some((line) => / 0$/.test(line)), exposed);
}

async function errorsOf(arena: Arena, metrics: readonly Metric[], resolved: boolean): Promise<Alert[]> {
  const { data } = await arena.machine.json<{ data: Alert[] }>(
    `/alerts?severity=ERROR&resolved=${resolved}&from=${new Date(arena.beganMs).toISOString()}`,
  );
  return data.filter(({ metric }) => metrics.includes(metric as Metric));
}

const isOneEach = (alerts: readonly Alert[], metrics: readonly Metric[]): boolean =>
  alerts
    .map(({ metric }) => metric)
    .toSorted()
    .join() === metrics.toSorted().join();

async function mustHaveRaised(arena: Arena, metrics: readonly Metric[]): Promise<Alert[]> {
  const found = async (): Promise<boolean> => isOneEach(await errorsOf(arena, metrics, false), metrics);
  await arena.mustBe('an ERROR is raised for each', async () => {
    await arena.machine.until(found, TIMEOUT_SECONDS + 3, () => 'it is not raised in time');
    return true;
  });
  return errorsOf(arena, metrics, false);
}

async function mustHaveResolved(arena: Arena, raised: readonly Alert[]): Promise<void> {
  const ids = raised
    .map(({ alert_id }) => alert_id)
    .toSorted()
    .join();
  await arena.mustBe('the same ERRORs are resolved, and there were no others', async () => {
    const done = async (): Promise<boolean> => (await errorsOf(arena, METRICS, false)).length === 0;
    await arena.machine.until(done, 10, () => 'an ERROR stays open');
    return (
      (await errorsOf(arena, METRICS, true))
        .map(({ alert_id }) => alert_id)
        .toSorted()
        .join() === ids
    );
  });
  const told = [...arena.stream.alerts].map(({ it }) => it).filter(({ severity }) => severity === 'ERROR');
  arena.must('each was told twice: raised, resolved', told.length === 2 * raised.length, told);
}

export const sensorGone: Fault = {
  name: 'sensor-gone-and-back',
  group: GROUP,
  core: true,
  expected:
    'the driver of the temperature sensor goes: null, never 0, an ERROR; everything else goes on; it comes back: measured again within 12 s, the ERROR resolved',
  boot: BOOT,
  async run(arena) {
    const sensors = new Sensors(arena);
    await sensors.start();
    await untilMeasured(arena, METRICS, SEARCH_SECONDS + 5);
    arena.beganMs = Date.now();
    await pause(1);
    const goneMs = await arena.strike(() => sensors.temperature(false));
    const raised = await mustHaveRaised(arena, ['temperature']);
    await pause(1);
    await mustBeUnavailable(arena, ['temperature'], goneMs);
    arena.must(
      'the alert says how long it has been silent',
      (raised[0]?.value ?? 0) > TIMEOUT_SECONDS && raised[0]?.threshold === TIMEOUT_SECONDS,
      raised,
    );
    sensors.temperature(true);
    const recoverySeconds = await untilMeasured(arena, ['temperature'], SEARCH_SECONDS + 5);
    arena.must('it is measured again within 12 s', recoverySeconds <= SEARCH_SECONDS + 2, `${recoverySeconds} s`);
    await mustHaveResolved(arena, raised);
    const { metrics } = await arena.machine.json<{ metrics: Record<Metric, { min: number; max: number }> }>(
      `/health/aggregate?from=${new Date(arena.beganMs).toISOString()}`,
    );
    arena.must(
      'no temperature but the true one is in the statistics',
      metrics.temperature.min === 45 && metrics.temperature.max === 45,
      metrics.temperature,
    );
    const figures = await arena.finish({
      observed: `null meanwhile, ERROR after ${raised[0]?.value.toFixed(1)} s, measured again ${recoverySeconds.toFixed(1)} s after it was back`,
      recoverySeconds,
    });
    sensors.temperature(false);
    return figures;
  },
};

export const sensorsAllGone: Fault = {
  name: 'sensors-all-gone-and-back',
  group: GROUP,
  core: false,
  expected:
    'nothing can be measured: UNKNOWN, all null, an ERROR each, one episode also over a restart; statuses go on; all back: measured, resolved',
  boot: { ...BOOT, tide: false },
  async run(arena) {
    const sensors = new Sensors(arena);
    await sensors.start();
    await untilMeasured(arena, METRICS, SEARCH_SECONDS + 5);
    arena.beganMs = Date.now();
    await pause(1);
    const goneMs = await arena.strike(async () => {
      sensors.temperature(false);
      sensors.counters(false);
      await sensors.disk(false);
    });
    const raised = await mustHaveRaised(arena, METRICS);
    await pause(1);
    await mustBeUnavailable(arena, METRICS, goneMs);
    const health = await arena.machine.json<HealthStatus>('/health');
    arena.must('the status is UNKNOWN', health.status === 'UNKNOWN', health);
    const restarted = Date.now();
    await arena.machine.systemctl('restart', UNIT);
    await arena.machine.untilJson<HealthStatus>('/health', ({ timestamp }) => Date.parse(timestamp) > restarted, 20);
    await pause(TIMEOUT_SECONDS + 1.5);
    const open = await errorsOf(arena, METRICS, false);
    const idsOf = (alerts: readonly Alert[]): string =>
      alerts
        .map(({ alert_id }) => alert_id)
        .toSorted()
        .join();
    arena.must('after a restart the same ERRORs are open', idsOf(open) === idsOf(raised), open);
    sensors.temperature(true);
    sensors.counters(true);
    await sensors.disk(true);
    const recoverySeconds = await untilMeasured(arena, METRICS, SEARCH_SECONDS + 5);
    arena.must('all is measured again within 12 s', recoverySeconds <= SEARCH_SECONDS + 2, `${recoverySeconds} s`);
    await mustHaveResolved(arena, raised);
    const figures = await arena.finish({
      observed: `UNKNOWN and null meanwhile, four ERRORs, the same after a restart; measured again after ${recoverySeconds.toFixed(1)} s`,
      recoverySeconds,
    });
    sensors.temperature(false);
    return figures;
  },
};

export const sensorFlickers: Fault = {
  name: 'sensor-flickers',
  group: GROUP,
  core: false,
  expected: 'a sensor that is there for moments only: one ERROR, no threshold alert, no value but true ones',
  boot: { ...BOOT, config: { alerts: { sensor_timeout_seconds: TIMEOUT_SECONDS, clear_after_seconds: 15 } }, tide: false },
  async run(arena) {
    const sensors = new Sensors(arena);
    await sensors.start();
    await untilMeasured(arena, METRICS, SEARCH_SECONDS + 5);
    arena.beganMs = Date.now();
    await pause(1);
    sensors.temperature(false);
    const raised = await mustHaveRaised(arena, ['temperature']);
    for (let times = 0; times < 3; times += 1) {
      sensors.temperature(true);
      await untilMeasured(arena, ['temperature'], SEARCH_SECONDS + 5);
      await pause(0.3);
      sensors.temperature(false);
      await pause(TIMEOUT_SECONDS + 1);
    }
    const open = await errorsOf(arena, ['temperature'], false);
    arena.must('the same ERROR is open all the time', open.length === 1 && open[0]?.alert_id === raised[0]?.alert_id, open);
    const { data } = await arena.machine.json<{ data: Alert[] }>(
      `/alerts?changes=true&metric=temperature&from=${new Date(arena.beganMs).toISOString()}`,
    );
    arena.must('and nothing else was said', data.length === 1, data);
    const values = new Set(heard(arena, 'temperature', arena.beganMs, Date.now()).stream);
    arena.must(
      'no value but true ones',
      [...values].every((value) => value === null || value === 45),
      [...values],
    );
    sensors.temperature(true);
    const recoverySeconds = await untilMeasured(arena, ['temperature'], SEARCH_SECONDS + 5);
    await pause(15);
    await mustHaveResolved(arena, raised);
    const figures = await arena.finish({ observed: 'three times there for 0.3 s: one ERROR from first to last', recoverySeconds });
    sensors.temperature(false);
    return figures;
  },
};
