import { monotonicFactory } from 'ulid';
import { type Alert, nodeOfAlertId } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { type HeardNode, NodeWatch, type Stamp, stampOf } from '../core/node-watch.ts';
import { LineLimit, TokenBucket } from '../core/node-watch-limit.ts';
import { isoUtc } from '../core/time.ts';
import type { StatusDocument } from '../http/api/schema.ts';
import type { GraphListener } from '../ros/graph.ts';
import { GatheredAlerts } from './gather-alerts.ts';
import { GatheredNode, SILENCE_METRIC, silenceAlert } from './gather-node.ts';
import type { GatheringOptions, GatheringPast, GatheringRules } from './gather-options.ts';

export { gatheringRules } from './gather-options.ts';

export type GatheredCounts = NonNullable<StatusDocument['gathered']>;

/** Other nodes at once: whoever sends under ever new names finds an end. */
export const MAX_NODES = 512;
const ALL_STATUSES_PER_SECOND = 5000;
/** A node heard so lately before the start is expected after it, */
const EXPECTED_HOURS = 24;
/** once the nodes had this long to find each other. */
const DISCOVERY_SECONDS = 10;
const SHORTEST_CHECK_SECONDS = 0.1;
const LONGEST_CHECK_SECONDS = 5;
/** A check that comes later than this was held up, and what should have been heard may be waiting as well. */
const HELD_UP_SECONDS = 1;

/**
 * What arrives from other nodes: judged for silence, stored and served. A node is judged by when its statuses arrive, on the
 * monotonic clock; its own clock only orders its history. All of it is bounded, whoever sends.
 */
export class Gathering implements Pick<Required<GraphListener>, 'onHealthStatus' | 'onAlert' | 'onNodeLeft'> {
  readonly #options: GatheringOptions;
  readonly #uniqueId = monotonicFactory(Math.random);
  readonly #nodes = new Map<string, GatheredNode>();
  readonly #alerts: GatheredAlerts;
  readonly #lines = new LineLimit();
  readonly #statuses = new TokenBucket(ALL_STATUSES_PER_SECOND, ALL_STATUSES_PER_SECOND);
  readonly #counts = { statuses: 0, duplicates: 0, late: 0, not_stored: 0, refused: 0 };
  #rules: GatheringRules;
  #isRunning = false;
  #timer: NodeJS.Timeout | null = null;
  #plannedSeconds = 0;
  #wasHeldUp = false;

  constructor(options: GatheringOptions) {
    this.#options = options;
    this.#rules = options.rules;
    this.#alerts = new GatheredAlerts({ ...options, lines: this.#lines });
  }

  /** Begins with what earlier runs left. What arrives before is dropped. */
  start(past: GatheringPast): void {
    this.#isRunning = true;
    const heard = new Set(past.heard.map(({ name }) => name));
    const former = past.nodes.filter((name) => name !== this.#options.localNode && !heard.has(name));
    this.adopt(past.openAlerts, past.heard);
    for (const name of former) void this.forget(name, 'former name of this machine');
    if (this.#options.isOn === false)
      for (const name of [...this.#nodes.keys()]) void this.forget(name, 'this machine does not observe other nodes');
    this.#plan();
  }

  stop(): void {
    this.#isRunning = false;
    this.#plan();
  }

  /**
   * Other nodes are received from now on, or no longer: then what is known of them would only grow old. The appliances are expected from
   * the start, among them the observer that vanished.
   */
  setObserving(isObserving: boolean, appliances: readonly string[]): void {
    const { clocks, live, localNode } = this.#options;
    if (!isObserving) {
      for (const name of [...this.#nodes.keys()]) void this.forget(name, 'another appliance observes it');
      return;
    }
    const now = clocks.monotonicSeconds();
    for (const name of appliances) {
      if (name === localNode || this.#nodes.has(name)) continue;
      if (this.#watch(name, [], now + DISCOVERY_SECONDS, now)) live.expect(name, now);
    }
    this.#plan();
  }

  /** Applies what a reload may change. */
  setRules(rules: GatheringRules): void {
    this.#rules = rules;
    for (const node of this.#nodes.values()) {
      node.watch.setGrace(rules.graceSeconds);
      if (node.leftMs !== null) this.#judgeLeft(node);
    }
    this.#plan();
  }

  /** Takes over what a database says that was opened only now: as `start` does, beside what was heard meanwhile. */
  adopt(openAlerts: readonly Alert[], heard: readonly HeardNode[]): void {
    const { clocks, live, localNode } = this.#options;
    const now = clocks.monotonicSeconds();
    const nowMs = clocks.wallMilliseconds();
    const foreign = openAlerts.filter(({ alert_id }) => nodeOfAlertId(alert_id) !== localNode);
    const hasAlert = new Set(foreign.map(({ alert_id }) => nodeOfAlertId(alert_id)));
    const heardMs = new Map(heard.map(({ name, lastHeardMs }) => [name, lastHeardMs]));
    const silentSeconds = (name: string, otherwiseMs: number): number => Math.max(0, nowMs - (heardMs.get(name) ?? otherwiseMs)) / 1000;
    live.know([...heardMs.keys(), ...hasAlert]);
    const left = this.#options.left.read();
    for (const { name, recent } of heard.toSorted((a, b) => (b.lastHeardMs ?? 0) - (a.lastHeardMs ?? 0))) {
      const silent = silentSeconds(name, 0);
      const isExpected = silent <= EXPECTED_HOURS * 3600;
      if (name === localNode || this.#nodes.has(name) || !(isExpected || hasAlert.has(name))) continue;
      const node = this.#watch(name, recent, isExpected ? now + DISCOVERY_SECONDS : null, now - silent);
      const leftMs = left.get(name);
      if (node && leftMs !== undefined) this.#setLeft(node, leftMs);
    }
    for (const alert of foreign) {
      const name = nodeOfAlertId(alert.alert_id);
      const node = this.#nodes.get(name) ?? this.#watch(name, [], null, now - silentSeconds(name, Date.parse(alert.timestamp)));
      if (alert.metric !== SILENCE_METRIC) this.#alerts.adopt(alert);
      else if (node) this.#adoptSilence(node, alert);
    }
  }

  /** For /status. */
  counts(): GatheredCounts {
    return { ...this.#counts, ...this.#alerts.counts };
  }

  onHealthStatus(status: HealthStatus): void {
    const { clocks, events, live, localNode } = this.#options;
    if (!this.#isRunning || status.node_name === localNode) return;
    const now = clocks.monotonicSeconds();
    const node = this.#nodeOf(status.node_name, now);
    if (!node?.mayPass(now, this.#statuses)) {
      this.#counts.refused += 1;
      this.#say(node ? 'statuses come too fast; some are dropped' : 'too many nodes; one is not taken', status.node_name);
      return;
    }
    const stamp = stampOf(status);
    const { arrival, change, isAlive } = node.watch.hear(stamp, now);
    if (arrival === 'duplicate') {
      this.#counts.duplicates += 1;
      if (!isAlive) return;
      // Nothing new to store or to tell, but it is there.
      node.lastHeardSeconds = now;
      this.#noteReturn(node);
      if (!live.heardAgain(node.name, now)) live.setStatus(status, now, node.watch.periodSeconds);
      if (change === 'resolve') this.#endSilence(node);
      return;
    }
    this.#counts.statuses += 1;
    if (arrival === 'late') this.#counts.late += 1;
    node.lastHeardSeconds = now;
    this.#noteReturn(node);
    const line = JSON.stringify(status);
    this.#store(node, status, line, stamp.ms, arrival === 'jump');
    if (arrival !== 'late') live.setStatus(status, now, node.watch.periodSeconds);
    events.publishHealth(status, line);
    if (change === 'resolve') this.#endSilence(node);
    const soonest = now + Math.max(SHORTEST_CHECK_SECONDS, node.watch.allowedSeconds);
    if (this.#timer === null || soonest < this.#plannedSeconds) this.#plan();
  }

  onAlert(alert: Alert): void {
    const { clocks, localNode } = this.#options;
    const name = nodeOfAlertId(alert.alert_id);
    // Whether a node is silent everybody judges by what arrives there.
    if (!this.#isRunning || name === localNode || alert.metric === SILENCE_METRIC) return;
    const node = this.#nodeOf(name, clocks.monotonicSeconds());
    if (!node) {
      this.#alerts.refuse('too many nodes', alert);
      return;
    }
    node.lastHeardSeconds = clocks.monotonicSeconds();
    this.#alerts.take(alert, node.changes);
  }

  onNodeLeft(name: string): void {
    const { clocks, left, log } = this.#options;
    const node = this.#nodes.get(name);
    if (!this.#isRunning || !node) return;
    if (node.changes.take(clocks.monotonicSeconds())) log('notice', 'remote node left the graph', { node: name });
    this.#setLeft(node, clocks.wallMilliseconds());
    left.write(this.#leftNodes());
  }

  /** Looks for nodes that are silent for too long, and for those that are to be forgotten. */
  check(): void {
    const { clocks, live } = this.#options;
    const now = clocks.monotonicSeconds();
    const forgetSeconds = this.#rules.forgetAfterHours * 3600;
    for (const node of this.#nodes.values()) {
      const silentSeconds = node.watch.check(now);
      if (silentSeconds !== null) {
        live.setSilent(node.name, true);
        this.#raiseSilence(node, silentSeconds);
      }
      if (forgetSeconds > 0 && now - node.lastHeardSeconds >= forgetSeconds) {
        void this.forget(node.name, `no data for ${this.#rules.forgetAfterHours} h`);
      }
    }
    this.#plan();
  }

  /**
   * Forgets a remote node until it publishes again, and resolves its open alerts. Resolves with their number once they are stored; null:
   * there is no such node.
   */
  async forget(name: string, reason: string): Promise<number | null> {
    const node = this.#nodes.get(name);
    this.#nodes.delete(name);
    this.#options.live.forget(name);
    const resolved = this.#alerts.end(name);
    const count = resolved.length + (node?.silence ? 1 : 0);
    if (node?.silence) this.#resolve(node.silence);
    if (node) this.#options.log('notice', 'remote node forgotten, its alerts resolved', { node: name, reason, alerts: count });
    if (node && node.leftMs !== null) this.#options.left.write(this.#leftNodes());
    await Promise.all(resolved);
    return node ? count : null;
  }

  /** As `forget`, with an answer for the user who asks for it. */
  async forgetOnRequest(name: string, requestedBy: string): Promise<{ readonly ok: boolean; readonly message: string }> {
    if (name === this.#options.localNode) return { ok: false, message: `${name} is this node itself and cannot be forgotten` };
    const alerts = await this.forget(name, `forgotten on request by ${requestedBy}`);
    if (alerts !== null) return { ok: true, message: `${name} forgotten; open alerts resolved: ${alerts}` };
    const known = [...this.#nodes.keys()].join(', ');
    return { ok: false, message: `no remote node is named "${name}"; ${known === '' ? 'there are none' : `remote nodes: ${known}`}` };
  }

  /** One timer for all nodes, at the earliest time at which one of them could be too late. */
  #plan(notBeforeSeconds = SHORTEST_CHECK_SECONDS): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (!this.#isRunning || this.#nodes.size === 0) return;
    const now = this.#options.clocks.monotonicSeconds();
    let wait = LONGEST_CHECK_SECONDS;
    for (const { watch } of this.#nodes.values()) wait = Math.min(wait, watch.deadlineSeconds - now);
    wait = Math.max(notBeforeSeconds, wait);
    this.#plannedSeconds = now + wait;
    this.#timer = setTimeout(() => this.#onTimer(), wait * 1000);
  }

  #onTimer(): void {
    const late = this.#options.clocks.monotonicSeconds() - this.#plannedSeconds;
    // Once; who is held up again and again must judge all the same.
    this.#wasHeldUp = late > HELD_UP_SECONDS && !this.#wasHeldUp;
    if (this.#wasHeldUp) this.#plan(HELD_UP_SECONDS);
    else this.check();
  }

  #nodeOf(name: string, now: number): GatheredNode | null {
    const known = this.#nodes.get(name);
    if (known) return known;
    const node = this.#watch(name, [], null, now);
    if (node) this.#options.log('info', 'another node is heard', { node: name });
    return node;
  }

  #watch(name: string, recent: readonly Stamp[], expectedSinceSeconds: number | null, lastHeardSeconds: number): GatheredNode | null {
    if (this.#nodes.size >= MAX_NODES) return null;
    const node = new GatheredNode(name, new NodeWatch(recent, expectedSinceSeconds, this.#rules.graceSeconds), lastHeardSeconds);
    this.#nodes.set(name, node);
    this.#options.live.expect(name, lastHeardSeconds);
    return node;
  }

  #store(node: GatheredNode, status: HealthStatus, line: string, timestampMs: number, isJump: boolean): void {
    const { clocks, log, store } = this.#options;
    const now = clocks.monotonicSeconds();
    const notStored = node.notStored(timestampMs, isJump, clocks.wallMilliseconds(), now);
    if (notStored === null) {
      const hertz = node.rateToNote(now);
      if (hertz !== null) store.recordRate(node.name, hertz, timestampMs);
      store.recordHealth(status, line, timestampMs);
      return;
    }
    this.#counts.not_stored += 1;
    if (notStored === 'too many jumps') {
      this.#say('the clock of a node jumps too often; some of its statuses are shown but not stored', node.name);
    } else if (!node.wasImpossible) {
      node.wasImpossible = true;
      log('warning', "another node's clock is wrong: its statuses are shown but not stored", {
        node: node.name,
        timestamp: status.timestamp,
      });
    }
  }

  #setLeft(node: GatheredNode, leftMs: number): void {
    node.leftMs = leftMs;
    this.#options.live.setLeft(node.name, leftMs);
    this.#judgeLeft(node);
  }

  /** A node that left is missed only if it is one of those that are expected. */
  #judgeLeft(node: GatheredNode): void {
    if (this.#rules.expectedNodes.includes(node.name)) {
      node.watch.expect(this.#options.clocks.monotonicSeconds());
      return;
    }
    node.watch.leave();
    this.#endSilence(node);
  }

  #noteReturn(node: GatheredNode): void {
    if (node.leftMs === null) return;
    node.leftMs = null;
    this.#options.live.setLeft(node.name, null);
    this.#options.left.write(this.#leftNodes());
  }

  #leftNodes(): Map<string, number> {
    return new Map([...this.#nodes.values()].flatMap(({ leftMs, name }) => (leftMs === null ? [] : [[name, leftMs]])));
  }

  #raiseSilence(node: GatheredNode, silentSeconds: number): void {
    const nowMs = this.#options.clocks.wallMilliseconds();
    node.silence = silenceAlert(node, silentSeconds, this.#uniqueId(nowMs), nowMs);
    this.#options.publishAlerts([node.silence]);
  }

  #endSilence(node: GatheredNode): void {
    this.#options.live.setSilent(node.name, false);
    if (node.silence) this.#resolve(node.silence);
    node.silence = null;
  }

  /** Goes on with an alert about its silence; where this process has raised one meanwhile, the old one is closed in its favour. */
  #adoptSilence(node: GatheredNode, alert: Alert): void {
    if (node.silence) {
      if (node.silence.alert_id !== alert.alert_id) this.#resolve(alert);
      return;
    }
    node.silence = alert;
    node.watch.adoptOpen();
    this.#options.live.setSilent(node.name, true);
  }

  #resolve(alert: Alert): void {
    const { clocks, publishAlerts } = this.#options;
    publishAlerts([{ ...alert, value: 0, timestamp: isoUtc(clocks.wallMilliseconds()), resolved: true }]);
  }

  #say(message: string, node: string): void {
    const times = this.#lines.count(message, this.#options.clocks.monotonicSeconds());
    if (times !== null) this.#options.log('warning', message, { node, times });
  }
}
