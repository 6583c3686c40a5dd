import { Link } from '../page/link.ts';
import { DEFAULT_HERTZ, initialState, type PageState } from '../page/page-state.ts';
import type { Alert, HealthStatus, ShutdownProgress, StatusDocument } from '../types.ts';
import { nodeOfAlert, withAlert } from './alert-book.ts';
import { type Api, ApiError, isFatal } from './api.ts';
import { Clocks } from './clocks.ts';
import { Fleet, hertzOf } from './fleet.ts';
import { fetchAlerts, fetchBand, fetchChanges, fetchHealth, fetchHistory, type HistoryRequest } from './requests.ts';
import { Series } from './series.ts';
import type { ServerEvent } from './sse.ts';
import { Throttle } from './throttle.ts';
import { DEFAULT_RANGE, edgesOf, planRange, type Range, stepMs } from './windows.ts';

/** Intervals in milliseconds; injected so that tests can shorten them. */
export interface Timing {
  readonly tickMs: number;
  readonly pollMs: number;
  /** Shortest time between two renderings. */
  readonly renderMs: number;
  /** Time from a change to its rendering, in which further changes are collected. */
  readonly collectMs: number;
}

export const TIMING: Timing = { tickMs: 250, pollMs: 5000, renderMs: 200, collectMs: 40 };

/** Number of remote nodes whose last status is requested when the page opens; the others appear when they publish. */
const INITIAL_REQUESTS = 40;
/** A status older than its predecessor by less than this arrived out of order; by more, the node's clock was set back. */
const MAX_REORDER_MS = 60_000;

/**
 * Keeps the page's state up to date: applies events from the stream, loads all other data after each connect and polls /status.
 */
export class Monitor {
  readonly clocks = new Clocks();
  readonly #api: Api;
  readonly #timing: Timing;
  readonly #throttle: Throttle;
  readonly #link: Link;
  #state: PageState;
  #timer: ReturnType<typeof setInterval> | null = null;
  #historyRequest = new AbortController();
  /** Alerts received while the list of alerts is loading, which may or may not contain them; null: not loading. */
  #alertsDuringLoad: Alert[] | null = null;
  #isPolling = false;
  #polledMs = 0;
  /** Null: the local node. */
  #selectedNode: string | null;

  constructor(api: Api, onChange: () => void, timing: Timing = TIMING, selected: string | null = null, range: Range = DEFAULT_RANGE) {
    this.#selectedNode = selected;
    this.#state = initialState(range);
    this.#api = api;
    this.#timing = timing;
    this.#throttle = new Throttle(onChange, timing.renderMs, timing.collectMs);
    this.#link = new Link(api, {
      onConnection: (connection, isPhaseChange) => {
        if (isPhaseChange) this.#set({ connection });
        else this.#state = { ...this.#state, connection };
      },
      load: (signal) => this.#load(signal),
      onEvent: (event, signal) => this.#handleEvent(event, signal),
      probe: (signal) => void this.#poll(signal),
      hertz: () => this.#state.status?.publish.configured_hertz ?? DEFAULT_HERTZ,
    });
  }

  get state(): PageState {
    return this.#state;
  }

  /** Connects and loads everything; has no effect while it is running. */
  start(): void {
    if (this.#timer !== null) return;
    this.#timer = setInterval(() => this.#tick(), this.#timing.tickMs);
    this.#link.start();
  }

  /** Ends every request and timer, and forgets the current statuses, which are no longer true when start() is called. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#link.stop();
    this.#set({ fleet: new Fleet(), health: null });
    this.#historyRequest.abort();
    this.#throttle.stop();
  }

  /** Reconnects after a token was entered. */
  unlock(): void {
    this.#link.dispatch({ kind: 'token' });
  }

  /** Skips the rest of the retry delay. */
  reconnectNow(): void {
    this.#link.dispatch({ kind: 'reconnect' });
  }

  selectRange(range: Range): void {
    if (JSON.stringify(range) === JSON.stringify(this.#state.range)) return;
    this.#set({ range, history: 'loading', changes: [] });
    this.#resetSeries(true);
    this.#reload(false);
  }

  /** Null: the local node. */
  selectNode(selected: string | null): void {
    const { local, status } = this.#state;
    const node = selected ?? local;
    if (node === null || node === this.#state.node) return;
    this.#selectedNode = node === local ? null : node;
    this.#set({ health: this.#state.fleet.get(node)?.health ?? null, history: 'loading', changes: [] });
    if (status) this.#updateShownNode(status, this.#state.statusAtMs);
    this.#resetSeries(true);
    this.#reload(true);
  }

  #reload(health: boolean): void {
    if (!this.#link.isUp) return;
    const { signal } = this.#link;
    const { status } = this.#state;
    const loads = [this.#loadHistory(signal), ...(health && status ? [this.#loadHealth(status, signal)] : [])];
    void Promise.all(loads).catch((error) => this.#link.handleError(error));
  }

  #set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#throttle.request();
  }

  #handleEvent({ event, data }: ServerEvent, signal: AbortSignal): void {
    if (event !== 'health' && event !== 'alert' && event !== 'shutdown') return;
    let value: unknown;
    try {
      value = JSON.parse(data);
    } catch {
      return; // A malformed event is skipped; the stream continues.
    }
    if (event === 'alert') this.#applyAlert(value as Alert);
    else if (event === 'shutdown') this.#applyShutdown(value as ShutdownProgress, signal);
    else this.#applyHealth(value as HealthStatus);
  }

  #applyHealth(health: HealthStatus): void {
    const { fleet, health: before, local, node, series } = this.#state;
    const timestampMs = Date.parse(health.timestamp);
    const behindMs = node === health.node_name && before ? Date.parse(before.timestamp) - timestampMs : 0;
    const isOutOfOrder = behindMs > 0 && behindMs < MAX_REORDER_MS && node !== local;
    if (!isOutOfOrder) fleet.recordStatus(health, performance.now());
    if (health.node_name === node && !isOutOfOrder) {
      if (this.#state.range.kind === 'live') series.add(timestampMs, health);
      this.clocks.updateFromShownSample(timestampMs);
      this.#set({ health });
    } else {
      this.#throttle.request();
    }
    if (health.node_name !== local) return;
    this.clocks.updateFromMachineSample(timestampMs);
    this.#link.dispatch({ kind: 'measured' });
  }

  #applyAlert(alert: Alert): void {
    this.#alertsDuringLoad?.push(alert);
    const isShown = nodeOfAlert(alert.alert_id) === this.#state.node && this.#state.range.kind === 'live';
    this.#set({ book: withAlert(this.#state.book, alert), ...(isShown && { changes: [...this.#state.changes, alert] }) });
  }

  /** Applies the event without waiting for /status, because the machine may power off before the next poll. */
  #applyShutdown(progress: ShutdownProgress, signal: AbortSignal): void {
    const { status } = this.#state;
    const ended = progress.state === 'in_progress' ? null : progress.timestamp;
    if (status) this.#set({ status: { ...status, shutdown: { ...progress, ended } } });
    void this.#poll(signal);
  }

  /** Loads what the event stream does not carry. Rejects on an error that ends the attempt. */
  async #load(signal: AbortSignal): Promise<void> {
    const status = await this.#api.getJson<StatusDocument>('status', signal);
    const { node } = this.#state;
    this.#applyStatus(status);
    // A restart may change the local node's name; the data on the page then belongs to another node.
    const isOther = node !== null && node !== this.#state.node;
    if (isOther) this.#set({ health: null });
    this.#resetSeries(isOther);
    await Promise.all([this.#loadHealth(status, signal), this.#loadAlerts(signal), this.#loadHistory(signal)]);
    if (signal.aborted) return;
    void this.#loadRemoteNodes(status, signal);
    const age = status.nodes.find((node) => node.local)?.age_seconds ?? null;
    this.#polledMs = performance.now();
    this.#link.dispatch({ kind: 'loaded', ageMs: age === null ? null : age * 1000 });
  }

  #applyStatus(status: StatusDocument): void {
    const now = performance.now();
    this.#set({ status, statusAtMs: now });
    this.#state.fleet.removeAllExcept(status.nodes);
    this.#updateShownNode(status, now);
  }

  /** Updates which node is shown, its clock and its rate. */
  #updateShownNode(status: StatusDocument, statusMs: number): void {
    const local = status.nodes.find((node) => node.local) ?? null;
    const selected = this.#selectedNode === null ? local : (status.nodes.find(({ node_name }) => node_name === this.#selectedNode) ?? null);
    this.clocks.updateFromStatus(local, selected, statusMs);
    const hertz = selected === local ? status.publish.configured_hertz : hertzOf(selected);
    this.#set({ local: local?.node_name ?? null, node: this.#selectedNode ?? local?.node_name ?? null, hertz });
  }

  /** Loads the status of the shown node, and that of the local node, which the frame of every view shows. */
  async #loadHealth({ nodes }: StatusDocument, signal: AbortSignal): Promise<void> {
    const { fleet, health: before, local, node } = this.#state;
    const statusMs = performance.now();
    const isLocal = this.#selectedNode === null || this.#selectedNode === local;
    const [health, own] = await Promise.all([
      fetchHealth(this.#api, this.#selectedNode, signal),
      isLocal ? null : fetchHealth(this.#api, null, signal),
    ]);
    for (const loaded of [health, own]) {
      const age = nodes.find(({ node_name }) => node_name === loaded?.node_name)?.age_seconds ?? 0;
      if (loaded !== null && !fleet.get(loaded.node_name)) fleet.recordStatus(loaded, statusMs - age * 1000);
    }
    // A status received on the stream in the meantime is newer.
    if (health !== null && this.#state.health === before && this.#state.node === node) this.#set({ health });
  }

  /** Loads the last status of remote nodes that have not published since the page opened. */
  async #loadRemoteNodes({ nodes }: StatusDocument, signal: AbortSignal): Promise<void> {
    const { fleet } = this.#state;
    const statusMs = performance.now();
    for (const { age_seconds, node_name } of nodes.filter((node) => !node.local && node.timestamp !== null).slice(0, INITIAL_REQUESTS)) {
      if (signal.aborted) return;
      if (fleet.get(node_name)) continue;
      // A failed request is ignored: the node appears when it publishes, and its last status does not justify a reconnect.
      const health = await fetchHealth(this.#api, node_name, signal).catch(() => null);
      if (health && !fleet.get(node_name)) fleet.recordStatus(health, statusMs - (age_seconds ?? 0) * 1000);
    }
    this.#throttle.request();
  }

  async #loadAlerts(signal: AbortSignal): Promise<void> {
    this.#alertsDuringLoad = [];
    try {
      const book = await fetchAlerts(this.#api, signal);
      if (signal.aborted) return;
      this.#set({ book: this.#alertsDuringLoad.reduce(withAlert, book), alerts: 'ready' });
    } catch (error) {
      if (isFatal(error)) throw error;
      this.#set({ alerts: 'failed' });
    } finally {
      if (!signal.aborted) this.#alertsDuringLoad = null;
    }
  }

  /** Empties the charts if the window or the resolution has changed, or if `force` is set. */
  #resetSeries(force: boolean): void {
    const { hertz, range, series } = this.#state;
    const { bucketMs, windowMs } = planRange(range, hertz);
    if (!force && series.windowMs === windowMs && series.bucketMs === bucketMs) return;
    this.#set({ series: new Series(windowMs, bucketMs) });
  }

  async #loadHistory(attempt: AbortSignal): Promise<void> {
    this.#historyRequest.abort();
    this.#historyRequest = new AbortController();
    const signal = AbortSignal.any([attempt, this.#historyRequest.signal]);
    const { hertz, node, range, series } = this.#state;
    const plan = planRange(range, hertz);
    const request = { node: this.#selectedNode, range, plan, hertz, nowMs: () => this.clocks.shownNowMs };
    try {
      const points = await fetchHistory(this.#api, request, signal);
      if (signal.aborted) return;
      series.fill(points);
      this.#set({ history: 'ready' });
      await this.#loadAround(request, node, signal);
    } catch (error) {
      if (signal.aborted && !attempt.aborted) return; // Replaced by a request for another window or node.
      if (isFatal(error)) throw error;
      this.#set({ history: 'failed' });
    }
  }

  /** Loads what the charts show besides the curves: the range of values in each step, and alerts. If that fails, the curves remain. */
  async #loadAround(request: HistoryRequest, node: string | null, signal: AbortSignal): Promise<void> {
    const { plan, range } = request;
    const { series } = this.#state;
    if (plan.bandStep !== null) series.fillBand(await fetchBand(this.#api, request, plan.bandStep, signal), stepMs(plan.bandStep));
    const { fromMs, toMs } = edgesOf(range, this.clocks.shownNowMs);
    const changes = node === null ? [] : await fetchChanges(this.#api, node, fromMs, toMs, signal);
    if (!signal.aborted) this.#set({ changes });
  }

  #tick(): void {
    const now = performance.now();
    this.#link.dispatch({ kind: 'tick' });
    // Ages and charts advance once a second, with or without measurements.
    if (now - this.#throttle.actedMs >= 1000) this.#throttle.request();
    if (this.#link.isUp && now - this.#polledMs >= this.#timing.pollMs) void this.#poll(this.#link.signal);
  }

  /** Polls /status, which has no events, and repeats loads that failed. */
  async #poll(signal: AbortSignal): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#polledMs = performance.now();
    try {
      const status = await this.#api.getJson<StatusDocument>('status', signal);
      if (signal.aborted) return;
      this.#applyStatus(status);
      this.#link.dispatch({ kind: 'answered' });
      const { alerts, book, history } = this.#state;
      const { CRITICAL, ERROR, WARNING } = status.open_alerts;
      if (alerts !== 'ready' || book.open.length !== CRITICAL + ERROR + WARNING) await this.#loadAlerts(signal);
      if (history === 'failed') await this.#loadHistory(signal);
    } catch (error) {
      // The stream detects a lost service itself; only an API error such as a refused token ends the attempt here.
      if (isFatal(error) && !signal.aborted && error instanceof ApiError) this.#link.handleError(error, signal);
    } finally {
      this.#isPolling = false;
    }
  }
}
