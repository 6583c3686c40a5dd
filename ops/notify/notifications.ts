import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import { type Alert, nodeOfAlertId } from '../../src/core/alert.ts';
import type { Log } from '../../src/core/ports.ts';
import { isoUtc } from '../../src/core/time.ts';
import type { OpsDocument } from '../../src/http/api/ops-schema.ts';
import { installation } from '../../src/installation/installation.ts';
import { followAlerts } from './alert-feed.ts';
import { Channel } from './channel.ts';
import { Journal } from './journal.ts';
import type { Memory } from './memory.ts';
import { messageOf } from './message.ts';
import { decide, type Line, openAlerts, openAsTold, reconsidered, taken } from './plan.ts';
import { added, CHANNELS, type ChannelName, EMPTY_QUEUE, type Queue, type Settled, settled } from './queue.ts';
import { type Settings, settingsOf } from './settings.ts';
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
  /** How alerts come changed; null: notifications are off. */
  readonly onState: (state: NotifierState | null) => void;
  /** How often alerts are asked for without the event stream. */
  readonly pollMs?: number;
}

/** Timers stand still while a machine sleeps. */
const MAX_SLEEP_MS = 60_000;
/** What comes in one go is judged once. */
const GATHER_MS = 50;

/** Notifications at work: what happens goes into the plan, what the plan tells into the queue of every channel. */
export class Notifications {
  readonly #options: NotifierOptions;
  readonly #log: Log;
  readonly #journal: Journal;
  #settings: Settings;
  #channels: ReadonlyMap<ChannelName, Channel> = new Map();
  /** Notifications that the disk has not yet: sent before, they could come again with another id. */
  readonly #unsaved = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #following: { readonly ending: AbortController; readonly done: Promise<void>; readonly rest: RestClient } | null = null;

  private constructor(options: NotifierOptions, journal: Journal, settings: Settings) {
    this.#options = options;
    this.#log = options.log;
    this.#journal = journal;
    this.#settings = settings;
  }

  static async start(options: NotifierOptions): Promise<Notifications> {
    const journal = await Journal.open(options.dataFolder, options.log);
    const notifications = new Notifications(options, journal, await settingsFor(options, options.config));
    await notifications.#begin(options.rest);
    return notifications;
  }

  async reload(config: Config, rest: RestClient): Promise<void> {
    const settings = await settingsFor(this.#options, config);
    await Promise.all([...this.#channels.values()].map((channel) => channel.stop()));
    this.#settings = settings;
    if (this.#following && this.#following.rest !== rest) await this.#endFollowing();
    await this.#journal.save({ plan: reconsidered(this.#memory.plan, this.#nowMs()) });
    await this.#begin(rest);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#endFollowing();
    clearTimeout(this.#timer);
    await Promise.all([...this.#channels.values()].map((channel) => channel.stop()));
    await this.#journal.close();
  }

  jobEnded(name: string, run: JobRun): void {
    this.#take([jobChange(this.#settings.host, name, run)], false);
  }

  get #memory(): Memory {
    return this.#journal.memory;
  }

  #nowMs(): number {
    return this.#options.nowMs();
  }

  async #begin(rest: RestClient): Promise<void> {
    for (const problem of this.#settings.problems) this.#log('error', `notifications: ${problem}`);
    for (const warning of this.#settings.warnings) this.#log('warning', `notifications: ${warning}`);
    const names = this.#settings.senders.map(({ name }) => name);
    await this.#drop(CHANNELS.filter((name) => !names.includes(name)));
    this.#channels = new Map(this.#settings.senders.map((sender) => [sender.name, this.#channel(sender)]));
    for (const channel of this.#channels.values()) channel.wake();
    if (!this.#following) {
      const ending = new AbortController();
      this.#following = { ending, rest, done: this.#follow(rest, ending.signal) };
    }
    this.#soon();
  }

  #channel(sender: Settings['senders'][number]): Channel {
    const { name } = sender;
    const outbox = {
      queue: () => {
        const queue = this.#memory.queues[name];
        return { ...queue, waiting: queue.waiting.filter(({ id }) => !this.#unsaved.has(id)) };
      },
      message: (id: string) => this.#memory.messages[id],
      settle: (id: string, result: Parameters<typeof settled>[2]) => {
        const after = settled(this.#memory.queues[name], id, result, this.#nowMs(), Math.random());
        void this.#journal.save({ queues: { [name]: this.#heard(name, after) } });
      },
    };
    return new Channel(sender, outbox, this.#log, () => this.#nowMs());
  }

  /** A queue after a step, of whose losses the log tells. */
  #heard(name: ChannelName, { givenUp, queue }: Settled): Queue {
    for (const { id, reason } of givenUp) this.#log('error', `notification given up: ${reason}`, { channel: name, id });
    return queue;
  }

  /** What waits for a channel that is not configured any more is nobody's. */
  async #drop(names: readonly ChannelName[]): Promise<void> {
    const filled = names.filter((name) => this.#memory.queues[name] !== EMPTY_QUEUE);
    for (const name of filled) {
      const { length } = this.#memory.queues[name].waiting;
      if (length > 0)
        this.#log('notice', 'notifications of a channel that is not configured any more are dropped', { channel: name, count: length });
    }
    if (filled.length > 0) await this.#journal.save({ queues: Object.fromEntries(filled.map((name) => [name, EMPTY_QUEUE])) });
  }

  #follow(rest: RestClient, signal: AbortSignal): Promise<void> {
    return followAlerts({
      rest,
      signal,
      log: this.#log,
      cursor: () => this.#memory.place,
      setCursor: (place) => void this.#journal.save({ place }),
      onAlerts: (alerts, place) => this.#take(alerts.map(changeOf), true, place),
      onOpen: (alerts) => this.#compare(alerts),
      onLink: (alerts, problem) => this.#options.onState({ alerts, since: isoUtc(this.#nowMs()), problem }),
      ...(this.#options.pollMs === undefined ? {} : { pollMs: this.#options.pollMs }),
    }).catch((error: Error) =>
      this.#log('error', 'notifications: the alerts are not followed any more', { error: error.stack ?? error.message }),
    );
  }

  async #endFollowing(): Promise<void> {
    const following = this.#following;
    this.#following = null;
    following?.ending.abort();
    await following?.done;
  }

  /** Where another database lies under the service now, or events were lost, what is open is what the service says. */
  #compare(alerts: readonly Alert[]): void {
    const ids = new Set(alerts.map(({ alert_id: id }) => id));
    const gone = openAlerts(this.#memory.plan).filter(({ id }) => !ids.has(id));
    this.#take(
      [...alerts.map(changeOf), ...gone.map((subject) => ({ ...asChange(subject), level: null, at: isoUtc(this.#nowMs()) }))],
      true,
    );
  }

  /** What the service tells comes again from the last place that was written down; what a job did does not. */
  #take(changes: readonly Change[], isRepeatable: boolean, place?: string): void {
    const before = this.#memory.plan;
    const plan = changes.reduce((current, change) => taken(current, change, this.#nowMs()), before);
    const patch = { ...(plan === before ? {} : { plan }), ...(place === undefined ? {} : { place }) };
    if (Object.keys(patch).length === 0) return;
    if (isRepeatable) this.#journal.note(patch);
    else void this.#journal.save(patch);
    if (plan !== before) this.#soon();
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#consider(), GATHER_MS);
  }

  /** Runs off a timer: whatever should go wrong here must not end the scheduler. */
  #consider(): void {
    try {
      this.#decide();
    } catch (error) {
      this.#log('error', 'notifications failed', { error: (error as Error).stack });
    }
  }

  #decide(): void {
    const nowMs = this.#nowMs();
    const { lines, nextMs, plan } = decide(this.#memory.plan, this.#settings.rules, nowMs);
    if (lines) this.#tell(plan, lines, nowMs);
    else if (plan !== this.#memory.plan) this.#journal.note({ plan });
    clearTimeout(this.#timer);
    if (nextMs === null) return;
    this.#timer = setTimeout(() => this.#consider(), Math.min(MAX_SLEEP_MS, Math.max(GATHER_MS, nextMs - nowMs)));
  }

  /** What is told, and that it was, is one line of the journal: it is told once, wherever a kill strikes. Then it is sent. */
  #tell(plan: Memory['plan'], lines: readonly Line[], nowMs: number): void {
    const { dashboard, host } = this.#settings;
    const number = this.#memory.number + 1;
    const id = notificationId(host, nowMs, number);
    const message = messageOf({ id, nowMs, host, dashboard }, lines, openAsTold(plan));
    const bytes = Buffer.byteLength(JSON.stringify(message));
    const queues: Partial<Record<ChannelName, Queue>> = {};
    for (const name of this.#channels.keys()) queues[name] = this.#heard(name, added(this.#memory.queues[name], id, bytes, nowMs));
    this.#unsaved.add(id);
    void this.#journal.save({ plan, number, queues, messages: { [id]: message } }).then(() => {
      this.#unsaved.delete(id);
      for (const channel of this.#channels.values()) channel.wake();
    });
  }
}

/** The time is part of it: where the disk lost the count, the next still differs from what was sent. */
function notificationId(host: string, nowMs: number, number: number): string {
  return `${host.replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${nowMs.toString(36)}-${number}`;
}

function settingsFor({ environment, nowMs }: NotifierOptions, config: Config): Promise<Settings> {
  return settingsOf(config, { environment, nowMs, version: installation().version });
}

function changeOf(alert: Alert): Change {
  return alertChange(nodeOfAlertId(alert.alert_id), alert);
}

function asChange({ at, findings, id, key, level, lines, metric, node, source, threshold, value }: Change): Change {
  return { at, findings, id, key, level, lines, metric, node, source, threshold, value };
}
