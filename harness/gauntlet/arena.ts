import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { type Appliance, UNIT } from '../../testkit/container/appliance.ts';
import type { Container } from '../../testkit/container/container.ts';
import { temporaryFolder } from '../../testkit/service.ts';
import { slotsWithout, unanswered } from './account.ts';
import type { Lan } from './lan.ts';
import type { Check, Figures } from './observation.ts';
import type { StreamReader, TopicReader } from './observer.ts';
import type { Tide } from './tide.ts';
import { stampsText, textOf } from './words.ts';

/** The metric that the tide moves. */
export const TIDE_METRIC = 'disk_percent';
const WELL_WITHIN_SECONDS = 60;
/** A sample that is older is not of now. */
const FRESH_SECONDS = 2;
const HISTORY_PAGE = 10_000;

export const pause = (seconds: number): Promise<void> => new Promise((later) => setTimeout(later, seconds * 1000));

export interface ArenaParts {
  readonly appliance: Appliance;
  readonly stream: StreamReader;
  /** Null: nobody listens on DDS. */
  readonly topic: TopicReader | null;
  readonly tide: Tide | null;
  readonly lan: Lan | null;
  readonly hertz: number;
  readonly progress: (text: string) => void;
}

export interface FinishOptions {
  readonly observed: string;
  /** As `recovered` told it; null: nothing ever ceased to serve. */
  readonly recoverySeconds: number | null;
  /** What had been stored by then (ms since the epoch) the fault itself took away. Left out: every status received must be stored. */
  readonly goneBeforeMs?: number;
  /** Why the clock of the machine cannot be used to count: then `samplesLost` and `alertsLost` are the fault's own. */
  readonly counts?: { readonly samplesLost: number | null; readonly alertsLost: number | null };
}

/** What was stored and received between two moments, and what was lost. */
export interface Account {
  /** Stamps, oldest first. */
  readonly stored: readonly number[];
  /** Slots of the grid without a stored sample. */
  readonly missing: number;
  /** Stamps of statuses that somebody received and the history has not. */
  readonly unstored: readonly number[];
  /** Stamps that the history has and the event stream, resumed where it broke off, never brought. */
  readonly unheard: readonly number[];
  readonly alertsLost: number;
  readonly alertNotes: readonly string[];
}

/** A machine that is well, those who watch it from outside, and the book of what has to hold, for one fault. */
export class Arena implements ArenaParts {
  readonly appliance: Appliance;
  readonly machine: Container;
  readonly stream: StreamReader;
  readonly topic: TopicReader | null;
  readonly tide: Tide | null;
  readonly lan: Lan | null;
  readonly hertz: number;
  readonly progress: (text: string) => void;
  readonly checks: Check[] = [];
  /** From when on everything is counted: it was well then. */
  beganMs = 0;
  readonly #endings: (() => unknown)[] = [];

  constructor(parts: ArenaParts) {
    this.appliance = parts.appliance;
    this.machine = parts.appliance.machine;
    this.stream = parts.stream;
    this.topic = parts.topic;
    this.tide = parts.tide;
    this.lan = parts.lan;
    this.hertz = parts.hertz;
    this.progress = parts.progress;
  }

  /** Proves that it is well, sets the cause of alerts going, and begins to count. */
  async begin(): Promise<void> {
    // Starts that an earlier fault forced are no part of this one's limit.
    await this.machine.run(['systemctl', 'reset-failed', UNIT]);
    const sinceMs = Date.now();
    this.tide?.start();
    await this.well(sinceMs, 30);
    if (this.tide) await this.#tideIsTold(15);
    this.beganMs = Date.now();
    await this.well(this.beganMs, 10);
  }

  /** Whatever way the fault ends, this is done after it: lift what was laid on. */
  afterwards(ending: () => unknown): void {
    this.#endings.push(ending);
  }

  async end(): Promise<void> {
    this.tide?.stop();
    for (const ending of this.#endings.splice(0).reverse()) await ending();
  }

  /** Notes something that had to hold, and whether it did. */
  must(what: string, holds: boolean, found?: unknown): void {
    this.checks.push({ what, holds, ...(holds || found === undefined ? {} : { found: textOf(found) }) });
    if (!holds) this.progress(`DOES NOT HOLD: ${what}${found === undefined ? '' : ` (${textOf(found)})`}`);
  }

  /** The same for what is asked within; what it throws is what was found. */
  async mustBe(what: string, holds: () => Promise<boolean>): Promise<void> {
    try {
      this.must(what, await holds());
    } catch (error) {
      this.must(what, false, (error as Error).message);
    }
  }

  /** What is not well, as a user sees it: unit, REST, store, topic. Null: all is well, with samples stamped after `sinceMs`. */
  async complaint(sinceMs = Date.now() - FRESH_SECONDS * 1000): Promise<string | null> {
    let health: HealthStatus;
    let status: StatusDocument;
    try {
      const url = await this.machine.url();
      const ask = async (path: string): Promise<unknown> => (await fetch(url + path, { signal: AbortSignal.timeout(1000) })).json();
      [health, status] = (await Promise.all([ask('/health'), ask('/status')])) as [HealthStatus, StatusDocument];
    } catch {
      return 'REST does not answer';
    }
    if (!(Date.parse(health.timestamp) > sinceMs)) return `the sample of /health is of ${health.timestamp}`;
    if (status.storage.state !== 'ok') return `the store is ${status.storage.state}: ${status.storage.error}`;
    if (status.config.problem !== null) return `the configuration: ${status.config.problem}`;
    if (this.topic && this.topic.newestMs <= sinceMs) return 'the topic is silent';
    return null;
  }

  /** Waits until all is well; how many seconds after `sinceMs` that was. Throws with the complaint and the journal when it is not. */
  async well(sinceMs: number, withinSeconds = WELL_WITHIN_SECONDS): Promise<number> {
    let complaint: string | null = null;
    try {
      await this.machine.until(async () => {
        complaint = await this.complaint(sinceMs);
        return complaint === null;
      }, withinSeconds);
    } catch {
      const journal = (await this.machine.journal(UNIT)).trimEnd().split('\n').slice(-15).join('\n');
      throw new Error(`not well within ${withinSeconds} s: ${complaint}\n${journal}`);
    }
    return (Date.now() - sinceMs) / 1000;
  }

  /** Lays the fault on, and returns the moment after that (ms since the epoch), from which recovery counts. */
  async strike(fault: () => unknown): Promise<number> {
    await fault();
    return Date.now();
  }

  /** Seconds from a moment until all is well again, which must be within so many; else the fault has failed and goes no further. */
  async recovered(sinceMs: number, withinSeconds: number): Promise<number> {
    const what = `all is well again within ${withinSeconds} s`;
    try {
      const seconds = await this.well(sinceMs, Math.max(withinSeconds, WELL_WITHIN_SECONDS));
      this.must(what, seconds <= withinSeconds, `after ${seconds.toFixed(1)} s`);
      return seconds;
    } catch (error) {
      this.must(what, false, (error as Error).message);
      throw error;
    }
  }

  /** Stamps of the stored samples in a span, oldest first. */
  async stored(fromMs: number, toMs: number): Promise<number[]> {
    const stamps: number[] = [];
    const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
    let next: string | undefined = `/health/history?${range}&order=asc&limit=${HISTORY_PAGE}`;
    while (next !== undefined) {
      const response: Response = await this.machine.http(next);
      if (response.status !== 200) throw new Error(`${next}: ${response.status} ${await response.text()}`);
      const { data } = (await response.json()) as { data: HealthStatus[] };
      stamps.push(...data.map(({ timestamp }) => Date.parse(timestamp)));
      next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    }
    return stamps;
  }

  /** Every stored change of an alert about the tide since then, oldest first. */
  async changes(fromMs: number): Promise<Alert[]> {
    const path = `/alerts?changes=true&metric=${TIDE_METRIC}&from=${new Date(fromMs).toISOString()}&limit=10000`;
    const { data } = await this.machine.json<{ data: Alert[] }>(path);
    return data.toSorted((a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp));
  }

  /** Compares what was received with what is stored, from `fromMs` to `toMs`. */
  async account(fromMs: number, toMs: number): Promise<Account> {
    const periodMs = 1000 / this.hertz;
    const stored = await this.stored(fromMs, toMs);
    const inSpan = (stamp: number): boolean => stamp >= fromMs && stamp < toMs;
    const byStream = this.stream.statuses.map(({ it }) => Date.parse(it.timestamp)).filter(inSpan);
    const byTopic = (this.topic?.statuses ?? []).map(({ it }) => Date.parse(it.timestamp)).filter(inSpan);
    const storedSet = new Set(stored);
    const heard = new Set(byStream);
    const changes = this.tide ? await this.changes(fromMs - 1000) : [];
    const known = new Set(changes.map(keyOf));
    const told = this.tide ? [...this.stream.alerts, ...(this.topic?.alerts ?? [])].map(({ it }) => it) : [];
    const forgotten = [...new Set(told.filter((alert) => isTide(alert) && inSpan(Date.parse(alert.timestamp))).map(keyOf))].filter(
      (key) => !known.has(key),
    );
    const turns = (this.tide?.turns ?? []).filter(({ atMs }) => inSpan(atMs));
    const answers = changes.map(({ timestamp, resolved }) => ({ atMs: Date.parse(timestamp), resolved }));
    const unseen = unanswered(turns, answers, 2 * periodMs);
    return {
      stored,
      missing: slotsWithout(stored, periodMs, fromMs, toMs),
      unstored: [...new Set([...byStream, ...byTopic])].filter((stamp) => !storedSet.has(stamp)).sort((a, b) => a - b),
      unheard: stored.filter((stamp) => !heard.has(stamp)),
      alertsLost: forgotten.length + unseen.length,
      alertNotes: [
        ...forgotten.map((key) => `received and not stored: ${key}`),
        ...unseen.map(({ atMs, isHigh }) => `no alert tells that the cause ${isHigh ? 'came' : 'went'} at ${new Date(atMs).toISOString()}`),
      ],
    };
  }

  /** What must hold after every fault, and the figures of the table. */
  async finish({ observed, recoverySeconds, goneBeforeMs = 0, counts }: FinishOptions): Promise<Figures> {
    await this.well(Date.now(), 30);
    this.tide?.stop();
    if (this.tide) await this.mustBe('an alert is open if and only if its cause is there', () => this.#tideIsTold(10));
    const toMs = Date.now();
    await this.machine.until(() => this.stream.statuses.some(({ it }) => Date.parse(it.timestamp) >= toMs), 10);
    const { stored, missing, unstored, unheard, alertsLost, alertNotes } = await this.account(this.beganMs, toMs);
    this.must('no sample is stored twice', new Set(stored).size === stored.length);
    const forgotten = unstored.filter((stamp) => stamp >= goneBeforeMs);
    this.must('every status that anybody received is in the history', forgotten.length === 0, stampsText(forgotten));
    this.must('the event stream, resumed, brought every stored status', unheard.length === 0, stampsText(unheard));
    await this.mustBe('SQLite finds nothing wrong with the database', () => this.isWhole());
    const counted = counts ?? { samplesLost: missing, alertsLost: this.tide ? alertsLost : null };
    return { observed, recoverySeconds, ...counted, notes: alertNotes };
  }

  /** Has everything recorded so far written to the database, as a backup does; when that was (ms since the epoch). */
  async commit(): Promise<number> {
    const response = await this.machine.http('/snapshot');
    if (response.status !== 200) throw new Error(`/snapshot: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
    return Date.now();
  }

  /** Where a file of the machine is to be found on this one, while it runs. */
  outside(path: string): string {
    return `/proc/${this.machine.pid1}/root${path}`;
  }

  /** Takes a copy of the database over REST, as a backup does, and has SQLite look at it. */
  async isWhole(): Promise<boolean> {
    const response = await this.machine.http('/snapshot');
    if (response.status !== 200) throw new Error(`/snapshot: ${response.status} ${await response.text()}`);
    const folder = temporaryFolder();
    try {
      const file = join(folder.path, 'copy.db');
      writeFileSync(file, Buffer.from(await response.arrayBuffer()));
      const db = new DatabaseSync(file, { readOnly: true });
      const found = db.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[];
      db.close();
      if (found[0]?.integrity_check !== 'ok') throw new Error(JSON.stringify(found));
      return true;
    } finally {
      folder.remove();
    }
  }

  /** Waits until the open alerts of /alerts say what the tide is. */
  async #tideIsTold(seconds: number): Promise<boolean> {
    await this.machine.until(
      async () => {
        // A service under a fault may not answer: it is asked again.
        const open = await this.appliance.openAlertIds(TIDE_METRIC).catch(() => null);
        return open !== null && open.length === (this.tide?.isHigh ? 1 : 0);
      },
      seconds,
      () => `the tide is ${this.tide?.isHigh ? 'high' : 'low'}, and /alerts does not say so`,
    );
    return true;
  }
}

const isTide = ({ metric }: Alert): boolean => metric === TIDE_METRIC;
const keyOf = ({ alert_id, timestamp, severity, resolved }: Alert): string =>
  `${alert_id} ${severity}${resolved ? ' resolved' : ''} ${timestamp}`;
