import type { OpsDocument } from '../../src/client/documents.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { installation } from '../../src/core/files/installation.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import type { JobContext } from '../lib/job.ts';
import { followAlerts } from './alert-feed.ts';
import { CHANNEL_NAMES } from './channels/channel.ts';
import { messageId, messageOf } from './message.ts';
import { decide, type Line, openAlerts, openAsNotified, type Plan, reconsidered, taken } from './plan.ts';
import { EMPTY_QUEUE, MAX_SLEEP_MS, QueueWorker } from './queue.ts';
import { type Settings, settingsOf } from './settings.ts';
import { StateFile } from './state.ts';
import { alertChange, type Change, jobChange } from './subject.ts';

export type NotifierState = NonNullable<OpsDocument['notifications']>;
export type JobRun = NonNullable<OpsDocument['jobs'][number]['last']>;

export interface NotifierOptions extends Pick<JobContext, 'config' | 'dataFolder' | 'environment' | 'log' | 'nowMs' | 'rest'> {
  /** Called when the link to the alerts changes; null means that notifications are off. */
  readonly onState: (state: NotifierState | null) => void;
  /** How often alerts are polled without the event stream. */
  readonly pollMs?: number;
}

/** Collects changes that arrive together into one decision. */
const DECIDE_MS = 50;

/** Puts changes of alerts and jobs into the plan, and the resulting notifications into the queue of each channel. */
export class Notifications {
  readonly file: StateFile;
  readonly #options: NotifierOptions;
  readonly #settings: Settings;
  readonly #workers: readonly QueueWorker[];
  /** Ids of notifications that are not yet on disk. */
  readonly #unsaved = new Set<string>();
  readonly #ending = new AbortController();
  #feed: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: NotifierOptions, settings: Settings, file: StateFile) {
    const { log } = options;
    const nowMs = (): number => file.nowMs();
    this.file = file;
    this.#options = options;
    this.#settings = settings;
    this.#workers = settings.channels.map((channel) => new QueueWorker({ channel, file, unsaved: this.#unsaved, log, nowMs }));
  }

  /**
   * `file`: that of the previous configuration's notifications, if any. Changes that could not be written to disk are only in its memory.
   */
  static async open(options: NotifierOptions, file?: StateFile): Promise<Notifications> {
    const opened = file ?? (await StateFile.open(options.dataFolder, options.log));
    const settings = await settingsOf(options.config, { ...options, version: installation().version });
    return new Notifications(options, settings, opened);
  }

  start(): void {
    const { log } = this.#options;
    for (const problem of this.#settings.problems) log('error', `notifications: ${problem}`);
    for (const warning of this.#settings.warnings) log('warning', `notifications: ${warning}`);
    this.#dropRemovedChannels();
    const nowMs = this.file.nowMs();
    this.file.note({ plan: reconsidered(this.file.state.plan, nowMs) });
    for (const worker of this.#workers) worker.wake();
    this.#feed = this.#follow();
    this.#scheduleDecision();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#feed;
    clearTimeout(this.#timer);
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.file.flush();
  }

  jobEnded(name: string, run: JobRun): void {
    const change = jobChange(this.#settings.host, name, run);
    // Who runs a job by hand sees its outcome; a success still resolves what was notified.
    if (run.trigger === 'manual' && change.level !== null) return;
    const plan = this.#planWith([change]);
    if (plan === this.file.state.plan) return;
    void this.file.save({ plan });
    this.#scheduleDecision();
  }

  #dropRemovedChannels(): void {
    const { queues } = this.file.state;
    const names = this.#settings.channels.map(({ name }) => name);
    const removed = CHANNEL_NAMES.filter(
      (name) => !names.includes(name) && (queues[name].last !== null || queues[name].pending.length > 0),
    );
    for (const channel of removed) {
      const count = queues[channel].pending.length;
      if (count > 0) this.#options.log('notice', 'notifications of a removed channel dropped', { channel, count });
    }
    if (removed.length > 0) void this.file.save({ queues: Object.fromEntries(removed.map((name) => [name, EMPTY_QUEUE])) });
  }

  #follow(): Promise<void> {
    const { log, onState, pollMs, rest } = this.#options;
    return followAlerts({
      rest,
      signal: this.#ending.signal,
      log,
      cursor: () => this.file.state.cursor,
      setCursor: (cursor) => void this.file.save({ cursor }),
      onAlerts: (alerts, cursor) => this.#takeAlerts(alerts.map(alertChange), cursor),
      onOpen: (alerts) => this.#compare(alerts),
      onLink: (alerts, problem) => onState({ alerts, since: isoUtc(this.file.nowMs()), problem }),
      ...(pollMs === undefined ? {} : { pollMs }),
    }).catch((error: Error) => log('error', 'notifications: alert feed failed', { error: error.stack ?? error.message }));
  }

  /** Resolves alerts that the service does not list, after its database was replaced or events were lost. */
  #compare(alerts: readonly Alert[]): void {
    const ids = new Set(alerts.map(({ alert_id: id }) => id));
    const at = isoUtc(this.file.nowMs());
    const gone = openAlerts(this.file.state.plan).filter(({ id }) => !ids.has(id));
    this.#takeAlerts([...alerts.map(alertChange), ...gone.map((subject) => ({ ...subject, level: null, at }))]);
  }

  /** Does not write at once: after a kill, the service sends the alerts again from the saved cursor. */
  #takeAlerts(changes: readonly Change[], cursor: string | null = this.file.state.cursor): void {
    const plan = this.#planWith(changes);
    const { plan: before, cursor: cursorBefore } = this.file.state;
    if (plan === before && cursor === cursorBefore) return;
    this.file.note({ plan, cursor });
    if (plan !== before) this.#scheduleDecision();
  }

  #planWith(changes: readonly Change[]): Plan {
    const nowMs = this.file.nowMs();
    return changes.reduce((plan, change) => taken(plan, change, nowMs), this.file.state.plan);
  }

  #scheduleDecision(ms = DECIDE_MS): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // An uncaught exception in a timer would end the scheduler.
      try {
        this.#decide();
      } catch (error) {
        this.#options.log('error', 'notifications failed', { error: (error as Error).stack });
      }
    }, ms);
  }

  #decide(): void {
    const nowMs = this.file.nowMs();
    const { lines, nextMs, plan } = decide(this.file.state.plan, this.#settings.rules, nowMs);
    if (lines) this.#enqueue(plan, lines, nowMs);
    else if (plan !== this.file.state.plan) this.file.note({ plan });
    if (nextMs !== null) this.#scheduleDecision(Math.min(MAX_SLEEP_MS, Math.max(DECIDE_MS, nextMs - nowMs)));
  }

  /** Saves the notification and the plan that contains it in one write, so that a kill neither loses nor repeats it, and then sends it. */
  #enqueue(plan: Plan, lines: readonly Line[], nowMs: number): void {
    const { dashboard, host } = this.#settings;
    const number = this.file.state.number + 1;
    const id = messageId(host, nowMs, number);
    const message = messageOf({ id, nowMs, host, dashboard }, lines, openAsNotified(plan));
    const bytes = Buffer.byteLength(JSON.stringify(message));
    const queues = Object.fromEntries(this.#workers.map((worker) => [worker.channel.name, worker.queueWith(id, bytes)]));
    this.#unsaved.add(id);
    void this.file.save({ plan, number, queues, messages: { [id]: message } }).then(() => {
      this.#unsaved.delete(id);
      for (const worker of this.#workers) worker.wake();
    });
  }
}
