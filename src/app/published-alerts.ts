import { join } from 'node:path';
import type { Alert } from '../core/alerts/alert.ts';
import { writeAtomically } from '../core/files/atomic-file.ts';
import { readRegularFileSync } from '../core/files/regular-file.ts';
import type { Log } from '../core/ports.ts';
import { alertFrom } from '../ros/messages.ts';

const MAX_BYTES = 1024 * 1024;
/** By then, every subscriber that is reachable has received a resolution. */
const RECEIVED_MS = 5000;

/**
 * The alerts that subscribers of /alerts may hold as open, each as last published: in a file, because their resolution must be published
 * even if this process is killed before, or leaves the graph.
 */
export class PublishedAlerts {
  readonly #path: string;
  readonly #log: Log;
  readonly #alerts = new Map<string, Alert>();
  #writing: Promise<void> | null = null;
  #isOutdated = false;
  #isFailing = false;

  constructor(folder: string, log: Log) {
    this.#path = join(folder, 'published_alerts.json');
    this.#log = log;
  }

  /** Reads what an earlier run has published; nothing if the file cannot be read. */
  read(): Alert[] {
    try {
      for (const entry of JSON.parse(readRegularFileSync(this.#path, MAX_BYTES).toString()) as unknown[]) {
        const checked = alertFrom(entry);
        if (checked.ok) this.#alerts.set(checked.value.alert_id, checked.value);
      }
    } catch {
      // Usually there is no such file yet.
    }
    return [...this.#alerts.values()];
  }

  has(id: string): boolean {
    return this.#alerts.has(id);
  }

  /** Records a published change, a resolution until it was received. Resolves once it is written, or could not be; never rejects. */
  async add(alert: Alert): Promise<void> {
    const before = this.#alerts.get(alert.alert_id);
    if (alert.resolved && !before) return;
    this.#alerts.set(alert.alert_id, alert);
    if (alert.resolved) setTimeout(() => this.#remove(alert), RECEIVED_MS).unref();
    if (before?.resolved !== alert.resolved) this.#write();
    await this.#writing;
  }

  /** Resolves when everything is written. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  #remove(alert: Alert): void {
    if (this.#alerts.get(alert.alert_id) !== alert) return;
    this.#alerts.delete(alert.alert_id);
    this.#write();
  }

  #write(): void {
    this.#isOutdated = true;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#isOutdated) {
      this.#isOutdated = false;
      try {
        await writeAtomically(this.#path, JSON.stringify([...this.#alerts.values()]));
        this.#isFailing = false;
      } catch (error) {
        if (this.#isFailing) continue;
        this.#isFailing = true;
        this.#log('warning', 'list of published alerts not saved', { path: this.#path, error: (error as Error).message });
      }
    }
  }
}
