import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import type { Alert } from '../../src/core/alert.ts';
import type { Log } from '../../src/core/ports.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import { installation } from '../../src/installation/installation.ts';
import { followAlerts } from './alert-feed.ts';
import { CHANNEL_NAMES } from './channel.ts';
import { messageId, messageOf } from './message.ts';
import { decide, type Line, openAlerts, openAsNotified, type Plan, reconsidered, taken } from './plan.ts';
import { EMPTY_QUEUE, type Queue } from './queue.ts';
import { QueueWorker } from './queue-worker.ts';
import { type Settings, settingsOf } from './settings.ts';
import { StateFile } from './state.ts';
import { alertChange, type Change, jobChange } from './subject.ts';

export type NotifierState = NonNullable<OpsDocument['notifications']>;
export type JobRun = NonNullable<OpsDocument['jobs'][number]['last']>;

export interface NotifierOptions {
  readonly config: Config;
  readonly rest: RestClient;
  readonly dataFolder: string;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly environment: NodeJS.ProcessEnv;
  /** Called when the way alerts arrive changes; null: notifications are off. */
  readonly onState: (state: NotifierState | null) => void;
  /** How often alerts are polled without the event stream. */
  readonly pollMs?: number;
}

/** Timers do not advance while a machine is suspended. */
const MAX_SLEEP_MS = 60_000;
/** Changes that arrive together lead to one decision. */
const DECIDE_MS = 50;

/** Changes of alerts and jobs go into the plan, and the notifications that it decides into the queue of each channel. */
export class Notifications {
  readonly #options: NotifierOptions;
  readonly #log: Log;
  readonly #file: StateFile;
  #settings: Settings;
  #workers: readonly QueueWorker[] = [];
  /** Ids of notifications that are not on the disk yet. */
  readonly #unsaved = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #feed: { readonly ending: AbortController; readonly done: Promise<void>; readonly rest: RestClient } | null = null;

  private constructor(options: NotifierOptions, file: StateFile, settings: Settings) {
    this.#options = options;
    this.#log = options.log;
    this.#file = file;
    this.#settings = settings;
  }

  static async start(options: NotifierOptions): Promise<Notifications> {
    const file = await StateFile.open(options.dataFolder, options.log);
    const notifications = new Notifications(options, file, await settingsFor(options, options.config));
    await notifications.#begin(options.rest);
    return notifications;
  }

  async reload(config: Config, rest: RestClient): Promise<void> {
    const settings = await settingsFor(this.#options, config);
    await this.#stopWorkers();
    this.#settings = settings;
    if (this.#feed && this.#feed.rest !== rest) await this.#endFeed();
    await this.#file.save({ plan: reconsidered(this.#file.state.plan, this.#options.nowMs()) });
    await this.#begin(rest);
  }

  async stop(): Promise<void> {
    await this.#endFeed();
    clearTimeout(this.#timer);
    await this.#stopWorkers();
    await this.#file.close();
  }

  jobEnded(name: string, run: JobRun): void {
    const plan = this.#planWith([jobChange(this.#settings.host, name, run)]);
    if (plan === this.#file.state.plan) return;
    void this.#file.save({ plan });
    this.#scheduleDecision();
  }

  async #begin(rest: RestClient): Promise<void> {
    for (const problem of this.#settings.problems) this.#log('error', `notifications: ${problem}`);
    for (const warning of this.#settings.warnings) this.#log('warning', `notifications: ${warning}`);
    await this.#dropRemovedChannels();
    const shared = { file: this.#file, unsaved: this.#unsaved, log: this.#log, nowMs: this.#options.nowMs };
    this.#workers = this.#settings.channels.map((channel) => new QueueWorker({ ...shared, channel }));
    for (const worker of this.#workers) worker.wake();
    if (!this.#feed) {
      const ending = new AbortController();
      this.#feed = { ending, rest, done: this.#follow(rest, ending.signal) };
    }
    this.#scheduleDecision();
  }

  async #stopWorkers(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }

  async #dropRemovedChannels(): Promise<void> {
    const { queues } = this.#file.state;
    const names = this.#settings.channels.map(({ name }) => name);
    const isUsed = ({ last, waiting }: Queue): boolean => last !== null || waiting.length > 0;
    const removed = CHANNEL_NAMES.filter((name) => !names.includes(name) && isUsed(queues[name]));
    for (const name of removed) {
      const { length } = queues[name].waiting;
      if (length > 0)
        this.#log('notice', 'notifications of a channel that is not configured any more dropped', { channel: name, count: length });
    }
    if (removed.length > 0) await this.#file.save({ queues: Object.fromEntries(removed.map((name) => [name, EMPTY_QUEUE])) });
  }

  #follow(rest: RestClient, signal: AbortSignal): Promise<void> {
    return followAlerts({
      rest,
      signal,
      log: this.#log,
      cursor: () => this.#file.state.cursor,
      setCursor: (cursor) => void this.#file.save({ cursor }),
      onAlerts: (alerts, cursor) => this.#takeAlerts(alerts.map(alertChange), cursor),
      onOpen: (alerts) => this.#compare(alerts),
      onLink: (alerts, problem) => this.#options.onState({ alerts, since: isoUtc(this.#options.nowMs()), problem }),
      ...(this.#options.pollMs === undefined ? {} : { pollMs: this.#options.pollMs }),
    }).catch((error: Error) => this.#log('error', 'notifications: alert feed failed', { error: error.stack ?? error.message }));
  }

  async #endFeed(): Promise<void> {
    const feed = this.#feed;
    this.#feed = null;
    feed?.ending.abort();
    await feed?.done;
  }

  /** After the service's database was replaced, or events were lost, alerts that it does not list are resolved. */
  #compare(alerts: readonly Alert[]): void {
    const ids = new Set(alerts.map(({ alert_id: id }) => id));
    const gone = openAlerts(this.#file.state.plan).filter(({ id }) => !ids.has(id));
    const at = isoUtc(this.#options.nowMs());
    this.#takeAlerts([...alerts.map(alertChange), ...gone.map((subject) => ({ ...subject, level: null, at }))]);
  }

  /** After a kill the service sends alerts again from the saved cursor, so that they need no write of their own. */
  #takeAlerts(changes: readonly Change[], cursor: string | null = this.#file.state.cursor): void {
    const { plan: before, cursor: cursorBefore } = this.#file.state;
    const plan = this.#planWith(changes);
    if (plan === before && cursor === cursorBefore) return;
    this.#file.note({ plan, cursor });
    if (plan !== before) this.#scheduleDecision();
  }

  #planWith(changes: readonly Change[]): Plan {
    return changes.reduce((plan, change) => taken(plan, change, this.#options.nowMs()), this.#file.state.plan);
  }

  #scheduleDecision(ms = DECIDE_MS): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // An exception in a timer would end the scheduler.
      try {
        this.#decide();
      } catch (error) {
        this.#log('error', 'notifications failed', { error: (error as Error).stack });
      }
    }, ms);
  }

  #decide(): void {
    const nowMs = this.#options.nowMs();
    const { lines, nextMs, plan } = decide(this.#file.state.plan, this.#settings.rules, nowMs);
    if (lines) this.#enqueue(plan, lines, nowMs);
    else if (plan !== this.#file.state.plan) this.#file.note({ plan });
    if (nextMs !== null) this.#scheduleDecision(Math.min(MAX_SLEEP_MS, Math.max(DECIDE_MS, nextMs - nowMs)));
  }

  /** The notification and the plan that contains it are one write, so that a kill neither loses nor repeats it. Then it is sent. */
  #enqueue(plan: Plan, lines: readonly Line[], nowMs: number): void {
    const { dashboard, host } = this.#settings;
    const number = this.#file.state.number + 1;
    const id = messageId(host, nowMs, number);
    const message = messageOf({ id, nowMs, host, dashboard }, lines, openAsNotified(plan));
    const bytes = Buffer.byteLength(JSON.stringify(message));
    const queues = Object.fromEntries(this.#workers.map((worker) => [worker.channel.name, worker.queueWith(id, bytes)]));
    this.#unsaved.add(id);
    void this.#file.save({ plan, number, queues, messages: { [id]: message } }).then(() => {
      this.#unsaved.delete(id);
      for (const worker of this.#workers) worker.wake();
    });
  }
}

function settingsFor({ environment, nowMs }: NotifierOptions, config: Config): Promise<Settings> {
  return settingsOf(config, { environment, nowMs, version: installation().version });
}
