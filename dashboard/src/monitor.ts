import { type AlertBook, bookOf, EMPTY_BOOK, withAlert } from './alert-book.ts';
import { type Api, ApiError } from './api.ts';
import { type Connection, type ConnectionEvent, firstConnection, staleAfterMs, stepConnection } from './connection.ts';
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
  readonly node: string | null;
  readonly health: HealthStatus | null;
  readonly book: AlertBook;
  readonly alerts: Loaded;
  readonly window: WindowName;
  readonly series: Series;
  readonly history: Loaded;
  readonly hertz: number;
}

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

  constructor(api: Api, onChange: () => void, timing: Timing = TIMING) {
    this.#api = api;
    this.#timing = timing;
    this.#pace = new Pace(onChange, timing.renderMs);
    const { windowMs, bucketMs } = planWindow('5min', DEFAULT_HERTZ);
    this.#state = {
      connection: firstConnection(performance.now()),
      status: null,
      statusAtMs: 0,
      node: null,
      health: null,
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
    const { phase } = this.#state.connection;
    if (phase === 'live' || phase === 'silent') void this.#loadHistory(this.#attempt.signal).catch((error) => this.#lost(error));
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#pace.ask();
  }

  #dispatch(event: ConnectionEvent): void {
    const before = this.#state.connection;
    const connection = stepConnection(before, event, performance.now(), staleAfterMs(this.#state.hertz));
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
    if (health.node_name !== this.#state.node) return;
    const timestampMs = Date.parse(health.timestamp);
    this.#state.series.add(timestampMs, health);
    if (timestampMs > this.machineNowMs) this.#clockOffsetMs = timestampMs - performance.now();
    this.#set({ health });
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
    const age = status.nodes.find((node) => node.local)?.age_seconds ?? null;
    this.#polledMs = performance.now();
    this.#dispatch({ kind: 'loaded', ageMs: age === null ? null : age * 1000 });
  }

  #takeStatus(status: StatusDocument): void {
    const local = status.nodes.find((node) => node.local);
    const now = performance.now();
    if (local?.timestamp && local.age_seconds !== null) {
      this.#clockOffsetMs = Date.parse(local.timestamp) + local.age_seconds * 1000 - now;
    }
    this.#set({ status, statusAtMs: now, node: local?.node_name ?? null, hertz: status.publish.configured_hertz });
  }

  async #loadHealth(signal: AbortSignal): Promise<void> {
    const { health: before } = this.#state;
    const health = await this.#api.json<HealthStatus>('health', signal).catch((error) => {
      if (error instanceof ApiError && error.code === 'no_sample_yet') return null;
      throw error;
    });
    // One that came on the stream meanwhile is newer.
    if (health !== null && this.#state.health === before) this.#set({ health });
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
      const path = `health/history?hours=${hours}${step === null ? '' : `&step=${step}`}`;
      const { data } = await this.#api.json<List<HealthStatus>>(path, signal);
      if (signal.aborted) return;
      const nowMs = this.machineNowMs;
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
