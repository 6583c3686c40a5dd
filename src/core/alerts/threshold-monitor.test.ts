import t from 'tap';
import type { DiskReading, Sample } from '../health-status.ts';
import { METRICS, type Metric, type Readings } from '../metrics.ts';
import { isoUtc } from '../time/time.ts';
import type { Alert, ChannelMetric, Threshold, Thresholds } from './alert.ts';
import type { AlertTiming } from './episode.ts';
import { type JudgingPast, type JudgingRules, ThresholdMonitor } from './threshold-monitor.ts';

const EPOCH_MS = Date.UTC(2026, 2, 4, 5, 6, 0);
const idle: Readings = { cpu_percent: 10, memory_percent: 20, disk_percent: 30, temperature: 40 };
const thresholds: Thresholds = {
  cpu_percent: { warning: 80, critical: 90 },
  memory_percent: { warning: 85, critical: 95 },
  disk_percent: { warning: 80, critical: 90 },
  temperature: { warning: 70, critical: 85 },
};
const timing: AlertTiming = {
  hysteresisPercent: 5,
  raiseAfterSeconds: 3,
  clearAfterSeconds: 10,
  sensorTimeoutSeconds: 5,
  longestIntervalSeconds: 3600,
};
const rules: JudgingRules = { nodeName: 'health_monitor', thresholds, timing, diskPaths: ['/', '/media/usb'] };
const atOnce: JudgingRules = { ...rules, timing: { ...timing, raiseAfterSeconds: 0, clearAfterSeconds: 0 } };
const noPast: JudgingPast = { openAlerts: [], readableMetrics: new Set() };

const disk = (path: string, percent: number | null, inodes_percent: number | null = null): DiskReading => ({
  path,
  percent,
  inodes_percent,
  problem: null,
});

/** A monitor fed at 1 Hz; an interval is a second, across restarts. */
class Bench {
  monitor: ThresholdMonitor;
  /** Channels that do not work. */
  readonly failing = new Set<ChannelMetric>();
  #interval = 0;
  #ids = 0;

  constructor(startRules = rules, past = noPast) {
    this.monitor = this.#start(startRules, past);
  }

  #start(startRules: JudgingRules, past: JudgingPast): ThresholdMonitor {
    return new ThresholdMonitor(startRules, past, this.#interval, () => {
      this.#ids += 1;
      return `id${this.#ids}`;
    });
  }

  /** As after a restart: only the open alerts remain, as returned by the store. */
  restart(readableMetrics: Iterable<string> = METRICS, restartRules = rules): void {
    const openAlerts = JSON.parse(JSON.stringify(this.monitor.openAlerts()));
    this.monitor = this.#start(restartRules, { openAlerts, readableMetrics: new Set(readableMetrics) });
  }

  /** `missing`: unreadable disk paths. */
  feed(readings: Partial<Readings>, times = 1, missing: readonly string[] = []): Alert[] {
    const disks = rules.diskPaths.map((path) =>
      missing.includes(path) ? { ...disk(path, null), problem: 'not there' } : disk(path, readings.disk_percent ?? 30),
    );
    return this.feedDisks(disks, times, readings);
  }

  /** `disk_percent` is the fullest of `disks` unless it is given. */
  feedDisks(disks: readonly DiskReading[], times = 1, readings: Partial<Readings> = {}): Alert[] {
    const percents = disks.flatMap(({ percent }) => percent ?? []);
    const disk_percent = percents.length > 0 ? Math.max(...percents) : null;
    const changes: Alert[] = [];
    for (let i = 0; i < times; i += 1) {
      const interval = this.#interval;
      const timestampMs = EPOCH_MS + interval * 1000;
      const sample: Sample = { interval, monotonicSeconds: interval, timestampMs, readings: { ...idle, disk_percent, ...readings }, disks };
      changes.push(...this.monitor.judge(sample, (channel) => !this.failing.has(channel)));
      this.#interval += 1;
    }
    return changes;
  }
}

/** A change in short form: `WARNING`, `CRITICAL resolved`. */
function brief(changes: readonly Alert[]): string[] {
  return changes.map(({ severity, resolved }) => (resolved ? `${severity} resolved` : severity));
}

function openOf(bench: Bench): string[] {
  return bench.monitor.openAlerts().map(({ metric, severity }) => `${metric} ${severity}`);
}

t.test('a metric can have delays of its own', async (t) => {
  const cpu_percent = { ...(thresholds.cpu_percent as Threshold), raiseAfterSeconds: 30, clearAfterSeconds: 2 };
  const bench = new Bench({ ...rules, thresholds: { ...thresholds, cpu_percent } });
  t.same(bench.feed({ cpu_percent: 95 }, 30), []);
  t.match(bench.feed({ cpu_percent: 95 }), [{ metric: 'cpu_percent', severity: 'CRITICAL' }]);
  t.same(bench.feed({ cpu_percent: 10 }, 2), []);
  t.match(bench.feed({ cpu_percent: 10 }), [{ metric: 'cpu_percent', resolved: true }]);
  t.match(bench.feed({ temperature: 75 }, 4), [{ metric: 'temperature' }], 'the others keep the general ones');
});

t.test('a metric is expected once it was measured, also by an earlier run, while it is judged', async (t) => {
  const bench = new Bench();
  const expected = (): Metric[] => METRICS.filter((metric) => bench.monitor.isExpected(metric));
  t.same(expected(), ['disk_percent'], 'its paths are configured');
  bench.feed({ temperature: null }, 100);
  t.same(expected(), ['cpu_percent', 'memory_percent', 'disk_percent'], 'this machine has no sensor');
  bench.feed({});
  bench.feed({ temperature: null }, 100);
  t.same(expected(), METRICS);
  bench.restart(['cpu_percent']);
  bench.feed({ memory_percent: null, temperature: null });
  t.same(expected(), ['cpu_percent', 'disk_percent', 'temperature'], 'the alert of the lost sensor is open');
  bench.monitor.setRules({ ...rules, thresholds: { ...thresholds, temperature: null } });
  bench.feed({ memory_percent: null, temperature: null });
  t.same(expected(), ['cpu_percent', 'disk_percent'], 'its loss is accepted');
});

t.test('a metric that is switched off is not judged, and its open alerts are resolved with the next sample', async (t) => {
  const bench = new Bench(atOnce, { openAlerts: [], readableMetrics: new Set(METRICS) });
  const off = (...metrics: Metric[]): JudgingRules => ({
    ...atOnce,
    thresholds: { ...thresholds, ...Object.fromEntries(metrics.map((metric) => [metric, null])) },
  });
  const hot = bench.feed({ temperature: 92 })[0] as Alert;
  const lost = bench.feed({ temperature: null }, 10)[0] as Alert;
  const gone = bench.feed({ temperature: null }, 10, ['/media/usb'])[0] as Alert;
  t.match([hot, lost, gone], [{ severity: 'CRITICAL' }, { severity: 'ERROR' }, { metric: 'disk:/media/usb' }]);
  t.equal(bench.monitor.openAlerts().length, 3);

  bench.monitor.setRules(off('temperature'));
  t.same(
    bench.feed({ temperature: null }, 1, ['/media/usb']).map(({ alert_id, resolved }) => [alert_id, resolved]),
    [
      [hot.alert_id, true],
      [lost.alert_id, true],
    ],
  );
  t.same(bench.feed({ temperature: 120 }, 10, ['/media/usb']), []);
  t.same(bench.feed({ temperature: null }, 10, ['/media/usb']), []);
  bench.monitor.setRules(off('temperature', 'disk_percent'));
  t.match(bench.feed({ temperature: null, disk_percent: 99 }, 10, ['/media/usb']), [{ alert_id: gone.alert_id, resolved: true }]);
  t.same(bench.monitor.openAlerts(), []);

  bench.monitor.setRules(atOnce);
  const again = bench.feed({ temperature: 92, disk_percent: 99 });
  t.same(
    again.map(({ metric, resolved }) => [metric, resolved]),
    [
      ['disk_percent', false],
      ['temperature', false],
    ],
  );
  t.notOk(
    again.some(({ alert_id }) => alert_id === hot.alert_id),
    'it is another episode',
  );
});

t.test('alerts of a sensor that is gone for good are resolved at the start with the metric switched off', async (t) => {
  const before = new Bench(atOnce, { openAlerts: [], readableMetrics: new Set(METRICS) });
  before.feed({ temperature: 92 });
  before.feed({ temperature: null }, 10);
  t.equal(before.monitor.openAlerts().length, 2);
  before.restart(METRICS, { ...atOnce, thresholds: { ...thresholds, temperature: null } });
  t.match(before.feed({ temperature: null }), [
    { resolved: true, severity: 'CRITICAL' },
    { resolved: true, severity: 'ERROR' },
  ]);
  t.same(before.feed({ temperature: null }, 20), []);
});

t.test('a healthy host has no alerts', async (t) => {
  const bench = new Bench();
  t.same(bench.feed({}, 100), []);
  t.same(bench.monitor.openAlerts(), []);
});

t.test('an alert has exactly the fields of the specification, and an id that names node and metric', async (t) => {
  const changes = new Bench(atOnce).feed({ cpu_percent: 83.5 });
  t.strictSame(changes, [
    {
      alert_id: 'health_monitor/cpu_percent/id1',
      severity: 'WARNING',
      metric: 'cpu_percent',
      value: 83.5,
      threshold: 80,
      timestamp: isoUtc(EPOCH_MS),
      resolved: false,
    },
  ]);
});

t.test('the unique id is requested once per episode, with the time of the sample', async (t) => {
  const asked: number[] = [];
  const monitor = new ThresholdMonitor(atOnce, noPast, 0, (timestampMs) => {
    asked.push(timestampMs);
    return 'x';
  });
  [95, 95, 85, 20].forEach((cpu_percent, interval) => {
    monitor.judge({
      interval,
      monotonicSeconds: interval,
      timestampMs: EPOCH_MS + interval,
      readings: { ...idle, cpu_percent },
      disks: [],
    });
  });
  t.same(asked, [EPOCH_MS]);
});

t.test('a value exactly at the threshold raises, the hundredth below does not', async (t) => {
  t.same(brief(new Bench(atOnce).feed({ temperature: 70 })), ['WARNING']);
  t.same(new Bench(atOnce).feed({ temperature: 69.99 }, 100), []);
});

t.test('3 s at 1 Hz: the fourth sample raises', async (t) => {
  const bench = new Bench();
  t.same(bench.feed({ cpu_percent: 85 }, 3), []);
  t.same(brief(bench.feed({ cpu_percent: 85 })), ['WARNING']);
});

t.test('a jump to 100 % is published once, as CRITICAL', async (t) => {
  const bench = new Bench();
  bench.feed({}, 5);
  t.same(bench.feed({ cpu_percent: 100 }, 3), []);
  const [critical, ...none] = bench.feed({ cpu_percent: 100 }, 100);
  t.match(critical, { severity: 'CRITICAL', threshold: 90, value: 100, resolved: false });
  t.same(none, []);
});

t.test('CRITICAL falling to WARNING is a change of the same alert', async (t) => {
  const bench = new Bench();
  const [raised] = bench.feed({ cpu_percent: 95 }, 5);
  t.same(bench.feed({ cpu_percent: 84 }, 10), []);
  const [fallen] = bench.feed({ cpu_percent: 84 });
  t.match(fallen, { severity: 'WARNING', threshold: 80, value: 84, resolved: false, alert_id: raised?.alert_id });
  t.same(openOf(bench), ['cpu_percent WARNING']);
});

t.test('an episode is resolved once, with the severity it had last', async (t) => {
  const bench = new Bench();
  const [raised] = bench.feed({ cpu_percent: 95 }, 5);
  t.same(bench.feed({ cpu_percent: 20 }, 10), []);
  const [resolved, ...none] = bench.feed({ cpu_percent: 20 }, 100);
  t.match(resolved, { severity: 'CRITICAL', threshold: 90, value: 20, resolved: true, alert_id: raised?.alert_id });
  t.same(none, []);
  t.same(bench.monitor.openAlerts(), []);
});

t.test('where the bands overlap, a fall from CRITICAL goes through WARNING and ends', async (t) => {
  const near = { ...rules, thresholds: { ...thresholds, cpu_percent: { warning: 80, critical: 82 } } };
  const bench = new Bench(near);
  bench.feed({ cpu_percent: 85 }, 5);
  t.same(bench.feed({ cpu_percent: 78 }, 100), [], 'inside both bands');
  t.same(brief(bench.feed({ cpu_percent: 77.5 }, 100)), ['WARNING'], 'below 77.9, above 76');
  t.same(brief(bench.feed({ cpu_percent: 75.9 }, 100)), ['WARNING resolved']);
});

t.test('the next episode of a metric is an alert of its own', async (t) => {
  const bench = new Bench(atOnce);
  const ids = [85, 20, 85].flatMap((cpu_percent) => bench.feed({ cpu_percent }).map(({ alert_id }) => alert_id));
  t.equal(ids.length, 3);
  t.equal(ids[0], ids[1]);
  t.not(ids[2], ids[0]);
});

t.test('metrics are evaluated independently of each other', async (t) => {
  const bench = new Bench(atOnce);
  const changes = bench.feed({ cpu_percent: 85, temperature: 75 });
  t.same(
    changes.map(({ metric }) => metric),
    ['cpu_percent', 'temperature'],
  );
  t.same(
    bench.feed({ cpu_percent: 85 }).map(({ metric, resolved }) => [metric, resolved]),
    [['temperature', true]],
  );
  t.same(openOf(bench), ['cpu_percent WARNING']);
});

t.test('a sensor that is lost is an ERROR after sensor_timeout, with the seconds since its last reading', async (t) => {
  const bench = new Bench();
  bench.feed({}, 3);
  t.same(bench.feed({ temperature: null }, 5), []);
  const [error, ...none] = bench.feed({ temperature: null }, 100);
  t.match(error, { severity: 'ERROR', metric: 'temperature', value: 6, threshold: 5, resolved: false });
  t.same(none, []);
});

t.test('the ERROR of a recovered sensor is resolved after clear_after', async (t) => {
  const bench = new Bench();
  bench.feed({});
  const [error] = bench.feed({ temperature: null }, 10);
  t.same(bench.feed({}, 10), []);
  const [resolved, ...none] = bench.feed({}, 100);
  t.match(resolved, { severity: 'ERROR', resolved: true, value: 0, alert_id: error?.alert_id });
  t.same(none, []);
});

t.test('a sensor that never existed raises nothing', async (t) => {
  t.same(new Bench().feed({ temperature: null }, 1000), []);
});

t.test('a sensor that worked before this start and no longer does is an ERROR', async (t) => {
  const bench = new Bench(rules, { openAlerts: [], readableMetrics: new Set(['temperature']) });
  const changes = bench.feed({ temperature: null, disk_percent: null }, 100);
  t.same(
    changes.map(({ metric, severity }) => [metric, severity]),
    [['temperature', 'ERROR']],
  );
});

t.test('a sensor lost while its threshold alert is open leaves that open, and raises its own ERROR', async (t) => {
  const bench = new Bench();
  const [hot] = bench.feed({ temperature: 75 }, 4);
  const [error] = bench.feed({ temperature: null }, 1000);
  t.same(openOf(bench), ['temperature WARNING', 'temperature ERROR']);
  t.not(error?.alert_id, hot?.alert_id);
  t.same(brief(bench.feed({}, 12)), ['WARNING resolved', 'ERROR resolved']);
});

t.test('a channel that does not work is an ERROR of its own, which a restart continues, until it works again', async (t) => {
  const bench = new Bench();
  bench.failing.add('ros_graph');
  t.same(bench.feed({}, 6), []);
  const [raised] = bench.feed({});
  t.match(raised, { severity: 'ERROR', metric: 'ros_graph', value: 6, threshold: 5, resolved: false });
  t.same(bench.feed({}, 60), [], 'once');
  bench.restart();
  t.same(bench.feed({}, 60), [], 'still the same episode');
  bench.failing.clear();
  t.same(bench.feed({}, 10), []);
  t.match(bench.feed({}), [{ alert_id: raised?.alert_id, severity: 'ERROR', resolved: true }]);
});

t.test('a threshold raised by a reload ends an open episode, after clear_after', async (t) => {
  const bench = new Bench();
  bench.feed({ cpu_percent: 85 }, 10);
  bench.monitor.setRules({ ...rules, thresholds: { ...thresholds, cpu_percent: { warning: 92, critical: 98 } } });
  t.same(openOf(bench), ['cpu_percent WARNING'], 'the reload itself changes nothing');
  t.match(bench.feed({ cpu_percent: 85 }), [{ severity: 'WARNING', threshold: 92, resolved: false }], 'the threshold in force is shown');
  t.same(bench.feed({ cpu_percent: 85 }, 9), []);
  t.match(bench.feed({ cpu_percent: 85 }), [{ severity: 'WARNING', threshold: 92, resolved: true }]);
});

t.test('a critical threshold lowered by a reload makes an open WARNING CRITICAL, after raise_after', async (t) => {
  const bench = new Bench();
  const [raised] = bench.feed({ cpu_percent: 85 }, 10);
  bench.monitor.setRules({ ...rules, thresholds: { ...thresholds, cpu_percent: { warning: 80, critical: 84 } } });
  t.same(bench.feed({ cpu_percent: 85 }, 3), []);
  t.match(bench.feed({ cpu_percent: 85 }), [{ severity: 'CRITICAL', threshold: 84, alert_id: raised?.alert_id }]);
});

t.test('a clear_after lengthened by a reload applies to an episode that is already falling', async (t) => {
  const bench = new Bench();
  bench.feed({ cpu_percent: 85 }, 10);
  bench.feed({ cpu_percent: 20 }, 8);
  bench.monitor.setRules({ ...rules, timing: { ...timing, clearAfterSeconds: 60 } });
  t.same(bench.feed({ cpu_percent: 20 }, 52), []);
  t.same(brief(bench.feed({ cpu_percent: 20 })), ['WARNING resolved']);
});

t.test('a sensor_timeout shortened by a reload applies to a gap that has begun', async (t) => {
  const bench = new Bench();
  bench.feed({});
  bench.feed({ temperature: null }, 3);
  bench.monitor.setRules({ ...rules, timing: { ...timing, sensorTimeoutSeconds: 1 } });
  t.match(bench.feed({ temperature: null }), [{ severity: 'ERROR', value: 4, threshold: 1 }]);
});

t.test('an ERROR that is open at a reload shows the sensor_timeout in force', async (t) => {
  const bench = new Bench();
  bench.feed({});
  bench.feed({ temperature: null }, 10);
  bench.monitor.setRules({ ...rules, timing: { ...timing, sensorTimeoutSeconds: 8 } });
  t.match(bench.feed({ temperature: null }, 3), [{ severity: 'ERROR', value: 11, threshold: 8, resolved: false }]);
});

t.test('a disk path that cannot be measured is an ERROR of its own after sensor_timeout, also when it never existed', async (t) => {
  const bench = new Bench();
  t.same(bench.feed({}, 6, ['/media/usb']), []);
  const [error, ...none] = bench.feed({}, 100, ['/media/usb']);
  t.match(error, { severity: 'ERROR', metric: 'disk:/media/usb', value: 6, threshold: 5, resolved: false });
  t.match(error?.alert_id, /^health_monitor\/disk:\/media\/usb\/id/);
  t.same(none, [], 'nor does the other path suffer');
  t.match(bench.feed({}, 11), [{ alert_id: error?.alert_id, resolved: true }]);
  t.match(bench.feed({ disk_percent: 95 }, 4, ['/media/usb']), [{ metric: 'disk_percent', severity: 'CRITICAL' }]);
});

t.test('a disk path that disappears ends no episode, neither at once nor after a restart', async (t) => {
  const full = [disk('/', 40), disk('/media/usb', 95)];
  const gone = [disk('/', 40), { ...disk('/media/usb', null), problem: 'nothing is mounted' }];
  const bench = new Bench();
  t.match(bench.feedDisks(full, 4), [{ metric: 'disk_percent', severity: 'CRITICAL', value: 95 }]);
  t.match(bench.feedDisks(gone, 100), [{ metric: 'disk:/media/usb', severity: 'ERROR' }]);
  bench.restart();
  t.same(bench.feedDisks(gone, 100), []);
  const freed = bench.feedDisks([disk('/', 40), disk('/media/usb', 20)], 11);
  t.same(
    freed.map(({ metric, resolved }) => [metric, resolved]),
    [
      ['disk_percent', true],
      ['disk:/media/usb', true],
    ],
  );
});

t.test('a missing disk path that was not full lets the episodes of others end, and raises none', async (t) => {
  const missing = { ...disk('/media/usb', null), problem: 'not there' };
  const bench = new Bench();
  bench.feedDisks([disk('/', 30), disk('/media/usb', 50)]);
  t.match(bench.feedDisks([disk('/', 85), missing], 10), [{ metric: 'disk_percent', severity: 'WARNING' }, { metric: 'disk:/media/usb' }]);
  t.match(bench.feedDisks([disk('/', 30), missing], 12), [{ metric: 'disk_percent', resolved: true }]);

  const brief = new Bench();
  brief.feedDisks([disk('/', 85), disk('/media/usb', 85)], 4);
  brief.feedDisks([disk('/', 85), disk('/media/usb', 95)], 2);
  t.same(
    brief.feedDisks([disk('/', 85), missing], 20).map(({ metric }) => metric),
    ['disk:/media/usb'],
    'not CRITICAL after two seconds above the threshold',
  );
});

t.test('a faulty file system that can be read is an ERROR, and an automount that is not in use is none', async (t) => {
  const bench = new Bench();
  const faulty = { ...disk('/media/usb', 30), problem: 'its file system is read-only' };
  t.match(bench.feedDisks([disk('/', 30), faulty], 10), [{ metric: 'disk:/media/usb', severity: 'ERROR' }]);
  t.same(bench.feedDisks([disk('/', 30), disk('/media/usb', null)], 100), [], 'an idle automount neither raises nor resolves it');
  t.same(new Bench().feedDisks([disk('/', 30), disk('/media/usb', null)], 100), []);
});

t.test('inodes are judged by the thresholds of disk usage', async (t) => {
  const bench = new Bench();
  const [alert] = bench.feedDisks([disk('/', 30, 5), disk('/media/usb', 10, 100)], 4);
  t.match(alert, { metric: 'disk_percent', severity: 'CRITICAL', value: 100, threshold: 90 });
  t.match(bench.feedDisks([disk('/', 30, 5), disk('/media/usb', 10, 10)], 11), [{ metric: 'disk_percent', resolved: true, value: 30 }]);
});

t.test('where no disk path can be measured each is an ERROR, and the metric adds none', async (t) => {
  const bench = new Bench();
  bench.feed({});
  const changes = bench.feed({ disk_percent: null }, 100, ['/', '/media/usb']);
  t.same(
    changes.map(({ metric }) => metric),
    ['disk:/', 'disk:/media/usb'],
  );
});

t.test('the ERROR of a disk path that is no longer configured is returned to be resolved', async (t) => {
  const bench = new Bench();
  const [error] = bench.feed({}, 10, ['/media/usb']);
  bench.restart(METRICS, { ...rules, diskPaths: ['/'] });
  t.same(bench.monitor.openAlerts(), []);
  t.same(bench.monitor.adopt([error as Alert]), [], 'once');
});

t.test('a restart keeps every open alert as it was', async (t) => {
  const bench = new Bench();
  bench.feed({ cpu_percent: 95, temperature: 75 }, 5);
  bench.feed({ cpu_percent: 95, temperature: null }, 10);
  const before = bench.monitor.openAlerts();
  bench.restart();
  t.strictSame(bench.monitor.openAlerts(), before);
  t.same(
    before.map(({ metric, severity }) => `${metric} ${severity}`),
    ['cpu_percent CRITICAL', 'temperature WARNING', 'temperature ERROR'],
  );
});

t.test('after a restart a continuing episode is not published again', async (t) => {
  const bench = new Bench();
  bench.feed({ cpu_percent: 95 }, 10);
  bench.restart();
  t.same(bench.feed({ cpu_percent: 95 }, 100), []);
});

t.test('an episode that ended while the service was down is resolved under its id, after clear_after', async (t) => {
  const bench = new Bench();
  const [raised] = bench.feed({ cpu_percent: 85 }, 10);
  bench.restart();
  t.same(bench.feed({}, 10), []);
  t.match(bench.feed({}), [{ alert_id: raised?.alert_id, resolved: true }]);
});

t.test('an ERROR that is open at a restart is not raised again, and is resolved under its id', async (t) => {
  const bench = new Bench();
  bench.feed({});
  const [error] = bench.feed({ temperature: null }, 10);
  bench.restart(['cpu_percent', 'memory_percent', 'disk_percent']);
  t.same(bench.feed({ temperature: null }, 100), []);
  t.match(bench.feed({}, 100), [{ alert_id: error?.alert_id, resolved: true, severity: 'ERROR' }]);
});

const openCritical: Alert = {
  alert_id: 'health_monitor/cpu_percent/id0',
  severity: 'CRITICAL',
  metric: 'cpu_percent',
  value: 95,
  threshold: 90,
  timestamp: isoUtc(EPOCH_MS),
  resolved: false,
};

t.test('alerts of other nodes, of unknown metrics and resolved ones are ignored', async (t) => {
  const openAlerts = [
    { ...openCritical, alert_id: 'arm/cpu_percent/id0' },
    { ...openCritical, alert_id: 'health_monitor_2/cpu_percent/id0' },
    { ...openCritical, alert_id: 'health_monitor/health_status/id0', metric: 'health_status' },
    { ...openCritical, resolved: true },
  ];
  t.same(new Bench(rules, { ...noPast, openAlerts }).monitor.openAlerts(), []);
  t.same(new Bench(rules, { ...noPast, openAlerts: [openCritical] }).monitor.openAlerts(), [openCritical]);
});

t.test('open alerts that become known late continue under their ids', async (t) => {
  const bench = new Bench();
  bench.feed({ cpu_percent: 95, temperature: null }, 2);
  const openError: Alert = {
    ...openCritical,
    alert_id: 'health_monitor/temperature/id0',
    severity: 'ERROR',
    metric: 'temperature',
    threshold: 5,
  };
  t.same(bench.monitor.adopt([openCritical, openError]), []);
  t.same(bench.feed({ cpu_percent: 95, temperature: null }, 100), [], 'neither is raised again');
  t.same(
    bench.feed({}, 100).map(({ alert_id, resolved }) => [alert_id, resolved]),
    [
      [openCritical.alert_id, true],
      [openError.alert_id, true],
    ],
  );
});

t.test('a late open alert of a metric and kind that has one is returned once, and the present one continues', async (t) => {
  const bench = new Bench(atOnce);
  const [present] = bench.feed({ cpu_percent: 85 });
  t.same(bench.monitor.adopt([openCritical]), [openCritical]);
  t.same(bench.monitor.openAlerts(), [present]);
  t.same(bench.monitor.adopt([openCritical]), []);
  bench.feed({});
  t.same(bench.monitor.adopt([openCritical]), [], 'nor is it continued once the present one has ended');
  t.same(bench.monitor.openAlerts(), []);
});

t.test('a late list with an older state of the present alert has no effect', async (t) => {
  const bench = new Bench(atOnce);
  const [warning] = bench.feed({ cpu_percent: 85 });
  const [critical] = bench.feed({ cpu_percent: 95 });
  t.same(bench.monitor.adopt([warning as Alert]), []);
  t.same(bench.monitor.openAlerts(), [critical]);
});

t.test('a late list made before an episode ended does not reopen it', async (t) => {
  const bench = new Bench({ ...atOnce, timing: { ...atOnce.timing, sensorTimeoutSeconds: 1 } });
  const [hot] = bench.feed({ temperature: 75 });
  const [lost] = bench.feed({ temperature: null }, 3);
  t.same(brief(bench.feed({})), ['WARNING resolved', 'ERROR resolved']);
  t.same(bench.monitor.adopt([hot as Alert, lost as Alert]), []);
  t.same(bench.monitor.openAlerts(), []);
  bench.feed({ temperature: 75 });
  t.same(bench.monitor.adopt([hot as Alert]), [], 'nor is it returned again');
});
