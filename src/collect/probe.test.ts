import t from 'tap';
import type { Metric } from '../core/metrics.ts';
import { DEADLINE_SECONDS, Probe } from './probe.ts';
import type { ReadCallback, Source } from './source.ts';

/** A source that behaves as the test defines, and a clock that the test moves. */
class Bench {
  nowSeconds = 1000;
  settled = 0;
  readonly callbacks: ReadCallback[] = [];
  readonly probe: Probe;
  /** What a read does besides noting its callback. */
  behave: (callback: ReadCallback) => void = () => {};

  constructor(metric: Metric = 'temperature') {
    const source: Source = {
      metric,
      read: (callback) => {
        this.callbacks.push(callback);
        this.behave(callback);
      },
      close: () => {},
    };
    this.probe = new Probe(source, () => this.nowSeconds);
  }

  start(): boolean {
    return this.probe.start(() => {
      this.settled += 1;
    });
  }

  get reading(): number | null {
    return this.probe.reading(this.nowSeconds);
  }

  get state() {
    return this.probe.state(this.nowSeconds);
  }
}

t.test('before the first reading it is unavailable with a reason', async (t) => {
  const bench = new Bench('cpu_percent');
  t.equal(bench.reading, null);
  t.same(bench.state, {
    metric: 'cpu_percent',
    available: false,
    problem: 'not read yet',
    age_seconds: null,
    duration_seconds: 0,
    failures: 0,
  });
});

t.test('a good reading is rounded to hundredths', async (t) => {
  const bench = new Bench();
  t.equal(bench.start(), true);
  t.equal(bench.settled, 0);
  bench.nowSeconds += 0.25;
  bench.callbacks[0]?.(null, 57.125);
  t.equal(bench.settled, 1);
  t.equal(bench.reading, 57.13);
  bench.nowSeconds += 3;
  t.same(bench.state, {
    metric: 'temperature',
    available: true,
    problem: null,
    age_seconds: 3,
    duration_seconds: 0.25,
    failures: 0,
  });
});

t.test('0 is a value', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => callback(null, 0);
  bench.start();
  t.equal(bench.reading, 0);
  t.equal(bench.state.available, true);
});

t.test('a reading is current until the deadline, and not longer', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => callback(null, 50);
  bench.start();
  bench.nowSeconds += DEADLINE_SECONDS;
  t.equal(bench.reading, 50);
  bench.nowSeconds += 0.125;
  t.equal(bench.reading, null);
});

t.test('an error makes it unavailable with that reason, even if the last value is recent', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => callback(null, 50);
  bench.start();
  bench.behave = (callback) => callback(new Error('EIO: i/o error'), 77);
  bench.start();
  t.equal(bench.reading, null);
  t.match(bench.state, { available: false, problem: 'EIO: i/o error', age_seconds: 0, failures: 1 });
  bench.behave = (callback) => callback(null, 51);
  bench.start();
  t.equal(bench.reading, 51);
  t.match(bench.state, { available: true, problem: null, failures: 1 });
});

t.test('a value that is not a number is unavailable', async (t) => {
  const bench = new Bench();
  for (const [index, value] of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].entries()) {
    bench.behave = (callback) => callback(null, value);
    bench.start();
    t.equal(bench.reading, null);
    t.match(bench.state, { available: false, problem: `${value} is not a number`, failures: index + 1 });
  }
});

t.test('a source that throws has failed and is read again the next time', async (t) => {
  const bench = new Bench();
  bench.behave = () => {
    throw new Error('broken');
  };
  t.equal(bench.start(), true);
  t.equal(bench.settled, 1);
  t.match(bench.state, { available: false, problem: 'broken', failures: 1 });
  bench.behave = (callback) => callback(null, 50);
  t.equal(bench.start(), true);
  t.equal(bench.reading, 50);
});

t.test('an exception after the callback is ignored', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => {
    callback(null, 50);
    throw new Error('broken');
  };
  bench.start();
  t.equal(bench.settled, 1);
  t.equal(bench.reading, 50);
});

t.test('only the first of two callbacks counts', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => {
    callback(null, 50);
    callback(null, 60);
    callback(new Error('changed its mind'), 0);
  };
  bench.start();
  t.equal(bench.settled, 1);
  t.equal(bench.reading, 50);
  t.equal(bench.state.failures, 0);
});

t.test('a second callback does not end the next read', async (t) => {
  const bench = new Bench();
  bench.start();
  bench.callbacks[0]?.(null, 50);
  bench.start();
  bench.callbacks[0]?.(null, 99);
  t.equal(bench.start(), false, 'the second read is still under way');
  t.equal(bench.reading, 50);
  bench.callbacks[1]?.(null, 60);
  t.equal(bench.reading, 60);
  t.equal(bench.settled, 2);
});

t.test('a hanging source is not read again, and the problem has the duration', async (t) => {
  const bench = new Bench();
  bench.behave = (callback) => callback(null, 50);
  bench.start();
  bench.behave = () => {};
  t.equal(bench.start(), true);
  bench.nowSeconds += 0.25;
  t.equal(bench.reading, 50, 'within the deadline the value before still counts');
  t.equal(bench.state.problem, null);
  bench.nowSeconds += 4;
  for (let i = 0; i < 3; i += 1) t.equal(bench.start(), false);
  t.equal(bench.callbacks.length, 2);
  t.equal(bench.reading, null);
  t.match(bench.state, { available: false, problem: /^no response for 4\.[23] s$/, age_seconds: 4.25 });
  t.equal(bench.settled, 1);
});

t.test('a hang ends with a late value', async (t) => {
  const bench = new Bench();
  bench.start();
  bench.nowSeconds += 30;
  t.equal(bench.start(), false);
  bench.callbacks[0]?.(null, 42);
  t.equal(bench.settled, 1);
  t.equal(bench.reading, 42);
  t.match(bench.state, { available: true, problem: null, age_seconds: 0, duration_seconds: 30 });
  t.equal(bench.start(), true);
});

t.test('a hang ends with a late error', async (t) => {
  const bench = new Bench();
  bench.start();
  bench.nowSeconds += 30;
  bench.callbacks[0]?.(new Error('ESTALE: stale file handle'), 0);
  t.equal(bench.reading, null);
  t.match(bench.state, { problem: 'ESTALE: stale file handle', failures: 1 });
  t.equal(bench.start(), true);
});

t.test('a faulty source does not affect the others', async (t) => {
  const good = new Bench('memory_percent');
  const hanging = new Bench('disk_percent');
  const throwing = new Bench('temperature');
  good.behave = (callback) => callback(null, 30);
  throwing.behave = () => {
    throw new Error('broken');
  };
  for (const bench of [throwing, hanging, good]) bench.start();
  t.same([throwing.reading, hanging.reading, good.reading], [null, null, 30]);
});
