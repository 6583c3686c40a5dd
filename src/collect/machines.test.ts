import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { fixtureNames, materialiseFixture } from '../../testkit/machine/machines.ts';
import { until } from '../../testkit/wait.ts';
import type { Sample } from '../core/health-status.ts';
import { METRICS, type Metric } from '../core/metrics.ts';
import type { Clocks } from '../core/time/time.ts';
import { CpuSource } from './cpu.ts';
import { DiskSource } from './disk.ts';
import { MemorySource } from './memory.ts';
import { Probe } from './probe.ts';
import { Sampler } from './sampler.ts';
import { TemperatureSource } from './temperature.ts';

const clocks: Clocks = {
  monotonicSeconds: () => performance.now() / 1000,
  wallMilliseconds: () => Date.now(),
  bootSeconds: () => null,
};

/** All measurements of a machine, from its files to the samples. */
class Collector {
  readonly samples: Sample[] = [];
  readonly temperature: TemperatureSource;
  readonly sampler: Sampler;

  constructor(procRoot: string, sysRoot: string, diskPath: string, periodSeconds: number) {
    const now = (): number => clocks.monotonicSeconds();
    this.temperature = new TemperatureSource(sysRoot, null, now, () => {});
    const sources = [new CpuSource(procRoot, now), new MemorySource(procRoot), new DiskSource([diskPath], now), this.temperature];
    this.sampler = new Sampler(
      sources.map((source) => new Probe(source, now)),
      clocks,
      periodSeconds,
      (sample) => this.samples.push(sample),
    );
  }

  /** The first reading of a metric; undefined: there was none yet. */
  reading(metric: Metric): number | undefined {
    return this.samples.find(({ readings }) => readings[metric] !== null)?.readings[metric] ?? undefined;
  }
}

for (const name of fixtureNames()) {
  t.test(`${name}: from its files to a sample`, async (t) => {
    const { procRoot, sysRoot, root, expect } = materialiseFixture(t, name);
    const collector = new Collector(procRoot, sysRoot, root, 0.05);
    const { sampler } = collector;
    t.teardown(() => sampler.stop());
    await collector.temperature.search();
    const halves = ['stat', 'stat.later'].map((half) => readFileSync(join(procRoot, half)));
    const put = (half: Buffer | undefined): void => {
      writeFileSync(join(procRoot, 'next'), half ?? '');
      renameSync(join(procRoot, 'next'), join(procRoot, 'stat'));
    };
    sampler.start(0.05);
    let half = 0;
    let failures = 0;
    await until('there is a load', () => {
      if (collector.reading('cpu_percent') !== undefined) return true;
      const state = sampler.probeStates().find(({ metric }) => metric === 'cpu_percent');
      // Nothing has been read since the file was replaced.
      if (!state || state.failures === failures) return false;
      failures = state.failures;
      // The second half follows the first; the first is repeated if the load came too late for a sample.
      half = half === 1 && /no tick/.test(state.problem ?? '') ? 0 : 1;
      put(halves[half]);
      return false;
    });
    const others = METRICS.filter((metric) => metric !== 'temperature' || expect.temperatureCelsius !== null);
    await until('the others are read', () => others.every((metric) => collector.reading(metric) !== undefined));
    t.equal(collector.reading('cpu_percent'), expect.cpuPercent);
    t.equal(collector.reading('memory_percent'), expect.memoryPercent);
    t.equal(collector.reading('temperature') ?? null, expect.temperatureCelsius);
    t.type(collector.reading('disk_percent'), 'number');
  });
}

/** What the kernel reports about the children of this process: the running ones, and the page faults of those that have ended. */
function children(): { running: number; endedFaults: number } {
  const fields = (pid: string): string[] => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    } catch {
      return []; // It has ended meanwhile.
    }
  };
  const running = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && fields(pid)[1] === String(process.pid)).length;
  const own = fields('self');
  return { running, endedFaults: Number(own[8]) + Number(own[10]) };
}

t.test('the kernel reports every child process', async (t) => {
  const before = children();
  execFileSync('true');
  const after = children();
  t.equal(after.running, before.running);
  t.ok(after.endedFaults > before.endedFaults, 'one that has ended');
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  t.equal(children().running, before.running + 1, 'one that runs');
  child.kill();
  await ended;
  t.equal(children().running, before.running);
});

t.test('sampling starts no process, on a recorded machine or on this one', async (t) => {
  const { procRoot, sysRoot } = materialiseFixture(t, 'intel-nuc');
  const before = children();
  for (const collector of [new Collector(procRoot, sysRoot, '/', 0.01), new Collector('/proc', '/sys', temporaryFolder(t), 0.01)]) {
    const { sampler, samples } = collector;
    await collector.temperature.search();
    sampler.start(0);
    await until('30 samples', () => samples.length >= 30);
    const during = children();
    sampler.stop();
    t.same(during, before);
    t.ok(
      samples.some(({ readings }) => readings.memory_percent !== null && readings.disk_percent !== null),
      'and it did measure',
    );
  }
  t.same(children(), before);
});
