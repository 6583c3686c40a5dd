import { type AlertBook, bookOf, EMPTY_BOOK, withAlert } from './alert-book.ts';
import { type Api, ApiError } from './api.ts';
import { type Connection, type ConnectionEvent, firstConnection, staleAfterMs, stepConnection } from './connection.ts';
import { clockOffsetMs, Fleet, hertzOf } from './fleet.ts';
import { Pace } from './pace.ts';
import { type Point, Series } from './series.ts';
import { type ServerEvent, SseParser } from './sse.ts';
import type { Alert, HealthStatus, List, ShutdownProgress, StatusDocument } from './types.ts';
import { planWindow, samplesOfStep, type WindowName } from './windows.ts';

/** Milliseconds; injected, so that a test can make them go faster. */
export interface Timing {
  readonly tickMs: number;
  readonly pollMs: number;
  readonly renderMs: number;
}

export const TIMING: Timing = { tickMs: 250, pollMs: 5000, renderMs: 200 };

/** What came of asking for a list. */
export type Loaded = 'loading' | 'ready' | 'failed';

/** Everything there is to show. */
export interface PageState {
  readonly connection: Connection;
  readonly status: StatusDocument | null;
  /** When `status` was told, on the clock of performance.now(). */
  readonly statusAtMs: number;
  /** The monitoring node of the machine that serves this page. */
  readonly local: string | null;
  /** The one whose measurements are shown: that, unless another was chosen. */
  readonly node: string | null;
  /** Of that node. */
  readonly health: HealthStatus | null;
  readonly fleet: Fleet;
  readonly book: AlertBook;
  readonly alerts: Loaded;
  readonly window: WindowName;
  readonly series: Series;
  readonly history: Loaded;
  /** How often the node publishes that is shown. */
  readonly hertz: number;
}

/** Nodes whose last status is asked for one by one when the page is opened; the others are shown once they publish. */
const ASKED_AT_FIRST = 40;
/** A status that is so much older than the one before was overtaken on its way; beyond it the clock was set back. */
const OVERTAKEN_MS = 60_000;

const DEFAULT_HERTZ = 1;

/**
 * Keeps the page's state true: follows /events, asks for the rest at every new connection, looks after /status now and then.
 * What is decided is decided by the connection's table; this class acts on it.
 */
export class Monitor {
  readonly #api: Api;
  readonly #timing: Timing;
  readonly #pace: Pace;
  #state: PageState;
  #timer: ReturnType<typeof setInterval> | null = null;
  #attempt = new AbortController();
  #historyRequest = new AbortController();
  #lastEventId = '';
  /** Alerts that came while the list was being asked for: it may or may not hold them. */
  #heldAlerts: Alert[] | null = null;
  #isPolling = false;
  #polledMs = 0;
  #askedMs = 0;
  /** The machine's wall clock minus performance.now(). */
  #clockOffsetMs: number | null = null;
  /** The same of the node that is shown. */
  #shownOffsetMs: number | null = null;
  /** Null: the machine itself. */
  #chosen: string | null;

  constructor(api: Api, onChange: () => void, timing: Timing = TIMING, chosen: string | null = null) {
    this.#chosen = chosen;
    this.#api = api;
    this.#timing = timing;
    this.#pace = new Pace(onChange, timing.renderMs);
    const { windowMs, bucketMs } = planWindow('5min', DEFAULT_HERTZ);
    this.#state = {
      connection: firstConnection(performance.now()),
      status: null,
      statusAtMs: 0,
      local: null,
      node: null,
      health: null,
      fleet: new Fleet(),
      book: EMPTY_BOOK,
      alerts: 'loading',
      window: '5min',
      series: new Series(windowMs, bucketMs),
      history: 'loading',
      hertz: DEFAULT_HERTZ,
    };
  }

  get state(): PageState {
    return this.#state;
  }

  /** The machine's wall clock now; this device's as long as it is not known. */
  get machineNowMs(): number {
    return this.#clockOffsetMs === null ? Date.now() : performance.now() + this.#clockOffsetMs;
  }

  /** The wall clock of the node that is shown; the machine's as long as it is not known. */
  get shownNowMs(): number {
    return this.#shownOffsetMs === null ? this.machineNowMs : performance.now() + this.#shownOffsetMs;
  }

  /** The machine's wall clock minus this device's; null: not known. */
  get clockDifferenceMs(): number | null {
    return this.#clockOffsetMs === null ? null : this.machineNowMs - Date.now();
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), this.#timing.tickMs);
    this.#set({ connection: firstConnection(performance.now()) });
    void this.#connect();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#attempt.abort();
    this.#historyRequest.abort();
    this.#pace.stop();
  }

  /** To be called when there is a new token. */
  unlock(): void {
    this.#dispatch({ kind: 'token' });
  }

  /** To be called when waiting any longer is pointless. */
  hurry(): void {
    this.#dispatch({ kind: 'hurry' });
  }

  show(window: WindowName): void {
    if (window === this.#state.window) return;
    this.#set({ window, history: 'loading' });
    this.#freshSeries(true);
    this.#reload(false);
  }

  /** Shows another node's measurements. */
  choose(node: string): void {
    const { local, status } = this.#state;
    if (node === this.#state.node) return;
    this.#chosen = node === local ? null : node;
    this.#set({ health: this.#state.fleet.of(node)?.health ?? null, history: 'loading' });
    if (status) this.#takeNodes(status, this.#state.statusAtMs);
    this.#freshSeries(true);
    this.#reload(true);
  }

  #reload(health: boolean): void {
    const { phase } = this.#state.connection;
    if (phase !== 'live' && phase !== 'silent') return;
    const { signal } = this.#attempt;
    const loads = [this.#loadHistory(signal), ...(health ? [this.#loadHealth(signal)] : [])];
    void Promise.all(loads).catch((error) => this.#lost(error));
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#pace.ask();
  }

  #dispatch(event: ConnectionEvent): void {
    const before = this.#state.connection;
    const hertz = this.#state.status?.publish.configured_hertz ?? DEFAULT_HERTZ;
    const connection = stepConnection(before, event, performance.now(), staleAfterMs(hertz));
    if (connection === before) return;
    // Hearing something changes nothing that is shown.
    if (connection.phase === before.phase) this.#state = { ...this.#state, connection };
    else this.#enter(connection);
  }

  #enter(connection: Connection): void {
    this.#set({ connection });
    switch (connection.phase) {
      case 'connecting':
        void this.#connect();
        break;
      case 'waiting':
      case 'locked':
        this.#attempt.abort();
        break;
      case 'silent':
        // Does it measure nothing, or does it hang as a whole?
        if (!connection.answers) void this.#poll(this.#attempt.signal);
        break;
      case 'loading':
      case 'live':
        break;
    }
  }

  /** Follows the event stream until it ends; whatever ends it is told to the connection's table. */
  async #connect(): Promise<void> {
    this.#attempt.abort();
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    try {
      const reader = await this.#api.events(this.#lastEventId, signal);
      this.#dispatch({ kind: 'opened' });
      void this.#load(signal).catch((error) => this.#lost(error, signal));
      const parser = new SseParser(this.#lastEventId);
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (signal.aborted) return;
        if (done) throw new ApiError(200, null);
        this.#dispatch({ kind: 'heard' });
        for (const event of parser.push(decoder.decode(value, { stream: true }))) this.#take(event, signal);
        this.#lastEventId = parser.lastEventId;
      }
    } catch (error) {
      this.#lost(error, signal);
    }
  }

  #lost(error: unknown, signal: AbortSignal = this.#attempt.signal): void {
    // What was given up on purpose, and what belongs to an attempt long over, says nothing about this one.
    if (signal.aborted || (error as Error).name === 'AbortError') return;
    if (error instanceof ApiError && error.status === 401) this.#dispatch({ kind: 'refused' });
    else this.#dispatch({ kind: 'failed', reason: reasonOf(error) });
  }

  #take({ event, data }: ServerEvent, signal: AbortSignal): void {
    if (event !== 'health' && event !== 'alert' && event !== 'shutdown') return;
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch {
      return; // Not ours to mend; the next one will be whole.
    }
    if (event === 'alert') this.#takeAlert(value as Alert);
    else if (event === 'shutdown') this.#takeShutdown(value as ShutdownProgress, signal);
    else this.#takeHealth(value as HealthStatus);
  }

  #takeHealth(health: HealthStatus): void {
    const { fleet, health: before, local, node, series } = this.#state;
    const timestampMs = Date.parse(health.timestamp);
    const behindMs = node === health.node_name && before ? Date.parse(before.timestamp) - timestampMs : 0;
    const isOvertaken = behindMs > 0 && behindMs < OVERTAKEN_MS && node !== local;
    if (!isOvertaken) fleet.hear(health, performance.now());
    if (health.node_name === node && !isOvertaken) {
      series.add(timestampMs, health);
      if (timestampMs > this.shownNowMs) this.#shownOffsetMs = timestampMs - performance.now();
      this.#set({ health });
    } else {
      this.#pace.ask();
    }
    if (health.node_name !== local) return;
    if (timestampMs > this.machineNowMs) this.#clockOffsetMs = timestampMs - performance.now();
    this.#dispatch({ kind: 'measured' });
  }

  #takeAlert(alert: Alert): void {
    this.#heldAlerts?.push(alert);
    this.#set({ book: withAlert(this.#state.book, alert) });
  }

  /** Shown at once: the machine may be gone before it is asked again. */
  #takeShutdown(progress: ShutdownProgress, signal: AbortSignal): void {
    const { status } = this.#state;
    const ended = progress.state === 'in_progress' ? null : progress.timestamp;
    if (status) this.#set({ status: { ...status, shutdown: { ...progress, ended } } });
    void this.#poll(signal);
  }

  /** Everything that the event stream does not tell. Rejects when there is no point in going on. */
  async #load(signal: AbortSignal): Promise<void> {
    const status = await this.#api.json<StatusDocument>('status', signal);
    const { node } = this.#state;
    this.#takeStatus(status);
    // The machine may come back under another name: what was shown is another node's.
    const isOther = node !== null && node !== this.#state.node;
    if (isOther) this.#set({ health: null });
    this.#freshSeries(isOther);
    await Promise.all([this.#loadHealth(signal), this.#loadAlerts(signal), this.#loadHistory(signal)]);
    if (signal.aborted) return;
    void this.#loadOthers(status, signal);
    const age = status.nodes.find((node) => node.local)?.age_seconds ?? null;
    this.#polledMs = performance.now();
    this.#dispatch({ kind: 'loaded', ageMs: age === null ? null : age * 1000 });
  }

  #takeStatus(status: StatusDocument): void {
    const now = performance.now();
    this.#set({ status, statusAtMs: now });
    this.#state.fleet.keep(status.nodes);
    this.#takeNodes(status, now);
  }

  /** Which node is shown, and by which clock. */
  #takeNodes(status: StatusDocument, toldMs: number): void {
    const local = status.nodes.find((node) => node.local) ?? null;
    this.#clockOffsetMs = (local && clockOffsetMs(local, toldMs)) ?? this.#clockOffsetMs;
    const chosen = this.#chosen === null ? local : (status.nodes.find(({ node_name }) => node_name === this.#chosen) ?? null);
    this.#shownOffsetMs = chosen && clockOffsetMs(chosen, toldMs);
    const hertz = chosen === local ? status.publish.configured_hertz : hertzOf(chosen);
    this.#set({ local: local?.node_name ?? null, node: this.#chosen ?? local?.node_name ?? null, hertz });
  }

  /** For what is asked about the node that is shown. */
  #query(name: string): string {
    return this.#chosen === null ? '' : `${name}=${encodeURIComponent(this.#chosen)}`;
  }

  async #loadHealth(signal: AbortSignal): Promise<void> {
    const { health: before, node } = this.#state;
    const query = this.#query('node');
    const health = await this.#healthOf(query === '' ? 'health' : `health?${query}`, signal);
    // One that came on the stream meanwhile is newer.
    if (health !== null && this.#state.health === before && this.#state.node === node) this.#set({ health });
  }

  async #healthOf(path: string, signal: AbortSignal): Promise<HealthStatus | null> {
    return this.#api.json<HealthStatus>(path, signal).catch((error) => {
      if (error instanceof ApiError && (error.code === 'no_sample_yet' || error.code === 'unknown_node')) return null;
      throw error;
    });
  }

  /** What nodes said last that say nothing now. */
  async #loadOthers({ nodes }: StatusDocument, signal: AbortSignal): Promise<void> {
    const { fleet } = this.#state;
    const toldMs = performance.now();
    for (const { age_seconds, node_name } of nodes.filter((node) => !node.local && node.timestamp !== null).slice(0, ASKED_AT_FIRST)) {
      if (signal.aborted) return;
      if (fleet.of(node_name)) continue;
      const health = await this.#healthOf(`health?node=${encodeURIComponent(node_name)}`, signal).catch(() => null);
      if (health && !fleet.of(node_name)) fleet.hear(health, toldMs - (age_seconds ?? 0) * 1000);
    }
    this.#pace.ask();
  }

  async #loadAlerts(signal: AbortSignal): Promise<void> {
    this.#heldAlerts = [];
    const list = async (query: string): Promise<readonly Alert[]> => (await this.#api.json<List<Alert>>(`alerts?${query}`, signal)).data;
    try {
      const lists = await Promise.all([list('resolved=false'), list('resolved=true&limit=5'), list('changes=true&resolved=false')]);
      if (signal.aborted) return;
      this.#set({ book: this.#heldAlerts.reduce(withAlert, bookOf(...lists)), alerts: 'ready' });
    } catch (error) {
      if (isFatal(error)) throw error;
      this.#set({ alerts: 'failed' });
    } finally {
      if (!signal.aborted) this.#heldAlerts = null;
    }
  }

  /** Empties the charts where they show another window or resolution than what is to be shown. */
  #freshSeries(always: boolean): void {
    const { hertz, series, window } = this.#state;
    const { bucketMs, windowMs } = planWindow(window, hertz);
    if (!always && series.windowMs === windowMs && series.bucketMs === bucketMs) return;
    this.#set({ series: new Series(windowMs, bucketMs) });
  }

  async #loadHistory(attempt: AbortSignal): Promise<void> {
    this.#historyRequest.abort();
    this.#historyRequest = new AbortController();
    const signal = AbortSignal.any([attempt, this.#historyRequest.signal]);
    const { hertz, series, window } = this.#state;
    const { bucketMs, step, windowMs } = planWindow(window, hertz);
    const hours = (windowMs / 3_600_000).toFixed(6);
    try {
      // Counted back from the machine's clock, which need not agree with the one here.
      const range = this.#shownRange(windowMs) ?? `hours=${hours}`;
      const path = `health/history?${range}${step === null ? '' : `&step=${step}`}`;
      const { data } = await this.#api.json<List<HealthStatus>>(path, signal);
      if (signal.aborted) return;
      const nowMs = this.shownNowMs;
      const points = data.map((row): Point => {
        const timestampMs = Date.parse(row.timestamp);
        return { timestampMs, readings: row, samples: step === null ? 1 : samplesOfStep(timestampMs, nowMs, bucketMs, hertz) };
      });
      series.fill(points);
      this.#set({ history: 'ready' });
    } catch (error) {
      if (signal.aborted && !attempt.aborted) return; // Another window was chosen meanwhile.
      if (isFatal(error)) throw error;
      this.#set({ history: 'failed' });
    }
  }

  /** Another node's history has the times of its own clock. */
  #shownRange(windowMs: number): string | null {
    if (this.#chosen === null) return null;
    const to = this.shownNowMs + 1000;
    return `${this.#query('node')}&from=${new Date(to - windowMs).toISOString()}&to=${new Date(to).toISOString()}`;
  }

  #tick(): void {
    const now = performance.now();
    this.#dispatch({ kind: 'tick' });
    // Ages and charts go on once a second, measurements or not.
    if (now - this.#askedMs >= 1000) {
      this.#askedMs = now;
      this.#pace.ask();
    }
    const { phase } = this.#state.connection;
    if ((phase === 'live' || phase === 'silent') && now - this.#polledMs >= this.#timing.pollMs) void this.#poll(this.#attempt.signal);
  }

  /** Looks after what changes without an event, and after what could not be read before. */
  async #poll(signal: AbortSignal): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#polledMs = performance.now();
    try {
      const status = await this.#api.json<StatusDocument>('status', signal);
      if (signal.aborted) return;
      this.#takeStatus(status);
      this.#dispatch({ kind: 'answered' });
      const { alerts, book, history } = this.#state;
      const { CRITICAL, ERROR, WARNING } = status.open_alerts;
      if (alerts !== 'ready' || book.open.length !== CRITICAL + ERROR + WARNING) await this.#loadAlerts(signal);
      if (history === 'failed') await this.#loadHistory(signal);
    } catch (error) {
      // The stream tells by itself when the service is gone.
      if (isFatal(error) && !signal.aborted && error instanceof ApiError) this.#lost(error, signal);
    } finally {
      this.#isPolling = false;
    }
  }
}

/** Whether nothing more can come of this attempt; one list that cannot be read costs that list only. */
function isFatal(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 401;
}

/** In words for a teacher, where the service itself said something that they can act on. */
function reasonOf(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.status < 400) return null;
  if (error.code === 'too_many_event_streams') return 'Too many dashboards are open on this machine.';
  return `The service answers with error ${error.status}.`;
}
