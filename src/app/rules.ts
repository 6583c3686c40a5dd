import type { Config } from '../config/schema.ts';
import type { JudgingRules } from '../core/alerts/threshold-monitor.ts';
import { STALE_AFTER_PERIODS } from '../core/health-status.ts';

/** Rules for this machine's own samples. `nodeName`: as in health statuses and alert ids. */
export function judgingRules(config: Config, nodeName: string): JudgingRules {
  const { alerts, disk, thresholds } = config;
  return {
    nodeName,
    diskPaths: disk.paths,
    thresholds: {
      cpu_percent: thresholds.cpu,
      memory_percent: thresholds.memory,
      disk_percent: thresholds.disk,
      temperature: thresholds.temperature,
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
