import type { Alert } from '../../src/core/alert.ts';
import type { OpenAlert, ServiceReading } from '../record/entries.ts';

/** What is open by what the topic told, and by what REST listed last. */
export class OpenAlerts {
  readonly #byTopic: Map<string, OpenAlert>;
  #byRest: readonly OpenAlert[] | null = null;

  /** `byTopic`: as the record knows them. */
  constructor(byTopic: ReadonlyMap<string, OpenAlert>) {
    this.#byTopic = new Map(byTopic);
  }

  get listed(): readonly OpenAlert[] {
    return this.#byRest ?? [];
  }

  told({ alert_id, metric, resolved, severity }: Alert): void {
    if (resolved) this.#byTopic.delete(alert_id);
    else this.#byTopic.set(alert_id, { alert_id, severity, metric });
  }

  /** Takes in a list; whether it differs from the one before, or is the first. */
  take(listed: readonly OpenAlert[]): boolean {
    const isNew = this.#byRest === null || keys(listed) !== keys(this.#byRest);
    this.#byRest = listed;
    return isNew;
  }

  /** Whether there must be another list than the last, by how many the service counts. */
  isOutdated(counts: ServiceReading['open_alerts']): boolean {
    const listed = this.#byRest;
    if (listed === null) return true;
    return Object.entries(counts).some(([severity, count]) => listed.filter((alert) => alert.severity === severity).length !== count);
  }

  /** Whether both know the same CRITICAL ones. */
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
