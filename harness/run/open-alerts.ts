import type { Alert } from '../../src/core/alert.ts';
import type { OpenAlert, ServiceReading } from '../record/entries.ts';

/** The open alerts by the changes received on the topic, and by the last list of REST. */
export class OpenAlerts {
  readonly #byTopic: Map<string, OpenAlert>;
  #byRest: readonly OpenAlert[] | null = null;

  /** `byTopic`: as in the record. */
  constructor(byTopic: ReadonlyMap<string, OpenAlert>) {
    this.#byTopic = new Map(byTopic);
  }

  get listed(): readonly OpenAlert[] {
    return this.#byRest ?? [];
  }

  addChange({ alert_id, metric, resolved, severity }: Alert): void {
    if (resolved) this.#byTopic.delete(alert_id);
    else this.#byTopic.set(alert_id, { alert_id, severity, metric });
  }

  /** Returns whether the list differs from the previous one, or is the first. */
  setListed(listed: readonly OpenAlert[]): boolean {
    const isNew = this.#byRest === null || keys(listed) !== keys(this.#byRest);
    this.#byRest = listed;
    return isNew;
  }

  /** Whether the last list differs from the counts of the service. */
  isOutdated(counts: ServiceReading['open_alerts']): boolean {
    const listed = this.#byRest;
    if (listed === null) return true;
    return Object.entries(counts).some(([severity, count]) => listed.filter((alert) => alert.severity === severity).length !== count);
  }

  /** Whether both have the same CRITICAL alerts. */
  get agree(): boolean {
    return this.#byRest !== null && keys(critical(this.#byRest)) === keys(critical(this.#byTopic.values()));
  }
}

function critical(alerts: Iterable<OpenAlert>): OpenAlert[] {
  return [...alerts].filter(({ severity }) => severity === 'CRITICAL');
}

function keys(alerts: readonly OpenAlert[]): string {
  return alerts
    .map(({ alert_id, severity }) => `${alert_id} ${severity}`)
    .sort()
    .join();
}
