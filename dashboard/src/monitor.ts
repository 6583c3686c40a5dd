import { withAlert } from './alert-book.ts';
import { type Api, ApiError, isFatal } from './api.ts';
import { Clocks } from './clocks.ts';
import { hertzOf } from './fleet.ts';
import { Link } from './link.ts';
import { DEFAULT_HERTZ, firstState, type PageState } from './page-state.ts';
import { askAlerts, askHealth, askHistory } from './requests.ts';
import { Series } from './series.ts';
import type { ServerEvent } from './sse.ts';
import { Throttle } from './throttle.ts';
import type { Alert, HealthStatus, ShutdownProgress, StatusDocument } from './types.ts';
import { planWindow, type WindowName } from './windows.ts';

/** Milliseconds; injected, so that a test can make them go faster. */
export interface Timing {
  readonly tickMs: number;
  readonly pollMs: number;
  readonly renderMs: number;
}

export const TIMING: Timing = { tickMs: 250, pollMs: 5000, renderMs: 200 };

/** Nodes whose last status is asked for one by one when the page is opened; the others are shown once they publish. */
const ASKED_AT_FIRST = 40;
/** A status that is so much older than the one before was overtaken on its way; beyond it the clock was set back. */
const OVERTAKEN_MS = 60_000;

/** Keeps the page's state true: takes what the link tells, asks for the rest at every new connection, looks after /status now and then. */
export class Monitor {
  readonly clocks = new Clocks();
  readonly #api: Api;
  readonly #timing: Timing;
  readonly #throttle: Throttle;
  readonly #link: Link;
  #state: PageState = firstState();
  #timer: ReturnType<typeof setInterval> | null = null;
  #historyRequest = new AbortController();
  /** Alerts that came while the list was being asked for: it may or may not hold them. */
  #heldAlerts: Alert[] | null = null;
  #isPolling = false;
  #polledMs = 0;
  #askedMs = 0;
  /** Null: the machine itself. */
  #chosen: string | null;

  constructor(api: Api, onChange: () => void, timing: Timing = TIMING, chosen: string | null = null) {
    this.#chosen = chosen;
    this.#api = api;
    this.#timing = timing;
    this.#throttle = new Throttle(onChange, timing.renderMs);
    this.#link = new Link(api, {
      onConnection: (connection, isSeen) => {
        if (isSeen) this.#set({ connection });
        else this.#state = { ...this.#state, connection };
      },
      load: (signal) => this.#load(signal),
      onEvent: (event, signal) => this.#take(event, signal),
      probe: (signal) => void this.#poll(signal),
      hertz: () => this.#state.status?.publish.configured_hertz ?? DEFAULT_HERTZ,
    });
  }

  get state(): PageState {
    return this.#state;
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), this.#timing.tickMs);
    this.#link.start();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#link.stop();
    this.#historyRequest.abort();
    this.#throttle.stop();
  }

  /** To be called when there is a new token. */
  unlock(): void {
    this.#link.tell({ kind: 'token' });
  }

  /** To be called when waiting any longer is pointless. */
  hurry(): void {
    this.#link.tell({ kind: 'hurry' });
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
    if (!this.#link.isUp) return;
    const { signal } = this.#link;
    const loads = [this.#loadHistory(signal), ...(health ? [this.#loadHealth(signal)] : [])];
    void Promise.all(loads).catch((error) => this.#link.lost(error));
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#throttle.ask();
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
      this.clocks.receivedFromShown(timestampMs);
      this.#set({ health });
    } else {
      this.#throttle.ask();
    }
    if (health.node_name !== local) return;
    this.clocks.receivedFromMachine(timestampMs);
    this.#link.tell({ kind: 'measured' });
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
    this.#link.tell({ kind: 'loaded', ageMs: age === null ? null : age * 1000 });
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
    const chosen = this.#chosen === null ? local : (status.nodes.find(({ node_name }) => node_name === this.#chosen) ?? null);
    this.clocks.told(local, chosen, toldMs);
    const hertz = chosen === local ? status.publish.configured_hertz : hertzOf(chosen);
    this.#set({ local: local?.node_name ?? null, node: this.#chosen ?? local?.node_name ?? null, hertz });
  }

  async #loadHealth(signal: AbortSignal): Promise<void> {
    const { health: before, node } = this.#state;
    const health = await askHealth(this.#api, this.#chosen, signal);
    // One that came on the stream meanwhile is newer.
    if (health !== null && this.#state.health === before && this.#state.node === node) this.#set({ health });
  }

  /** What nodes said last that say nothing now. */
  async #loadOthers({ nodes }: StatusDocument, signal: AbortSignal): Promise<void> {
    const { fleet } = this.#state;
    const toldMs = performance.now();
    for (const { age_seconds, node_name } of nodes.filter((node) => !node.local && node.timestamp !== null).slice(0, ASKED_AT_FIRST)) {
      if (signal.aborted) return;
      if (fleet.of(node_name)) continue;
      // One that cannot be asked for is shown once it speaks: what it said last is not worth a connection.
      const health = await askHealth(this.#api, node_name, signal).catch(() => null);
      if (health && !fleet.of(node_name)) fleet.hear(health, toldMs - (age_seconds ?? 0) * 1000);
    }
    this.#throttle.ask();
  }

  async #loadAlerts(signal: AbortSignal): Promise<void> {
    this.#heldAlerts = [];
    try {
      const book = await askAlerts(this.#api, signal);
      if (signal.aborted) return;
      this.#set({ book: this.#heldAlerts.reduce(withAlert, book), alerts: 'ready' });
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
    const wish = { node: this.#chosen, plan: planWindow(window, hertz), hertz, nowMs: () => this.clocks.shownNowMs };
    try {
      const points = await askHistory(this.#api, wish, signal);
      if (signal.aborted) return;
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
    this.#link.tell({ kind: 'tick' });
    // Ages and charts go on once a second, measurements or not.
    if (now - this.#askedMs >= 1000) {
      this.#askedMs = now;
      this.#throttle.ask();
    }
    if (this.#link.isUp && now - this.#polledMs >= this.#timing.pollMs) void this.#poll(this.#link.signal);
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
      this.#link.tell({ kind: 'answered' });
      const { alerts, book, history } = this.#state;
      const { CRITICAL, ERROR, WARNING } = status.open_alerts;
      if (alerts !== 'ready' || book.open.length !== CRITICAL + ERROR + WARNING) await this.#loadAlerts(signal);
      if (history === 'failed') await this.#loadHistory(signal);
    } catch (error) {
      // The stream tells by itself when the service is gone.
      if (isFatal(error) && !signal.aborted && error instanceof ApiError) this.#link.lost(error, signal);
    } finally {
      this.#isPolling = false;
    }
  }
}
