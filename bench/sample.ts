/** CPU of one sample of all four metrics, against the same through systeminformation. */
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
const SAMPLES_A_BATCH = 100;
const RIVAL_BATCHES = 10;
/** Enough for the ticks in which the kernel shows the CPU of children (10 ms) to be a few percent of a batch. */
const RIVAL_SAMPLES_A_BATCH = 10;
const SECONDS_AT_ONE_HERTZ = 30;

const now = (): number => performance.now() / 1000;
const self = new ProcessMeter('self');

/** All threads of this process, and the children that it waited for. */
function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system + self.childrenCpuSeconds() * 1e6;
}

/** CPU a sample in each of several batches. */
async function inBatches(batches: number, samplesABatch: number, sample: () => Promise<unknown>): Promise<number[]> {
  const figures: number[] = [];
  for (let batch = 0; batch < batches; batch += 1) {
    const before = cpuMicroseconds();
    for (let n = 0; n < samplesABatch; n += 1) await sample();
    figures.push((cpuMicroseconds() - before) / samplesABatch);
  }
  return figures;
}

function sampleOf(probes: readonly Probe[]): Promise<void> {
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
 * systeminformation answers currentLoad from memory when it was asked less than 0.2 s ago. For it, every sample is a second
 * after the one before, however soon it comes.
 */
function eachASecondLater(sample: () => Promise<unknown>): () => Promise<unknown> {
  const wallClock = Date.now;
  let aheadMs = 0;
  Date.now = () => wallClock() + aheadMs;
  return () => {
    aheadMs += 1000;
    return sample();
  };
}

/** CPU a sample when a second lies between two of them, its timer included. */
async function atOneHertz(sample: () => Promise<unknown>): Promise<number> {
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
  const sample = (): Promise<void> => sampleOf(probes);

  progress('edge-health');
  await inBatches(BATCHES / 10, SAMPLES_A_BATCH, sample);
  await pause(0.5); // A first pair of CPU readings that lie apart.
  const ours = await inBatches(BATCHES, SAMPLES_A_BATCH, sample);
  for (const probe of probes) {
    const { metric, problem } = probe.state(now());
    if (problem !== null) throw new Error(`${metric} was not measured: ${problem}`);
  }
  progress(`edge-health, one sample a second, ${SECONDS_AT_ONE_HERTZ} s`);
  const slow = await atOneHertz(sample);
  for (const { source } of probes) source.close();

  progress('systeminformation');
  const rivalSample = eachASecondLater(() => Promise.all([currentLoad(), mem(), fsSize(), cpuTemperature()]));
  await inBatches(1, RIVAL_SAMPLES_A_BATCH, rivalSample);
  const rival = await inBatches(RIVAL_BATCHES, RIVAL_SAMPLES_A_BATCH, rivalSample);

  progress(`systeminformation, one sample a second, ${SECONDS_AT_ONE_HERTZ} s`);
  const rivalSlow = await atOneHertz(rivalSample);

  const name = 'systeminformation';
  return {
    rows: [
      {
        figure: 'CPU of one sample of all four metrics',
        unit: 'µs',
        ours: median(ours),
        rival: { name, value: median(rival) },
        atMost: 100,
        timesLess: 300,
      },
      {
        figure: 'the same at one sample a second: caches gone cold, timer included',
        unit: 'µs',
        ours: slow,
        rival: { name, value: rivalSlow },
      },
    ],
    notes: [
      `Median of ${BATCHES} batches of ${SAMPLES_A_BATCH} samples, one after the other through the real sources and their probes: user and system time of all threads by \`process.cpuUsage()\`, in batches because the thread pool finishes some of its work after a sample is complete. Node has the options that \`bin/edge-health\` gives it.`,
      `systeminformation: \`currentLoad\`, \`mem\`, \`fsSize\` and \`cpuTemperature\` at once in the same process, ${RIVAL_BATCHES} batches of ${RIVAL_SAMPLES_A_BATCH}; the CPU of the processes it starts (cutime and cstime of /proc/self/stat) is added. \`currentLoad\` repeats an answer younger than 0.2 s; its clock is put forward between samples, so that it measures each time.`,
      sys.note,
    ],
  };
});
