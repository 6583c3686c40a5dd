/** What a fault uses: a healthy machine, observers outside of it, and the checks of what must hold. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { type Appliance, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { nextPage } from '../../../testkit/service/rest.ts';
import { Teardowns } from '../../../testkit/teardown.ts';
import { type AlertLoad, LOAD_METRIC } from '../../../testkit/weeks/alert-load.ts';
import { longestGapSeconds, missingSamples, turnsWithoutAlert } from '../../../testkit/weeks/losses.ts';
import type { Lan } from './lan.ts';
import type { EventStreamClient, Received, TopicSubscriber } from './observers.ts';
import type { Check, Figures, Target } from './report.ts';

export type { Figures } from './report.ts';

export const DATABASE = `${STATE}/edge-health.db`;
/** The write-ahead buffer in memory, of the last minute. */
export const SPOOL = '/run/edge-health/spool';

/** Only decides how long to wait for a broken service; a target defines how soon it should recover. */
const LIMIT_SECONDS = 120;
/** An older sample is not current. */
const FRESH_SECONDS = 2;
const REQUEST_MS = 5000;
const HISTORY_PAGE = 10_000;
const GAP_TARGET_SECONDS = 3;

export const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

/** A running machine with its observers. */
export interface Machine {
  readonly appliance: Appliance;
  readonly stream: EventStreamClient;
  readonly topic: TopicSubscriber | null;
  readonly load: AlertLoad | null;
  readonly lan: Lan | null;
  readonly hertz: number;
}

export interface FinishOptions {
  readonly observed: string;
  /** The result of `recovered`; null: nothing ever stopped. */
  readonly recoverySeconds: number | null;
  /** Data stored before this moment (ms since the epoch) was removed by the fault itself. Omitted: every received status must be stored. */
  readonly removedBeforeMs?: number;
  /** If the clock of the machine cannot be used to count: what the fault itself has counted. */
  readonly counts?: { readonly samplesLost: number | null; readonly alertsLost: number | null };
}

/** The process of the service and how often systemd restarted it, for a later comparison. */
export interface ServiceProcess {
  readonly pid: number;
  readonly restarts: number;
}

export class FaultBench implements Machine {
  readonly appliance: Appliance;
  readonly machine: Container;
  readonly stream: EventStreamClient;
  readonly topic: TopicSubscriber | null;
  readonly load: AlertLoad | null;
  readonly hertz: number;
  readonly checks: Check[] = [];
  readonly targets: Target[] = [];
  /** Everything since then is counted; the machine was healthy at that moment. */
  beganMs = 0;
  readonly #t: Test;
  readonly #lan: Lan | null;
  readonly #teardowns = new Teardowns();

  constructor(t: Test, machine: Machine) {
    this.#t = t;
    this.appliance = machine.appliance;
    this.machine = machine.appliance.machine;
    this.stream = machine.stream;
    this.topic = machine.topic;
    this.load = machine.load;
    this.#lan = machine.lan;
    this.hertz = machine.hertz;
  }

  get lan(): Lan {
    if (!this.#lan) throw new Error('the machine has no network');
    return this.#lan;
  }

  /** Proves that the machine is healthy, and starts the alert load and the counting. */
  async begin(): Promise<void> {
    // Starts that an earlier fault forced must not count towards this one's start limit.
    await this.machine.run(['systemctl', 'reset-failed', UNIT]);
    this.load?.start();
    await this.untilHealthy(Date.now());
    if (this.load) await this.#untilAlertsMatchLoad();
    this.beganMs = Date.now();
    await this.untilHealthy(this.beganMs);
  }

  /** Registers a function that removes the fault; it is called however the fault ends. */
  teardown(action: () => unknown): void {
    this.#teardowns.teardown(action);
  }

  async end(): Promise<void> {
    this.load?.stop();
    await this.#teardowns.run();
  }

  comment(text: string): void {
    this.#t.comment(text);
  }

  /** Asserts something that must hold. The fault continues if it does not. */
  check(what: string, holds: boolean, found?: unknown): void {
    const shown = holds || found === undefined ? {} : { found: textOf(found) };
    this.checks.push({ what, holds, ...shown });
    this.#t.ok(holds, what, shown);
  }

  /** The same for something asynchronous; an error counts as what was found. */
  async checkAsync(what: string, holds: () => Promise<boolean>): Promise<void> {
    try {
      this.check(what, await holds());
    } catch (error) {
      this.check(what, false, (error as Error).message);
    }
  }

  /** Asserts that something will hold within a time. */
  checkEventually(what: string, holds: () => boolean | Promise<boolean>, found?: () => string): Promise<void> {
    return this.checkAsync(what, async () => {
      await this.machine.until(holds, LIMIT_SECONDS, found);
      return true;
    });
  }

  /** Records whether a figure meets its target. That depends on the machine as well, so that no fault fails because of it. */
  target(what: string, met: boolean, found: string): void {
    this.targets.push({ what, met, found });
    if (!met) this.comment(`target not met: ${what} (${found})`);
  }

  /** The problem as a user sees it: unit, REST, store, topic. Null: all is well, with samples stamped after `sinceMs`. */
  async problem(sinceMs = Date.now() - FRESH_SECONDS * 1000): Promise<string | null> {
    let health: HealthStatus;
    let status: StatusDocument;
    try {
      const url = await this.machine.url();
      const get = async (path: string): Promise<unknown> => (await fetch(url + path, { signal: AbortSignal.timeout(REQUEST_MS) })).json();
      [health, status] = (await Promise.all([get('/health'), get('/status')])) as [HealthStatus, StatusDocument];
    } catch {
      return 'REST does not answer';
    }
    if (!(Date.parse(health.timestamp) > sinceMs)) return `the sample of /health is of ${health.timestamp}`;
    if (status.storage.state !== 'ok') return `the store is ${status.storage.state}: ${status.storage.error}`;
    if (status.config.problem !== null) return `the configuration: ${status.config.problem}`;
    if (this.topic && this.topic.newestMs <= sinceMs) return 'no data on the topic';
    return null;
  }

  /** Waits until all is well, and returns how many seconds after `sinceMs` that was. Otherwise throws with the problem and the journal. */
  async untilHealthy(sinceMs: number): Promise<number> {
    let problem: string | null = null;
    try {
      await this.machine.until(async () => {
        problem = await this.problem(sinceMs);
        return problem === null;
      }, LIMIT_SECONDS);
    } catch {
      const journal = (await this.machine.journal(UNIT)).trimEnd().split('\n').slice(-15).join('\n');
      throw new Error(`not healthy after ${LIMIT_SECONDS} s: ${problem}\n${journal}`);
    }
    return (Date.now() - sinceMs) / 1000;
  }

  /** Injects the fault, or removes it, and returns the moment after that (ms since the epoch), from which recovery counts. */
  async inject(action: () => unknown): Promise<number> {
    await action();
    return Date.now();
  }

  /** Seconds from a moment until all is well again, with their target. Without recovery the fault has failed and ends. */
  async recovered(sinceMs: number, targetSeconds: number): Promise<number> {
    const what = 'everything serves again';
    try {
      const seconds = await this.untilHealthy(sinceMs);
      this.check(what, true);
      this.target(`everything serves again within ${targetSeconds} s`, seconds <= targetSeconds, `${seconds.toFixed(1)} s`);
      return seconds;
    } catch (error) {
      this.check(what, false, (error as Error).message);
      throw error;
    }
  }

  /** Injects the fault, or removes it, and waits until all is well again. */
  async recoverAfter(action: () => unknown, targetSeconds: number): Promise<number> {
    return this.recovered(await this.inject(action), targetSeconds);
  }

  /** Waits until the fault has lasted for the statuses of this many seconds, all of them published by stream and topic. */
  async checkPublishing(seconds: number): Promise<void> {
    const fromMs = Date.now();
    const wanted = Math.ceil(seconds * this.hertz);
    const since = (received: readonly Received<HealthStatus>[]): number[] => stampsOf(received).filter((stamp) => stamp > fromMs);
    const sources = [['event stream', this.stream], ...(this.topic ? [['topic', this.topic] as const] : [])] as const;
    for (const [name, source] of sources) {
      const count = (): number => since(source.statuses).length;
      await this.checkAsync(`statuses are published on the ${name} meanwhile`, async () => {
        await this.machine.until(
          () => count() >= wanted,
          seconds + LIMIT_SECONDS,
          () => `${count()} of ${wanted} were received`,
        );
        return true;
      });
      const gap = longestGapSeconds(since(source.statuses), fromMs, Date.now());
      this.target(`no gap of ${GAP_TARGET_SECONDS} s on the ${name}`, gap < GAP_TARGET_SECONDS, `${gap.toFixed(1)} s`);
    }
  }

  async serviceProcess(): Promise<ServiceProcess> {
    return { pid: await this.appliance.mainPid(), restarts: await this.appliance.restarts() };
  }

  async checkSameProcess(before: ServiceProcess): Promise<void> {
    const now = await this.serviceProcess();
    this.check('the same process continues, without a restart', now.pid === before.pid && now.restarts === before.restarts, now);
  }

  async checkRestarted(before: ServiceProcess, times = 1): Promise<void> {
    const now = await this.serviceProcess();
    this.check(`systemd restarted it ${times === 1 ? 'once' : `${times} times`}`, now.restarts === before.restarts + times, now);
    this.check('the unit is active', (await this.machine.show(UNIT, 'ActiveState')) === 'active');
  }

  /** The messages of the service, and of systemd about its unit, since then. */
  journalSince(sinceMs: number): Promise<string> {
    return this.machine.journal(UNIT, '--since', `@${(sinceMs / 1000).toFixed(3)}`);
  }

  /** Time stamps of the stored samples in a span, oldest first. */
  async stored(fromMs: number, toMs: number): Promise<number[]> {
    const stamps: number[] = [];
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
    let next: string | undefined = `/health/history?${range}&order=asc&limit=${HISTORY_PAGE}`;
    while (next !== undefined) {
      const response: Response = await this.machine.http(next);
      if (response.status !== 200) throw new Error(`${next}: ${response.status} ${await response.text()}`);
      const { data } = (await response.json()) as { data: HealthStatus[] };
      stamps.push(...data.map(({ timestamp }) => Date.parse(timestamp)));
      next = nextPage(next, response.headers.get('link'));
    }
    return stamps;
  }

  /** Every stored change of an alert of the alert load since then, oldest first. */
  async #changes(fromMs: number): Promise<Alert[]> {
    const path = `/alerts?changes=true&metric=${LOAD_METRIC}&from=${new Date(fromMs).toISOString()}&limit=10000`;
    const { data } = await this.machine.json<{ data: Alert[] }>(path);
    return data.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp));
  }

  /** Checks what must hold after every fault, and returns the figures of the table. */
  async finish({ observed, recoverySeconds, removedBeforeMs = 0, counts }: FinishOptions): Promise<Figures> {
    await this.untilHealthy(Date.now());
    this.load?.stop();
    if (this.load) {
      await this.checkAsync('an alert is open if and only if its cause is present', async () => {
        await this.#untilAlertsMatchLoad();
        return true;
      });
    }
    const fromMs = this.beganMs;
    const toMs = Date.now();
    await this.machine.until(() => this.stream.statuses.some(({ it }) => Date.parse(it.timestamp) >= toMs), LIMIT_SECONDS);

    const inSpan = (stamp: number): boolean => stamp >= fromMs && stamp < toMs;
    const stored = await this.stored(fromMs, toMs);
    const isStored = new Set(stored);
    this.check('no sample is stored twice', isStored.size === stored.length);
    const streamed = new Set(stampsOf(this.stream.statuses).filter(inSpan));
    const received = [...new Set([...streamed, ...stampsOf(this.topic?.statuses ?? []).filter(inSpan)])].sort((a, b) => a - b);
    const lost = received.filter((stamp) => !isStored.has(stamp) && stamp >= removedBeforeMs);
    this.check('every status that an observer received is in the history', lost.length === 0, stampsText(lost));
    const missed = stored.filter((stamp) => !streamed.has(stamp));
    this.check('the event stream, resumed, brought every stored status', missed.length === 0, stampsText(missed));
    await this.checkAsync('SQLite finds nothing wrong with the database', () => this.databaseIsIntact());
    if (counts) return { observed, recoverySeconds, ...counts };
    const { alertsLost, notes } = await this.#lostAlerts(fromMs, toMs, removedBeforeMs);
    return { observed, recoverySeconds, samplesLost: missingSamples(stored, 1000 / this.hertz, fromMs, toMs), alertsLost, notes };
  }

  async #lostAlerts(fromMs: number, toMs: number, removedBeforeMs: number): Promise<{ alertsLost: number | null; notes: string[] }> {
    if (!this.load) return { alertsLost: null, notes: [] };
    const inSpan = (ms: number): boolean => ms >= fromMs && ms < toMs;
    const changes = await this.#changes(fromMs - 1000);
    // A reload that moves the threshold of an open alert publishes it with the new one.
    const raised = changes.filter(({ resolved }) => !resolved).map(({ alert_id, threshold }) => `${alert_id} ${threshold}`);
    this.check('no alert is raised twice', new Set(raised).size === raised.length, raised);
    const known = new Set(changes.map(changeKey));
    const received = [...this.stream.alerts, ...(this.topic?.alerts ?? [])].map(({ it }) => it);
    const own = received.filter(({ metric, timestamp }) => metric === LOAD_METRIC && inSpan(Date.parse(timestamp)));
    const unstored = [...new Set(own.map(changeKey))].filter((key) => !known.has(key));
    const lost = own.filter((alert) => Date.parse(alert.timestamp) >= removedBeforeMs && !known.has(changeKey(alert)));
    this.check('every change of an alert that an observer received is in the history', lost.length === 0, lost);
    const turns = this.load.turns.filter(({ atMs }) => inSpan(atMs));
    const answers = changes.map(({ timestamp, resolved }) => ({ atMs: Date.parse(timestamp), resolved }));
    const unseen = turnsWithoutAlert(turns, answers, 2000 / this.hertz);
    return {
      alertsLost: unstored.length + unseen.length,
      notes: [
        ...unstored.map((key) => `received and not stored: ${key}`),
        ...unseen.map(({ atMs, isHigh }) => `no alert for the ${isHigh ? 'start' : 'end'} of the cause at ${new Date(atMs).toISOString()}`),
      ],
    };
  }

  /** Writes everything recorded so far to the database, as a backup does; returns the moment when that was done (ms since the epoch). */
  async flush(): Promise<number> {
    await this.#snapshot();
    return Date.now();
  }

  /** Whether SQLite finds a copy of the database intact, which is requested over REST as a backup does. */
  async databaseIsIntact(): Promise<boolean> {
    const copy = await this.#snapshot();
    const teardowns = new Teardowns();
    try {
      const file = join(temporaryFolder(teardowns), 'copy.db');
      writeFileSync(file, copy);
      const db = new DatabaseSync(file, { readOnly: true });
      const found = db.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[];
      db.close();
      if (found[0]?.integrity_check !== 'ok') throw new Error(JSON.stringify(found));
      return true;
    } finally {
      await teardowns.run();
    }
  }

  async #snapshot(): Promise<Buffer> {
    const response = await this.machine.snapshot();
    if (response.status !== 200) throw new Error(`/snapshot: ${response.status} ${await response.text()}`);
    return Buffer.from(await response.arrayBuffer());
  }

  /** Path on this machine of a file of the container, while that runs. */
  hostPath(path: string): string {
    return `/proc/${this.machine.pid1}/root${path}`;
  }

  /** Waits until the open alerts of /alerts are those of the alert load. */
  async #untilAlertsMatchLoad(): Promise<void> {
    await this.machine.until(
      async () => {
        // A service under a fault may not respond; then the request is repeated.
        const open = await this.appliance.openAlertIds(LOAD_METRIC).catch(() => null);
        return open !== null && open.length === (this.load?.isHigh ? 1 : 0);
      },
      LIMIT_SECONDS,
      () => `the value is ${this.load?.isHigh ? 'above' : 'below'} its threshold, and /alerts does not show it`,
    );
  }
}

const stampsOf = (received: readonly Received<HealthStatus>[]): number[] => received.map(({ it }) => Date.parse(it.timestamp));

/** What identifies a change of an alert. */
export function changeKey({
  alert_id,
  severity,
  resolved,
  timestamp,
}: Pick<Alert, 'alert_id' | 'severity' | 'resolved' | 'timestamp'>): string {
  return `${alert_id} ${severity}${resolved ? ' resolved' : ''} ${timestamp}`;
}

/** Their number, and the first few of them. */
function stampsText(stamps: readonly number[]): string {
  const some = stamps.slice(0, 5).map((stamp) => new Date(stamp).toISOString());
  return `${stamps.length}: ${some.join(', ')}${stamps.length > some.length ? ' …' : ''}`;
}

function textOf(found: unknown): string {
  return (typeof found === 'string' ? found : (JSON.stringify(found) ?? String(found))).slice(0, 2000);
}
