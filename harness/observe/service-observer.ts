import { alertListSchema, type StatusDocument } from '../../src/client/documents.ts';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import { type Alert, nodeOfAlertId } from '../../src/core/alerts/alert.ts';
import type { Clocked, OpenAlert, ServiceEntry, ServiceReading } from '../record/entries.ts';
import { isStatus } from './discover.ts';
import { readControlGroup, readProcess } from './kernel-counters.ts';
import type { KnownRun, RunsBetween, SupervisedRun, Supervisor } from './supervisor.ts';

/** A run of the service as first seen. */
export type SeenRun = Omit<ServiceEntry, 'type' | keyof Clocked>;

export interface ServiceObserverOptions {
  readonly rest: RestClient;
  readonly node: string;
  /** Null if unknown, as on another machine. */
  readonly supervisor: Supervisor | null;
  /** The last run in the record; null at the start of the record. */
  readonly before: KnownRun | null;
  /** Id of the current boot of the machine; null if unknown. */
  readonly bootId: string | null;
  readonly monotonicSeconds: () => number;
  /** Roots of procfs and of the control groups; recorded trees in tests. */
  readonly procRoot?: string;
  readonly groupRoot?: string;
}

/** The supervisor is queried when the run has changed, and otherwise at this interval. */
const SUPERVISOR_SECONDS = 300;
/** While the service does not respond, its supervisor is queried at this interval. */
const NO_RESPONSE_SECONDS = 60;
/** A run may end between two queries, and its supervisor may not report a new run yet. */
const TRIES = 3;
const RETRY_MS = 500;
const TIMEOUT_SECONDS = 8;
/** A smaller difference of the two counters comes from the time between their readings, and is not CPU time of an earlier run. */
const COUNTED_BEFORE_SECONDS = 1;
const ALERTS_PER_PAGE = 1000;

/** Reads the service over REST, its supervisor and the kernel's counters. */
export class ServiceObserver {
  readonly #options: ServiceObserverOptions;
  #known: KnownRun | null;
  /** Null if unknown or not queried yet. */
  #supervised: SupervisedRun | null = null;
  /** CPU time that the control group had already counted before this run. */
  #countedBefore = 0;
  #queriedAt = Number.NEGATIVE_INFINITY;
  #noResponseAt = Number.NEGATIVE_INFINITY;

  constructor(options: ServiceObserverOptions) {
    this.#options = options;
    this.#known = options.before;
  }

  /**
   * The current reading, and the service run if it differs from the previous one. Null if the service does not respond.
   * `resident_bytes` has one element.
   */
  async read(): Promise<{ readonly reading: ServiceReading; readonly run: SeenRun | null } | null> {
    const found = await this.#readRun();
    if (found === null) {
      await this.#noResponse();
      return null;
    }
    this.#noResponseAt = Number.NEGATIVE_INFINITY;
    return { reading: this.#reading(found.status), run: found.run };
  }

  /**
   * Reads /status and, when due, the supervisor, both of the same run. Null if there is no response, or if the run changed during each try.
   */
  async #readRun(): Promise<{ readonly status: StatusDocument; readonly run: SeenRun | null } | null> {
    const { monotonicSeconds, supervisor } = this.#options;
    for (let left = TRIES; left > 0; left -= 1) {
      const status = await this.#status();
      if (status === null) return null;
      const isAnother = status.started !== this.#known?.started;
      const isDue = supervisor !== null && monotonicSeconds() - this.#queriedAt >= SUPERVISOR_SECONDS;
      if (!isAnother && !isDue) return { status, run: null };
      this.#queriedAt = monotonicSeconds();
      const supervised = (await supervisor?.now()) ?? null;
      const after = await this.#status();
      if (after?.started !== status.started) continue;
      if (isAnother && supervised === null && supervisor !== null && left > 1) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      const run = isAnother ? await this.#seenRun(after, supervised) : null;
      this.#remember(after, supervised, isAnother);
      return { status: after, run };
    }
    return null;
  }

  /** The alerts of the observed node in `/alerts?resolved=false`; null if there is no response. */
  async open(): Promise<readonly OpenAlert[] | null> {
    const { node, rest } = this.#options;
    const found: OpenAlert[] = [];
    let path: string | null = `/alerts?resolved=false&node=${encodeURIComponent(node)}&limit=${ALERTS_PER_PAGE}`;
    try {
      while (path !== null) {
        const page: { body: { data: readonly Alert[] }; next: string | null } = await rest.page(path, {
          timeoutSeconds: TIMEOUT_SECONDS,
          schema: alertListSchema,
        });
        const own = page.body.data.filter(({ alert_id, resolved }) => !resolved && nodeOfAlertId(alert_id) === node);
        found.push(...own.map(({ alert_id, metric, severity }) => ({ alert_id, severity, metric })));
        path = page.next;
      }
    } catch (error) {
      return nullIfUnavailable(error);
    }
    return found;
  }

  async #status(): Promise<StatusDocument | null> {
    try {
      const status = await this.#options.rest.json<unknown>('/status', { timeoutSeconds: TIMEOUT_SECONDS });
      return isStatus(status) ? status : null;
    } catch (error) {
      return nullIfUnavailable(error);
    }
  }

  async #seenRun({ started, version }: StatusDocument, supervised: SupervisedRun | null): Promise<SeenRun> {
    const { invocation = null, pid = null } = supervised ?? {};
    const end = this.#known && (await this.#between(this.#known, version, supervised));
    return { started, version, pid, invocation, ...(end ?? { cause: 'first', detail: '', unseen: 0 }) };
  }

  async #between(before: KnownRun, version: string, supervised: SupervisedRun | null): Promise<RunsBetween> {
    const { bootId, supervisor } = this.#options;
    const isUpgraded = version !== before.version;
    const versions = isUpgraded ? `${before.version} → ${version}` : '';
    if (supervisor === null || supervised === null) return { cause: isUpgraded ? 'upgrade' : 'unknown', detail: versions, unseen: 0 };
    if (bootId !== null && before.bootId !== null && bootId !== before.bootId)
      return { cause: 'reboot', detail: versions, unseen: supervised.restarts ?? 0 };
    const between = (await supervisor.between(before, supervised)) ?? { cause: 'unknown', detail: '', unseen: 0 };
    const isByUpgrade = isUpgraded && (between.cause === 'stopped' || between.cause === 'unknown');
    return isByUpgrade ? { ...between, cause: 'upgrade', detail: versions } : between;
  }

  #remember({ started, version }: StatusDocument, supervised: SupervisedRun | null, isAnother: boolean): void {
    // Without a response, the known data of the same run is kept.
    if (!isAnother && supervised === null) return;
    const { controlGroup = null, cpuSeconds = null, invocation = null, pid = null, restarts = null } = supervised ?? {};
    if (isAnother || this.#supervised === null) {
      const counted = controlGroup === null ? null : readControlGroup(this.#groupRoot, controlGroup).cpuSeconds;
      const before = counted === null || cpuSeconds === null ? 0 : counted - cpuSeconds;
      this.#countedBefore = before > COUNTED_BEFORE_SECONDS ? before : 0;
    }
    this.#supervised = supervised;
    this.#known = { started, version, pid, invocation, restarts, bootId: this.#options.bootId };
  }

  async #noResponse(): Promise<void> {
    const { monotonicSeconds, supervisor } = this.#options;
    const now = monotonicSeconds();
    if (!supervisor?.onNoResponse || now - this.#noResponseAt < NO_RESPONSE_SECONDS) return;
    this.#noResponseAt = now;
    await supervisor.onNoResponse(this.#known?.invocation ?? null);
  }

  #reading(status: StatusDocument): ServiceReading {
    const { open_alerts, process, publish, ros, storage } = status;
    const { controlGroup = null, pid = null, restarts = null } = this.#supervised ?? {};
    const group = controlGroup === null ? null : readControlGroup(this.#groupRoot, controlGroup);
    const own = pid === null ? null : readProcess(this.#options.procRoot ?? '/proc', pid);
    const cpu: Pick<ServiceReading, 'cpu_seconds' | 'cpu_from'> =
      group !== null && group.cpuSeconds !== null
        ? { cpu_seconds: Math.max(0, group.cpuSeconds - this.#countedBefore), cpu_from: 'group' }
        : own !== null && own.cpuSeconds !== null
          ? { cpu_seconds: own.cpuSeconds, cpu_from: 'process' }
          : { cpu_seconds: process.cpu_seconds, cpu_from: 'status' };
    const { anonBytes = null, memoryBytes = null } = group ?? {};
    return {
      started: status.started,
      samples: publish.samples,
      missed: publish.missed,
      published: ros.published?.health_status ?? null,
      samples_lost: storage.samples_lost,
      resident_bytes: [own?.residentBytes ?? process.resident_memory_bytes],
      ...cpu,
      group: memoryBytes === null || anonBytes === null ? null : { memory_bytes: memoryBytes, anon_bytes: anonBytes, restarts },
      open_files: process.open_files,
      open_alerts,
      configured_hertz: publish.configured_hertz,
      database_bytes: storage.size_bytes,
    };
  }

  get #groupRoot(): string {
    return this.#options.groupRoot ?? '/sys/fs/cgroup';
  }
}

/** The service may be stopped, restarting or overloaded; any other error is a bug. */
function nullIfUnavailable(error: unknown): null {
  if (error instanceof ServiceUnreachable || error instanceof ServiceRefused) return null;
  throw error;
}
