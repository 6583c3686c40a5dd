/** CPU time of one sample of all four metrics, compared with the same sample by systeminformation. */
import { cpuTemperature, currentLoad, fsSize, mem } from 'systeminformation';
import { CpuSource } from '../src/collect/cpu.ts';
import { DiskSource } from '../src/collect/disk.ts';
import { MemorySource } from '../src/collect/memory.ts';
import { Probe } from '../src/collect/probe.ts';
import { TemperatureSource } from '../src/collect/temperature.ts';
import { ProcessMeter } from '../testkit/machine/process-meter.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark } from './support/program.ts';
import { sysTree } from './support/sensor-tree.ts';
import { median, pause } from './support/statistics.ts';

const BATCHES = 100;
const SAMPLES_PER_BATCH = 100;
const BASELINE_BATCHES = 10;
/** The kernel counts the CPU time of child processes in ticks of 10 ms; with this batch size, a tick is a few percent of a batch. */
const BASELINE_SAMPLES_PER_BATCH = 10;
const SECONDS_AT_ONE_HERTZ = 30;

const now = (): number => performance.now() / 1000;
const self = new ProcessMeter('self');

/** CPU time of all threads of this process and of its child processes that have exited. */
function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system + self.childrenCpuSeconds() * 1e6;
}

/** CPU time per sample in each of several batches. */
async function measureBatches(batches: number, samplesPerBatch: number, sample: () => Promise<unknown>): Promise<number[]> {
  const figures: number[] = [];
  for (let batch = 0; batch < batches; batch += 1) {
    const before = cpuMicroseconds();
    for (let n = 0; n < samplesPerBatch; n += 1) await sample();
    figures.push((cpuMicroseconds() - before) / samplesPerBatch);
  }
  return figures;
}

function takeSample(probes: readonly Probe[]): Promise<void> {
  return new Promise((resolve) => {
    let waiting = probes.length;
    const settled = (): void => {
      waiting -= 1;
      if (waiting === 0) resolve();
    };
    for (const probe of probes) probe.start(settled);
  });
}

/**
 * systeminformation returns a cached currentLoad for 0.2 s. Advancing the wall clock by a second before each sample makes it
 * measure every time.
 */
function withAdvancingClock(sample: () => Promise<unknown>): () => Promise<unknown> {
  const wallClock = Date.now;
  let aheadMs = 0;
  Date.now = () => wallClock() + aheadMs;
  return () => {
    aheadMs += 1000;
    return sample();
  };
}

/** CPU time per sample at one sample per second, timer included. */
async function measureAtOneHertz(sample: () => Promise<unknown>): Promise<number> {
  await pause(1);
  const before = cpuMicroseconds();
  for (let n = 0; n < SECONDS_AT_ONE_HERTZ; n += 1) {
    await sample();
    await pause(1);
  }
  return (cpuMicroseconds() - before) / SECONDS_AT_ONE_HERTZ;
}

await benchmark('sample', async ({ cleanup, progress }): Promise<Outcome> => {
  const sys = await sysTree(cleanup);
  const temperature = new TemperatureSource(sys.path, null, now, () => {});
  await temperature.search();
  const sources = [new CpuSource('/proc', now), new MemorySource('/proc'), new DiskSource(['/'], now), temperature];
  const probes = sources.map((source) => new Probe(source, now));
  const sample = (): Promise<void> => takeSample(probes);

  progress('edge-health');
  await measureBatches(BATCHES / 10, SAMPLES_PER_BATCH, sample);
  await pause(0.5); // The first CPU figure needs two readings at different times.
  const edgeHealth = await measureBatches(BATCHES, SAMPLES_PER_BATCH, sample);
  for (const probe of probes) {
    const { metric, problem } = probe.state(now());
    if (problem !== null) throw new Error(`${metric} was not measured: ${problem}`);
  }
  progress(`edge-health, one sample per second, ${SECONDS_AT_ONE_HERTZ} s`);
  const slow = await measureAtOneHertz(sample);
  for (const { source } of probes) source.close();

  progress('systeminformation');
  const baselineSample = withAdvancingClock(() => Promise.all([currentLoad(), mem(), fsSize(), cpuTemperature()]));
  await measureBatches(1, BASELINE_SAMPLES_PER_BATCH, baselineSample);
  const baseline = await measureBatches(BASELINE_BATCHES, BASELINE_SAMPLES_PER_BATCH, baselineSample);

  progress(`systeminformation, one sample per second, ${SECONDS_AT_ONE_HERTZ} s`);
  const baselineSlow = await measureAtOneHertz(baselineSample);

  const name = 'systeminformation';
  return {
    rows: [
      {
        figure: 'CPU of one sample of all four metrics',
        unit: 'µs',
        value: median(edgeHealth),
        baseline: { name, value: median(baseline) },
        atMost: 100,
        timesLess: 300,
      },
      {
        figure: 'the same at one sample per second: cold caches, timer included',
        unit: 'µs',
        value: slow,
        baseline: { name, value: baselineSlow },
      },
    ],
    notes: [
      `Median of ${BATCHES} batches of ${SAMPLES_PER_BATCH} samples, one after the other through the real sources and their probes: user and system time of all threads by \`process.cpuUsage()\`, in batches because the thread pool finishes some of its work after a sample is complete. Node has the options that \`bin/edge-health\` gives it.`,
      `systeminformation: \`currentLoad\`, \`mem\`, \`fsSize\` and \`cpuTemperature\` at once in the same process, ${BASELINE_BATCHES} batches of ${BASELINE_SAMPLES_PER_BATCH}; the CPU of the processes it starts (cutime and cstime of /proc/self/stat) is added. \`currentLoad\` repeats an answer younger than 0.2 s; its clock is set forward between samples so that it measures each time.`,
      sys.note,
    ],
  };
});
