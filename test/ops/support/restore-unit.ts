import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Test } from 'tap';
import type { Services } from '../../../ops/backup/units.ts';
import type { Alert } from '../../../src/core/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { BackupSite } from '../../../testkit/ops/backup-site.ts';
import { RunningService } from '../../../testkit/service.ts';

/** Samples in numbers, and alerts that come and go with every change of the load. */
export const LOADED = {
  publish_frequency: 200,
  thresholds: { cpu: { warning: 20, critical: 60 } },
  alerts: { hysteresis_percent: 0, raise_after_seconds: 0, clear_after_seconds: 0 },
};

/** A port on which nobody listens just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

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

  private constructor(t: Test, site: BackupSite, port: number, config: Readonly<Record<string, unknown>>) {
    this.#site = site;
    this.#config = { ...config, rest: { port } };
    site.url = `http://127.0.0.1:${port}`;
    t.teardown(() => this.service?.end());
  }

  static async started(t: Test, site: BackupSite, config: Readonly<Record<string, unknown>>): Promise<Unit> {
    const unit = new Unit(t, site, await freePort(), config);
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
  }

  /** Follows the pages to the end. */
  async all<T>(path: string): Promise<T[]> {
    const found: T[] = [];
    for (let next: string | undefined = path; next; ) {
      const response: Response = await this.up.get(next);
      found.push(...((await response.json()) as { data: T[] }).data);
      next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    }
    return found;
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
