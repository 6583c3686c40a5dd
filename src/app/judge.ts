import { monotonicFactory } from 'ulid';
import { describeKeys } from '../config/describe.ts';
import type { Config } from '../config/schema.ts';
import type { Alert, ChannelMetric, Threshold } from '../core/alerts/alert.ts';
import { type JudgingPast, type JudgingRules, ThresholdMonitor } from '../core/alerts/threshold-monitor.ts';
import { type Sample, STALE_AFTER_PERIODS } from '../core/health-status.ts';
import type { Metric } from '../core/metrics.ts';
import { isoUtc } from '../core/time/time.ts';
import type { RosParameter } from '../ros/graph.ts';

/**
 * Runs the threshold monitor in the service. Until the store has loaded the open episodes, samples are queued, so that a restart does not
 * raise an open episode again. The queue stays short.
 */
export class Judge {
  /** Ids must be unique, not secret, so OpenSSL need not be loaded. */
  readonly #uniqueId = monotonicFactory(Math.random);
  readonly #isWorking: (channel: ChannelMetric) => boolean;
  #rules: JudgingRules;
  #monitor: ThresholdMonitor | null = null;
  #waiting: Sample[] = [];

  /** `isWorking`: whether a channel works now. */
  constructor(rules: JudgingRules, isWorking: (channel: ChannelMetric) => boolean) {
    this.#rules = rules;
    this.#isWorking = isWorking;
  }

  setRules(rules: JudgingRules): void {
    this.#rules = rules;
    this.#monitor?.setRules(rules);
  }

  /** Starts evaluating, first the queued samples. */
  begin(past: JudgingPast, nowSeconds: number, nowMs: number): Alert[] {
    const startSeconds = this.#waiting[0]?.monotonicSeconds ?? nowSeconds;
    this.#monitor = new ThresholdMonitor(this.#rules, { ...past, openAlerts: [] }, startSeconds, (timestampMs) =>
      this.#uniqueId(timestampMs),
    );
    const waiting = this.#waiting;
    this.#waiting = [];
    return [...this.adopt(past.openAlerts, nowMs), ...waiting.flatMap((sample) => this.judge(sample))];
  }

  openAlerts(): Alert[] {
    return this.#monitor?.openAlerts() ?? [];
  }

  /** Whether a metric should be available; false until the store has loaded the past. */
  isExpected(metric: Metric): boolean {
    return this.#monitor?.isExpected(metric) ?? false;
  }

  /** Changes of alert episodes caused by this sample. */
  judge(sample: Sample): Alert[] {
    if (this.#monitor) return this.#monitor.judge(sample, this.#isWorking);
    if (this.#waiting.length < 1000) this.#waiting.push(sample);
    return [];
  }

  /**
   * Continues the open episodes of a database that was opened late. If this process has raised an episode of the same metric and kind
   * meanwhile, the stored one is resolved. Returns the changes to publish.
   */
  adopt(openAlerts: readonly Alert[], nowMs: number): Alert[] {
    const doubled = this.#monitor?.adopt(openAlerts) ?? [];
    return doubled.map((alert) => ({ ...alert, timestamp: isoUtc(nowMs), resolved: true }));
  }
}

/** Rules for this machine's own samples. `nodeName`: as in health statuses and alert ids. */
export function judgingRules(config: Config, nodeName: string): JudgingRules {
  const { alerts, disk } = config;
  const thresholdOf = (name: keyof Config['thresholds']): Threshold | null => {
    const keys = config.thresholds[name];
    if (keys === 'off') return null;
    const { warning, critical, raise_after_seconds, clear_after_seconds } = keys;
    return {
      warning,
      critical,
      raiseAfterSeconds: raise_after_seconds ?? alerts.raise_after_seconds,
      clearAfterSeconds: clear_after_seconds ?? alerts.clear_after_seconds,
    };
  };
  return {
    nodeName,
    diskPaths: disk.paths,
    thresholds: {
      cpu_percent: thresholdOf('cpu'),
      memory_percent: thresholdOf('memory'),
      disk_percent: thresholdOf('disk'),
      temperature: thresholdOf('temperature'),
    },
    timing: {
      hysteresisPercent: alerts.hysteresis_percent,
      raiseAfterSeconds: alerts.raise_after_seconds,
      clearAfterSeconds: alerts.clear_after_seconds,
      sensorTimeoutSeconds: alerts.sensor_timeout_seconds,
      longestIntervalSeconds: STALE_AFTER_PERIODS / config.publish_frequency,
    },
  };
}

/**
 * The values of a configuration that judge, as ROS parameters with the names and descriptions of the keys. The delays of a metric are those
 * in force; a metric that is off has no parameters.
 */
export function judgingParameters(config: Config): RosParameter[] {
  const read = (key: string): unknown =>
    key.split('.').reduce<unknown>((section, name) => (section as Readonly<Record<string, unknown>>)[name], config);
  return describeKeys().flatMap(({ allowed, defaultIs, description, key, unit }) => {
    if (!/^(thresholds|alerts)\./.test(key)) return [];
    const value = read(key);
    if (value === undefined) return [];
    return { name: key, value: Number(value ?? read(defaultIs as string)), description, constraints: `${unit}; ${allowed}` };
  });
}
