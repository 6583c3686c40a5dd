import type { Test } from 'tap';
import type { Services } from '../../../ops/restore/units.ts';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { BackupSite } from '../../../testkit/ops/backup-site.ts';
import { nextPage } from '../../../testkit/service/rest.ts';
import { RunningService } from '../../../testkit/service/service.ts';

/** Many samples, and an alert that any machine raises. */
export const BUSY = {
  publish_frequency: 50,
  thresholds: { memory: { warning: 0.1, critical: 0.2 } },
  alerts: { raise_after_seconds: 0, clear_after_seconds: 0 },
};

/** A service that is stopped and started as a unit would be. */
export class Unit implements Services {
  readonly running = ['edge-health.service'];
  readonly runtimeFolders = [];
  readonly did: string[] = [];
  /** Called instead of the next start. */
  insteadOfStart: (() => Promise<void>) | null = null;
  service: RunningService | null = null;
  readonly #site: BackupSite;
  readonly #config: Readonly<Record<string, unknown>>;

  private constructor(t: Test, site: BackupSite, config: Readonly<Record<string, unknown>>) {
    this.#site = site;
    this.#config = config;
    t.teardown(() => this.service?.end());
  }

  static async started(t: Test, site: BackupSite, config: Readonly<Record<string, unknown>>): Promise<Unit> {
    const unit = new Unit(t, site, config);
    await unit.start();
    return unit;
  }

  get up(): RunningService {
    if (!this.service) throw new Error('it does not run');
    return this.service;
  }

  async stop(): Promise<void> {
    this.did.push('stop');
    await this.service?.end();
    this.service = null;
  }

  async start(): Promise<void> {
    this.did.push('start');
    const instead = this.insteadOfStart;
    this.insteadOfStart = null;
    if (instead) return instead();
    this.service = await RunningService.start(this.#site.folder, { dataPath: this.#site.dataFolder, config: this.#config });
    this.#site.url = this.service.unixUrl;
  }

  /** Follows the pages to the end. */
  async all<T>(path: string): Promise<T[]> {
    const found: T[] = [];
    for (let next: string | undefined = path; next; ) {
      const response: Response = await this.up.get(next);
      found.push(...((await response.json()) as { data: T[] }).data);
      next = nextPage(next, response.headers.get('link'));
    }
    return found;
  }

  /** The time of the newest sample: all earlier samples can be requested. */
  async newest(): Promise<string> {
    const { data } = await this.up.json<{ data: HealthStatus[] }>('/health/history?hours=1&order=desc&limit=1');
    const [sample] = data;
    if (!sample) throw new Error('no sample is stored');
    return sample.timestamp;
  }

  history(to: string): Promise<HealthStatus[]> {
    return this.all<HealthStatus>(`/health/history?from=${hourAgo()}&to=${to}&limit=10000&order=asc`);
  }

  async changes(to: string): Promise<Alert[]> {
    return this.all<Alert>(`/alerts?changes=true&from=${hourAgo()}&to=${to}&limit=10000`);
  }
}

export function hourAgo(): string {
  return new Date(Date.now() - 3_600_000).toISOString();
}
