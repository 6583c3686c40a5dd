import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { materialiseFixture } from '../../testkit/machine/machines.ts';
import { until } from '../../testkit/wait.ts';
import type { Sample } from '../core/health-status.ts';
import { METRICS, type Metric } from '../core/metrics.ts';
import type { Clocks } from '../core/time/time.ts';
import { CpuSource } from './cpu.ts';
import { DiskSource, type Statfs } from './disk.ts';
import { MemorySource } from './memory.ts';
import { DEADLINE_SECONDS, Probe } from './probe.ts';
import { Sampler, type SamplerCounts } from './sampler.ts';
import type { ReadCallback, Source } from './source.ts';
import { TemperatureSource } from './temperature.ts';

const WALL_OFFSET_MS = 1_772_600_000_000;
const ORIGIN_SECONDS = 1024;

interface Due {
  readonly atSeconds: number;
  readonly action: () => void;
}

/** A computer whose time passes only while waiting and during work that the test defines; timers may be late, as on a real one. */
class Machine implements Clocks {
  /** How late every timer is. */
  latenessSeconds = 0;
  #nowSeconds = ORIGIN_SECONDS;
  #due: Due[] = [];

  monotonicSeconds(): number {
    return this.#nowSeconds;
  }

  wallMilliseconds(): number {
    return WALL_OFFSET_MS + this.#nowSeconds * 1000;
  }

  bootSeconds(): number {
    return this.#nowSeconds;
  }

  get timers(): number {
    return this.#due.length;
  }

  after(seconds: number, action: () => void): Due {
    const due = { atSeconds: this.#nowSeconds + seconds, action };
    this.#due.push(due);
    return due;
  }

  cancel(due: Due): void {
    this.#due = this.#due.filter((each) => each !== due);
  }

  /** The processor is busy, or taken away: nothing else happens in this time. */
  block(seconds: number): void {
    this.#nowSeconds += seconds;
  }

  /** Lets time pass until `seconds` after the origin. */
  runUntil(seconds: number): void {
    const end = ORIGIN_SECONDS + seconds;
    for (;;) {
      const next = this.#due.reduce<Due | null>((first, each) => (first && first.atSeconds <= each.atSeconds ? first : each), null);
      if (!next || next.atSeconds + this.latenessSeconds > end) break;
      this.cancel(next);
      this.#nowSeconds = Math.max(this.#nowSeconds, next.atSeconds + this.latenessSeconds);
      next.action();
    }
    this.#nowSeconds = Math.max(this.#nowSeconds, end);
  }

  /** Puts this machine's time in place of the real one while `body` runs, which must not wait for anything. */
  inPlace(body: () => void): void {
    const { setTimeout, clearTimeout, setImmediate, clearImmediate } = globalThis;
    const { wait } = Atomics;
    const cancel = (due: Due): void => this.cancel(due);
    Object.assign(globalThis, {
      setTimeout: (action: () => void, milliseconds: number) => this.after(milliseconds / 1000, action),
      clearTimeout: cancel,
      setImmediate: (action: () => void) => this.after(-this.latenessSeconds, action),
      clearImmediate: cancel,
    });
    Object.assign(Atomics, {
      wait: (_array: Int32Array, _index: number, _value: number, milliseconds: number) => this.block(milliseconds / 1000),
    });
    try {
      body();
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate, clearImmediate });
      Object.assign(Atomics, { wait });
    }
  }
}

/** A source that responds at once with its value, unless the test defines otherwise. */
class FakeSource implements Source {
  readonly metric: Metric;
  reads = 0;
  closed = 0;
  behave: (callback: ReadCallback) => void;

  constructor(metric: Metric, value = 50) {
    this.metric = metric;
    this.behave = (callback) => callback(null, value);
  }

  read(callback: ReadCallback): void {
    this.reads += 1;
    this.behave(callback);
  }

  close(): void {
    this.closed += 1;
  }
}

interface Taken {
  readonly interval: number;
  /** Seconds after the start at which it was passed on. */
  readonly atSeconds: number;
  readonly sample: Sample;
}

/** A sampler on a machine; interval 0 begins at once. */
class Bench {
  readonly machine = new Machine();
  readonly cpu = new FakeSource('cpu_percent', 10);
  readonly memory = new FakeSource('memory_percent', 20);
  readonly disk = new FakeSource('disk_percent', 30);
  readonly temperature = new FakeSource('temperature', 40);
  readonly sources = [this.cpu, this.memory, this.disk, this.temperature];
  readonly taken: Taken[] = [];
  readonly sampler: Sampler;
  onSample: (sample: Sample) => void = () => {};

  constructor(periodSeconds: number) {
    this.sampler = new Sampler(
      this.sources.map((source) => new Probe(source, () => this.machine.monotonicSeconds())),
      this.machine,
      periodSeconds,
      (sample) => {
        this.taken.push({ interval: sample.interval, atSeconds: this.machine.monotonicSeconds() - ORIGIN_SECONDS, sample });
        this.onSample(sample);
      },
    );
  }

  get intervals(): number[] {
    return this.taken.map(({ interval }) => interval);
  }

  get times(): number[] {
    return this.taken.map(({ atSeconds }) => atSeconds);
  }

  values(metric: Metric): (number | null)[] {
    return this.taken.map(({ sample }) => sample.readings[metric]);
  }
}

t.test('one sample per sampling interval, with all readings and the times of both clocks', async (t) => {
  const bench = new Bench(1);
  bench.machine.inPlace(() => {
    bench.sampler.start(0.25);
    t.equal(bench.taken.length, 0);
    bench.machine.runUntil(3.5);
  });
  t.same(bench.times, [0.25, 1.25, 2.25, 3.25]);
  t.same(
    bench.taken.map(({ sample }) => sample),
    bench.times.map((atSeconds, interval) => ({
      interval,
      monotonicSeconds: ORIGIN_SECONDS + atSeconds,
      timestampMs: WALL_OFFSET_MS + (ORIGIN_SECONDS + atSeconds) * 1000,
      readings: { cpu_percent: 10, memory_percent: 20, disk_percent: 30, temperature: 40 },
      disks: [],
    })),
  );
  t.same(bench.sampler.counts, { taken: 4, missed: 0 });
});

t.test('the first reading of a pair is taken at the start, before sampling interval 0', async (t) => {
  const bench = new Bench(1);
  bench.machine.inPlace(() => bench.sampler.start(0.25));
  t.same(
    bench.sources.map(({ reads }) => reads),
    [1, 1, 1, 1],
  );
});

t.test('a late sample does not shift the next ones', async (t) => {
  const bench = new Bench(1);
  bench.cpu.behave = (callback) => {
    if (bench.cpu.reads === 4) bench.machine.block(0.75); // In interval 2: the start has read once.
    callback(null, 10);
  };
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(5.5);
  });
  t.same(bench.times, [0, 1, 2.75, 3, 4, 5]);
  t.same(bench.intervals, [0, 1, 2, 3, 4, 5]);
  t.same(bench.sampler.counts, { taken: 6, missed: 0 });
});

t.test('the delays of late timers do not accumulate', async (t) => {
  const bench = new Bench(1);
  bench.machine.latenessSeconds = 0.125;
  bench.machine.inPlace(() => {
    bench.sampler.start(0.5);
    bench.machine.runUntil(100);
  });
  t.equal(bench.taken.length, 100);
  for (const { interval, atSeconds, sample } of bench.taken) {
    t.equal(atSeconds, interval + 0.625);
    t.equal(sample.monotonicSeconds, ORIGIN_SECONDS + 0.5 + interval, 'durations are judged by the start of the interval');
  }
});

t.test('samples missed during a sleep are counted, and the grid does not shift', async (t) => {
  const bench = new Bench(1);
  bench.cpu.behave = (callback) => {
    if (bench.cpu.reads === 4) bench.machine.block(3.5);
    callback(null, 10);
  };
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(8.5);
  });
  // Interval 2 takes until 5.5; 3 and 4 are gone, the sample of 5 is late, 6 is on time.
  t.same(bench.intervals, [0, 1, 2, 5, 6, 7, 8]);
  t.same(bench.times, [0, 1, 5.5, 5.5, 6, 7, 8]);
  t.same(bench.sampler.counts, { taken: 7, missed: 2 });
});

t.test('samples missed before the first one are counted too', async (t) => {
  const bench = new Bench(1);
  bench.machine.inPlace(() => {
    bench.sampler.start(0.5);
    bench.machine.block(3);
    bench.machine.runUntil(4);
  });
  t.same(bench.intervals, [2, 3]);
  t.same(bench.sampler.counts, { taken: 2, missed: 2 });
});

t.test('with any delays, every sample is taken within its sampling interval or counted as missed', async () => {
  const delays = fc.array(fc.double({ min: 0, max: 5, noNaN: true }), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(fc.constantFrom(0.001, 0.004, 0.01, 0.1, 0.25, 1, 10), delays, delays, (periodSeconds, blocks, answers) => {
      const bench = new Bench(periodSeconds);
      const { machine, cpu, disk } = bench;
      let expected = 0;
      bench.onSample = ({ interval, monotonicSeconds }) => {
        const { taken, missed } = bench.sampler.counts;
        if (taken !== bench.taken.length || taken + missed !== interval + 1)
          throw new Error(`${taken} + ${missed} at interval ${interval}`);
        if (interval < expected) throw new Error(`interval ${interval} after ${expected - 1}`);
        expected = interval + 1;
        const startSeconds = ORIGIN_SECONDS + (interval + 0.5) * periodSeconds;
        if (Math.abs(monotonicSeconds - startSeconds) > 1e-6) throw new Error(`interval ${interval} said to begin at ${monotonicSeconds}`);
        const into = (readSeconds - startSeconds) / periodSeconds;
        // The grid lets an interval begin 20 µs early.
        if (into < -0.021 || into >= 1 + 1e-6) throw new Error(`interval ${interval} measured ${into} periods after its start`);
      };
      let readSeconds = 0;
      cpu.behave = (callback) => {
        readSeconds = machine.monotonicSeconds();
        machine.block((blocks[cpu.reads % blocks.length] as number) * periodSeconds);
        callback(null, 10);
      };
      disk.behave = (callback) => machine.after((answers[disk.reads % answers.length] as number) * periodSeconds, () => callback(null, 30));
      machine.inPlace(() => {
        bench.sampler.start(periodSeconds / 2);
        machine.runUntil(100 * periodSeconds);
        bench.sampler.stop();
        if (bench.taken.length === 0) throw new Error('nothing was taken');
      });
    }),
    { numRuns: runs(100, 3000), seed: SEED },
  );
});

t.test('a reading that ends within the grace period is part of the sample', async (t) => {
  const bench = new Bench(1);
  bench.temperature.behave = (callback) => bench.machine.after(0.25, () => callback(null, 41));
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(4);
  });
  t.same(bench.times.slice(1), [1.25, 2.25, 3.25]);
  t.same(bench.values('temperature').slice(1), [41, 41, 41]);
  t.equal(bench.taken[1]?.sample.monotonicSeconds, ORIGIN_SECONDS + 1, 'stamped with the start of its interval');
});

t.test('a source that begins to hang delays only one sample and affects only its own metric', async (t) => {
  const bench = new Bench(1);
  bench.machine.latenessSeconds = 1 / 1024;
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(1.5);
    bench.disk.behave = () => {};
    bench.machine.runUntil(6.5);
  });
  t.same(
    bench.times.map((atSeconds) => Math.floor(atSeconds * 4) / 4),
    [0, 1, 2 + DEADLINE_SECONDS, 3, 4, 5, 6],
  );
  t.same(bench.values('disk_percent'), [30, 30, null, null, null, null, null]);
  for (const [metric, value] of [
    ['cpu_percent', 10],
    ['memory_percent', 20],
    ['temperature', 40],
  ] as const) {
    t.same(
      bench.values(metric),
      bench.taken.map(() => value),
      `${metric} is there in every interval, the delayed one too`,
    );
  }
  t.equal(bench.disk.reads, 4, 'not asked again while it hangs');
  t.same(bench.sampler.counts, { taken: 7, missed: 0 });
});

t.test('a source that hangs from the start delays no sample', async (t) => {
  const bench = new Bench(1);
  bench.disk.behave = () => {};
  bench.machine.inPlace(() => {
    bench.sampler.start(0.25);
    bench.machine.runUntil(3.5);
  });
  t.same(bench.times, [0.25, 1.25, 2.25, 3.25]);
  t.same(bench.values('disk_percent'), [null, null, null, null]);
  t.same(bench.values('cpu_percent'), [10, 10, 10, 10]);
});

t.test('when a hanging read ends, the metric is available again', async (t) => {
  const bench = new Bench(1);
  let release: ReadCallback = () => {};
  bench.disk.behave = (callback) => {
    release = callback;
  };
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(2.75);
    t.match(
      bench.sampler.probeStates().find(({ metric }) => metric === 'disk_percent'),
      { available: false, problem: /no response for 2\.[78] s/ },
    );
    bench.disk.behave = (callback) => callback(null, 31);
    release(null, 99);
    bench.machine.runUntil(4.5);
  });
  t.same(bench.values('disk_percent'), [null, null, null, 31, 31]);
});

t.test('a source that always takes longer than the deadline is never available', async (t) => {
  const bench = new Bench(1);
  bench.disk.behave = (callback) => bench.machine.after(0.75, () => callback(null, 30));
  bench.machine.inPlace(() => {
    bench.sampler.start(0.25);
    bench.machine.runUntil(10);
  });
  t.ok(bench.taken.length >= 9);
  t.same([...new Set(bench.values('disk_percent').slice(1))], [null]);
  t.same([...new Set(bench.values('memory_percent'))], [20]);
});

t.test('waiting for another source does not make the paths of the disk unavailable', async (t) => {
  const machine = new Machine();
  machine.latenessSeconds = 0.01;
  const now = (): number => machine.monotonicSeconds();
  const used: Statfs = (_path, callback) => callback(null, { blocks: 100, bfree: 60, bavail: 60 });
  const disk = new DiskSource(['/'], now, { statfs: used, isHidden: (_path, callback) => callback(false) });
  const slow = new FakeSource('temperature');
  slow.behave = (callback) => machine.after(0.75, () => callback(null, 40));
  const samples: Sample[] = [];
  const probes = [slow, disk].map((source) => new Probe(source, now));
  const take = (sample: Sample): void => void samples.push(sample);
  const sampler = new Sampler(probes, machine, 1, take, (nowSeconds) => disk.readings(nowSeconds));
  machine.inPlace(() => {
    sampler.start(0.25);
    machine.runUntil(10);
  });
  t.ok(samples.length >= 9);
  for (const { disks, readings } of samples) {
    t.equal(readings.disk_percent, 40);
    t.same(disks, [{ path: '/', percent: 40, inodes_percent: null, problem: null }]);
  }
});

t.test('at 10 Hz the grace period is half a sampling interval', async (t) => {
  const bench = new Bench(0.1);
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(0.25);
    bench.disk.behave = () => {};
    bench.machine.runUntil(1.05);
  });
  t.same(
    bench.times.map((atSeconds) => Math.round(atSeconds * 100) / 100),
    [0, 0.1, 0.2, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  );
  t.same(bench.sampler.counts, { taken: 11, missed: 0 });
  t.same(bench.values('disk_percent').slice(-2), [null, null], 'past the deadline the last value is no longer current');
  t.same(bench.values('cpu_percent').slice(-2), [10, 10]);
});

t.test('a source that fails in any way affects only its own metric', async (t) => {
  const failures: Record<string, (callback: ReadCallback) => void> = {
    throws: () => {
      throw new Error('broken');
    },
    'answers with an error': (callback) => callback(new Error('EIO'), 0),
    'answers NaN': (callback) => callback(null, Number.NaN),
    'answers an error twice': (callback) => {
      callback(new Error('EIO'), 0);
      callback(new Error('EIO'), 0);
    },
    'answers an error later, and then a value': (callback) => {
      callback(new Error('EIO'), 0);
      callback(null, 1);
    },
  };
  for (const [what, behave] of Object.entries(failures)) {
    for (const failing of METRICS) {
      const bench = new Bench(1);
      const source = bench.sources.find(({ metric }) => metric === failing) as FakeSource;
      source.behave = behave;
      bench.machine.inPlace(() => {
        bench.sampler.start(0);
        bench.machine.runUntil(2.5);
      });
      t.same(bench.times, [0, 1, 2], `${failing} ${what}`);
      for (const { metric } of bench.sources) {
        t.equal(
          bench.values(metric).every((value) => (value === null) === (metric === failing)),
          true,
          `${failing} ${what}: ${metric}`,
        );
      }
    }
  }
});

t.test('after stop there is no sample, no read and no pending timer', async (t) => {
  for (const periodSeconds of [0.001, 0.02, 1]) {
    const bench = new Bench(periodSeconds);
    const late: ReadCallback[] = [];
    bench.machine.inPlace(() => {
      bench.sampler.start(0);
      bench.machine.runUntil(2.25 * periodSeconds);
      bench.disk.behave = (callback) => late.push(callback);
      bench.machine.runUntil(3.25 * periodSeconds); // An interval is open, waiting for the disk.
      const { length } = bench.taken;
      const reads = bench.sources.map((source) => source.reads);
      t.equal(late.length, 1);
      bench.sampler.stop();
      t.equal(bench.machine.timers, 0, 'no timer is left');
      late[0]?.(null, 30);
      bench.machine.runUntil(100 * periodSeconds);
      t.equal(bench.taken.length, length);
      t.same(
        bench.sources.map((source) => source.reads),
        reads,
      );
      t.same(
        bench.sources.map(({ closed }) => closed),
        [1, 1, 1, 1],
      );
    });
  }
});

t.test('it can be stopped from the callback of a sample', async (t) => {
  for (const periodSeconds of [0.001, 0.02, 1]) {
    for (const hangs of [false, true]) {
      const bench = new Bench(periodSeconds);
      bench.onSample = ({ interval }) => {
        if (interval === 3) bench.sampler.stop();
      };
      bench.machine.inPlace(() => {
        bench.sampler.start(0);
        bench.machine.runUntil(2.25 * periodSeconds);
        if (hangs) bench.disk.behave = () => {};
        bench.machine.runUntil(20 * periodSeconds);
      });
      const what = `period ${periodSeconds} s, ${hangs ? 'hanging' : 'answering'}`;
      t.same(bench.intervals, [0, 1, 2, 3], what);
      t.equal(bench.memory.reads, 5, `${what}: nothing is read after the sources were closed`);
    }
  }
});

t.test('it can be started again', async (t) => {
  const bench = new Bench(1);
  bench.machine.inPlace(() => {
    bench.sampler.start(0);
    bench.machine.runUntil(1.5);
    bench.sampler.stop();
    bench.machine.runUntil(5);
    bench.sampler.start(0.25);
    bench.machine.runUntil(6.5);
  });
  t.same(bench.times, [0, 1, 5.25, 6.25]);
  t.same(bench.intervals, [0, 1, 0, 1]);
  t.same(bench.sampler.counts, { taken: 4, missed: 0 });
});

t.test('stop without start has no effect', async (t) => {
  const bench = new Bench(1);
  bench.sampler.stop();
  t.same(bench.sampler.counts, { taken: 0, missed: 0 });
});

t.test('1000 Hz on the real clocks: every sample is taken on the grid or missed, with readings of slower sources', async (t) => {
  const clocks: Clocks = {
    monotonicSeconds: () => performance.now() / 1000,
    wallMilliseconds: () => Date.now(),
    bootSeconds: () => null,
  };
  const now = (): number => clocks.monotonicSeconds();
  const { sysRoot } = materialiseFixture(t, 'pi4');
  const temperature = new TemperatureSource(sysRoot, null, now, () => {});
  await temperature.search();
  const sources = [new CpuSource('/proc', now), new MemorySource('/proc'), new DiskSource(['/'], now), temperature];
  const samples: Sample[] = [];
  let counts: SamplerCounts = { taken: 0, missed: 0 };
  const sampler = new Sampler(
    sources.map((source) => new Probe(source, now)),
    clocks,
    0.001,
    (sample) => {
      samples.push(sample);
      counts = sampler.counts;
    },
  );
  const earliestSeconds = now() + 0.05;
  sampler.start(0.05);
  const latestSeconds = now() + 0.05;
  const isMeasured = (metric: Metric): boolean => samples.some(({ readings }) => readings[metric] !== null);
  await until('300 samples with every metric', () => samples.length >= 300 && METRICS.every(isMeasured));
  const stoppedSeconds = now();
  sampler.stop();
  // As many intervals as milliseconds have passed, each of them taken or missed.
  const { length } = samples;
  const last = samples.at(-1) as Sample;
  t.same(counts, { taken: length, missed: last.interval + 1 - length });
  t.ok(last.interval <= (stoppedSeconds - earliestSeconds) * 1000 + 0.1, 'the last interval is not ahead of the clock');
  const originSeconds = last.monotonicSeconds - last.interval / 1000;
  t.ok(originSeconds > earliestSeconds - 1e-6 && originSeconds < latestSeconds + 1e-6, 'the grid is where it began');
  t.ok(
    samples.some(({ interval }, at) => interval === (samples[at - 1]?.interval ?? -2) + 1),
    'intervals that follow each other are taken',
  );
});

t.test('on the real clocks no sample is early, and a blocked loop does not shift the next ones', async (t) => {
  const clocks: Clocks = {
    monotonicSeconds: () => performance.now() / 1000,
    wallMilliseconds: () => Date.now(),
    bootSeconds: () => null,
  };
  const source = new FakeSource('memory_percent');
  let readSeconds = 0;
  source.behave = (callback) => {
    readSeconds = clocks.monotonicSeconds();
    callback(null, 20);
  };
  const samples: { interval: number; readSeconds: number }[] = [];
  const sampler = new Sampler([new Probe(source, clocks.monotonicSeconds)], clocks, 0.02, ({ interval }) => {
    samples.push({ interval, readSeconds });
    // A quarter of a period at every fifth sample, two and a half periods once.
    const end = performance.now() + (samples.length === 12 ? 50 : samples.length % 5 === 0 ? 5 : 0);
    while (performance.now() < end);
  });
  const earliestSeconds = clocks.monotonicSeconds() + 0.02;
  sampler.start(0.02);
  await until('30 samples', () => samples.length >= 30);
  sampler.stop();
  const { taken, missed } = sampler.counts;
  t.equal(taken, samples.length);
  t.ok(missed >= 1, `${missed} missed by being blocked for two and a half periods`);
  const periodsLate = samples.map((sample) => (sample.readSeconds - earliestSeconds) / 0.02 - sample.interval);
  t.ok(Math.min(...periodsLate) > -0.01, `${Math.min(...periodsLate)} periods late at least`);
  // Each alone may be late on a busy machine; all of them only if the grid was shifted.
  t.ok(Math.min(...periodsLate.slice(-10)) < 1, `${Math.min(...periodsLate.slice(-10))} periods late at the end`);
});

t.test('after stop no handle keeps the process running', async (t) => {
  const busy = (): string[] => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate');
  const before = busy().length;
  const clocks: Clocks = { monotonicSeconds: () => performance.now() / 1000, wallMilliseconds: () => Date.now(), bootSeconds: () => null };
  for (const periodSeconds of [0.001, 0.05, 30]) {
    const hanging = new FakeSource('disk_percent');
    hanging.behave = () => {};
    const sampler = new Sampler([new Probe(hanging, clocks.monotonicSeconds)], clocks, periodSeconds, () => {});
    sampler.start(0);
    t.ok(busy().length > before, 'it waits for something');
    sampler.stop();
    t.equal(busy().length, before, `period ${periodSeconds} s`);
  }
});
