import type { Alert, Severity } from '../core/alert.ts';
import { currentStatus, type HealthStatus } from '../core/health-status.ts';

interface LiveNode {
  readonly status: HealthStatus;
  readonly receivedSeconds: number;
  readonly periodSeconds: number;
}

/** What is known right now: the last status of every node and the open alerts. Times are monotonic seconds. */
export class Live {
  readonly #nodes = new Map<string, LiveNode>();
  /** Nodes known from the store that have not been heard since the start. */
  readonly #known = new Set<string>();
  readonly #open = new Map<string, Alert>();

  know(names: Iterable<string>): void {
    for (const name of names) this.#known.add(name);
  }

  setStatus(status: HealthStatus, receivedSeconds: number, periodSeconds: number): void {
    this.#nodes.set(status.node_name, { status, receivedSeconds, periodSeconds });
  }

  setAlert(alert: Alert): void {
    if (alert.resolved) this.#open.delete(alert.alert_id);
    else this.#open.set(alert.alert_id, alert);
  }

  nodes(): string[] {
    return [...new Set([...this.#known, ...this.#nodes.keys()])];
  }

  current(node: string, nowSeconds: number): HealthStatus | null {
    const live = this.#nodes.get(node);
    return live ? currentStatus(live.status, nowSeconds - live.receivedSeconds, live.periodSeconds) : null;
  }

  ageSeconds(node: string, nowSeconds: number): number | null {
    const live = this.#nodes.get(node);
    return live ? nowSeconds - live.receivedSeconds : null;
  }

  openAlerts(): Alert[] {
    return [...this.#open.values()];
  }

  openBySeverity(): Record<Severity, number> {
    const counts: Record<Severity, number> = { WARNING: 0, ERROR: 0, CRITICAL: 0 };
    for (const alert of this.#open.values()) counts[alert.severity] += 1;
    return counts;
  }
}
