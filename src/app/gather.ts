import { monotonicFactory } from 'ulid';
import { type Alert, alertId, nodeOfAlertId } from '../core/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import { isNodeName } from '../core/node-name.ts';
import { type HeardNode, NodeWatch, type Stamp, stampOf } from '../core/node-watch.ts';
import { LineLimit, TokenBucket } from '../core/node-watch-limit.ts';
import { isoUtc } from '../core/time.ts';
import type { StatusDocument } from '../http/api/schema.ts';
import type { GraphListener } from '../ros/graph.ts';
import { GatheredAlerts } from './gather-alerts.ts';
import { GatheredNode, type Heard, SILENCE_METRIC, silenceAlert } from './gather-node.ts';
import type { GatheringOptions, GatheringPast, GatheringRules } from './gather-options.ts';
import { MAX_NODES, NodePlaces, SHORT_FROM } from './node-places.ts';

export { gatheringRules } from './gather-options.ts';

export type GatheredCounts = NonNullable<StatusDocument['gathered']>;

/** Metric of the alert that places for other nodes are short. */
export const PLACES_METRIC = 'remote_nodes';
/** A newcomer that was silent for so long is forgotten. */
const NEWCOMER_FORGET_SECONDS = 7200;
/** Open alerts about the silence of nodes that have been heard for less than this, */
const YOUNG_SECONDS = 3600;
/** and of those that are raised in the long run. */
const MAX_YOUNG_ALERTS = 32;
const YOUNG_ALERTS_PER_SECOND = 1 / 60;
const ALL_STATUSES_PER_SECOND = 5000;
/** A node heard so lately before the start is expected after it, */
const EXPECTED_HOURS = 24;
/** once the nodes had this long to find each other. */
const DISCOVERY_SECONDS = 10;
const SHORTEST_CHECK_SECONDS = 0.1;
const LONGEST_CHECK_SECONDS = 5;
/** In an answer to a user who asked for another one. */
const NAMES_LISTED = 20;
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
  readonly #places = new NodePlaces(this.#nodes);
  readonly #alerts: GatheredAlerts;
  readonly #lines = new LineLimit();
  readonly #statuses = new TokenBucket(ALL_STATUSES_PER_SECOND, ALL_STATUSES_PER_SECOND);
  readonly #youngAlerts = new TokenBucket(YOUNG_ALERTS_PER_SECOND, MAX_YOUNG_ALERTS);
  /** Lines about nodes that come, one each. */
  readonly #arrivalLines = new TokenBucket(1 / 60, MAX_NODES);
  readonly #counts = { statuses: 0, duplicates: 0, late: 0, not_stored: 0, refused: 0, evicted: 0 };
  /** The open alert about places. */
  #shortage: Alert | null = null;
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
    this.adopt(past.openAlerts, past.heard);
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
    const { clocks, localNode } = this.#options;
    if (!isObserving) {
      for (const name of [...this.#nodes.keys()]) void this.forget(name, 'another appliance observes it');
      return;
    }
    const now = clocks.monotonicSeconds();
    for (const name of appliances) {
      if (name === localNode || this.#nodes.has(name)) continue;
      this.#watch(name, [], now + DISCOVERY_SECONDS, newcomerSince(now));
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

  /** Open alerts about this node, which are part of its status. */
  openAlerts(): readonly Alert[] {
    return this.#shortage ? [this.#shortage] : [];
  }

  /**
   * Takes over what a database says that was opened only now: as `start` does, beside what was heard meanwhile. It knows the established
   * nodes alone; alerts that it has of others, and of former names of this machine, are resolved: their end would not come.
   */
  adopt(openAlerts: readonly Alert[], heard: readonly HeardNode[]): void {
    const { clocks, live, localNode } = this.#options;
    const now = clocks.monotonicSeconds();
    const nowMs = clocks.wallMilliseconds();
    const foreign = openAlerts.filter(({ alert_id }) => nodeOfAlertId(alert_id) !== localNode);
    const hasAlert = new Set(foreign.map(({ alert_id }) => nodeOfAlertId(alert_id)));
    const secondsAt = (ms: number | null): number => now - Math.max(0, nowMs - (ms ?? 0)) / 1000;
    live.know(heard.map(({ name }) => name));
    const left = this.#options.left.read();
    for (const { firstHeardMs, lastHeardMs, name, recent } of heard.toSorted((a, b) => (b.lastHeardMs ?? 0) - (a.lastHeardMs ?? 0))) {
      const lastSeconds = secondsAt(lastHeardMs);
      const isExpected = now - lastSeconds <= EXPECTED_HOURS * 3600;
      if (name === localNode || this.#nodes.has(name) || !(isExpected || hasAlert.has(name))) continue;
      const node = this.#watch(name, recent, isExpected ? now + DISCOVERY_SECONDS : null, {
        firstSeconds: secondsAt(firstHeardMs),
        lastSeconds,
        isEstablished: true,
      });
      const leftMs = left.get(name);
      if (node && leftMs !== undefined) this.#setLeft(node, leftMs);
    }
    for (const alert of foreign) {
      const node = this.#nodes.get(nodeOfAlertId(alert.alert_id));
      if (alert.metric !== SILENCE_METRIC) this.#alerts.adopt(alert);
      else if (node) this.#adoptSilence(node, alert);
      else this.#resolve(alert);
    }
    for (const name of hasAlert) if (!this.#nodes.has(name)) void Promise.all(this.#alerts.end(name));
    const shortage = openAlerts.find(({ alert_id, metric }) => metric === PLACES_METRIC && nodeOfAlertId(alert_id) === localNode);
    if (shortage && this.#shortage) this.#resolve(shortage);
    this.#shortage ??= shortage ?? null;
    this.#judgePlaces();
  }

  /** For /status. */
  counts(): GatheredCounts {
    return { ...this.#counts, ...this.#alerts.counts, alerts_not_stored: this.#options.store.alertsNotStored };
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
      this.#noteHeard(node, now);
      if (!live.heardAgain(node.name, now)) live.setStatus(status, now, node.watch.periodSeconds);
      if (change === 'resolve') this.#endSilence(node);
      return;
    }
    this.#counts.statuses += 1;
    if (arrival === 'late') this.#counts.late += 1;
    this.#noteHeard(node, now);
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
    // A restart does not know of newcomers.
    if (node.isEstablished) left.write(this.#leftNodes());
  }

  /** Looks for nodes that are silent for too long, and for those that are to be forgotten. */
  check(): void {
    const { clocks, live } = this.#options;
    const now = clocks.monotonicSeconds();
    const ruleSeconds = this.#rules.forgetAfterHours * 3600 || Number.POSITIVE_INFINITY;
    const isYoung = ({ name, spanSeconds }: GatheredNode): boolean => spanSeconds < YOUNG_SECONDS && !this.#isExpected(name);
    let young = [...this.#nodes.values()].filter((node) => node.silence && isYoung(node)).length;
    for (const node of this.#nodes.values()) {
      const isNew = node.watch.check(now) !== null;
      if (isNew) live.setSilent(node.name, true);
      const silentSeconds = node.silence ? null : node.watch.silentSeconds(now);
      if (silentSeconds !== null) {
        // Ever new names, and nodes that come and go, must not fill the list of alerts: theirs waits until there are fewer.
        const isOneTooMany = isYoung(node) && (young >= MAX_YOUNG_ALERTS || !this.#youngAlerts.take(now));
        if (!isOneTooMany && node.silences.take(now)) {
          this.#raiseSilence(node, silentSeconds);
          if (isYoung(node)) young += 1;
        } else if (isNew) this.#say('silent, without an alert: new nodes, or this one, fall silent too often', node.name);
      }
      const forgetSeconds = node.isEstablished ? ruleSeconds : Math.min(ruleSeconds, NEWCOMER_FORGET_SECONDS);
      if (now - node.lastHeardSeconds >= forgetSeconds) void this.forget(node.name, `no data for ${forgetSeconds / 3600} h`);
    }
    this.#judgePlaces();
    this.#plan();
  }

  /**
   * Forgets a remote node until it publishes again, and resolves its open alerts. Resolves with their number once they are stored; null:
   * there is no such node.
   */
  async forget(name: string, reason: string): Promise<number | null> {
    const node = this.#nodes.get(name);
    if (!node) return null;
    const resolved = this.#remove(node);
    const count = resolved.length + (node.silence ? 1 : 0);
    this.#options.log('notice', 'remote node forgotten, its alerts resolved', { node: name, reason, alerts: count });
    this.#judgePlaces();
    await Promise.all(resolved);
    return count;
  }

  /** Takes a node off the list and ends its alerts: one promise for each of its own, fulfilled once that is stored. */
  #remove(node: GatheredNode): Promise<void>[] {
    const { left, live, store } = this.#options;
    this.#nodes.delete(node.name);
    live.forget(node.name, node.isEstablished || node.wasKnown);
    if (!node.isEstablished && !node.wasKnown) store.dropNewcomer(node.name);
    if (node.silence) this.#resolve(node.silence);
    if (node.leftMs !== null && node.isEstablished) left.write(this.#leftNodes());
    return this.#alerts.end(node.name);
  }

  /** As `forget`, with an answer for the user who asks for it. */
  async forgetOnRequest(name: string, requestedBy: string): Promise<{ readonly ok: boolean; readonly message: string }> {
    if (name === this.#options.localNode) return { ok: false, message: `${name} is this node itself and cannot be forgotten` };
    const alerts = await this.forget(name, `forgotten on request by ${requestedBy}`);
    if (alerts !== null) return { ok: true, message: `${name} forgotten; open alerts resolved: ${alerts}` };
    const known = [...this.#nodes.keys()];
    const listed = known.slice(0, NAMES_LISTED).join(', ') + (known.length > NAMES_LISTED ? ', …' : '');
    return { ok: false, message: `no remote node is named "${name}"; ${listed === '' ? 'there are none' : `remote nodes: ${listed}`}` };
  }

  /** Forgets every node that is silent now. */
  async forgetSilentOnRequest(requestedBy: string): Promise<{ readonly ok: boolean; readonly message: string }> {
    const now = this.#options.clocks.monotonicSeconds();
    const silent = [...this.#nodes.values()].filter((node) => node.isSilent(now));
    const alerts = await Promise.all(silent.map(({ name }) => this.forget(name, `silent, forgotten on request by ${requestedBy}`)));
    const resolved = alerts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
    return { ok: true, message: `stale nodes forgotten: ${silent.length}; open alerts resolved: ${resolved}` };
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
    const leaver = this.#places.leaver(now);
    if (leaver) this.#evict(leaver, 'a newcomer that is silent gives its place to another node');
    const isEstablished = this.#isExpected(name) && this.#places.hasRoom(true);
    const node = this.#watch(name, [], null, { ...newcomerSince(now), isEstablished });
    if (node && this.#arrivalLines.take(now)) this.#options.log('info', 'remote node discovered', { node: name });
    return node;
  }

  #watch(name: string, recent: readonly Stamp[], expectedSinceSeconds: number | null, heard: Heard): GatheredNode | null {
    if (!this.#places.hasRoom(heard.isEstablished) || !isNodeName(name)) return null;
    const node = new GatheredNode(name, new NodeWatch(recent, expectedSinceSeconds, this.#rules.graceSeconds), heard);
    this.#nodes.set(name, node);
    node.wasKnown = this.#options.live.knows(name);
    this.#options.live.expect(name, heard.lastSeconds);
    return node;
  }

  /** Nodes that the configuration names are no newcomers. */
  #isExpected(name: string): boolean {
    return this.#rules.expectedNodes.includes(name);
  }

  #evict(node: GatheredNode, reason: string): void {
    this.#counts.evicted += 1;
    this.#say(reason, node.name);
    void Promise.all(this.#remove(node));
  }

  #noteHeard(node: GatheredNode, now: number): void {
    const leaver = node.hear(now) ? this.#places.establish(node, now) : null;
    if (leaver) this.#evict(leaver, 'a silent node gives its place to one that was heard for longer');
    this.#noteReturn(node);
  }

  /** A WARNING of this node while places are short. */
  #judgePlaces(): void {
    const { clocks, localNode, publishAlerts } = this.#options;
    const value = this.#nodes.size;
    if (value >= SHORT_FROM === (this.#shortage !== null)) return;
    const nowMs = clocks.wallMilliseconds();
    const alert_id = this.#shortage?.alert_id ?? alertId(localNode, PLACES_METRIC, this.#uniqueId(nowMs));
    const resolved = this.#shortage !== null;
    const timestamp = isoUtc(nowMs);
    const alert: Alert = { alert_id, severity: 'WARNING', metric: PLACES_METRIC, value, threshold: SHORT_FROM, timestamp, resolved };
    this.#shortage = resolved ? null : alert;
    publishAlerts([alert]);
  }

  #store(node: GatheredNode, status: HealthStatus, line: string, timestampMs: number, isJump: boolean): void {
    const { clocks, log, store } = this.#options;
    const now = clocks.monotonicSeconds();
    const notStored = node.notStored(timestampMs, isJump, clocks.wallMilliseconds(), now);
    if (notStored === null) {
      const hertz = node.rateToNote(now);
      if (hertz !== null) store.recordRate(node.name, hertz, timestampMs);
      store.recordHealth(status, line, timestampMs, !node.isEstablished);
      return;
    }
    this.#counts.not_stored += 1;
    if (notStored === 'too many jumps') {
      this.#say('the clock of a node jumps too often; some of its statuses are shown but not stored', node.name);
    } else if (!node.wasImpossible) {
      node.wasImpossible = true;
      log('warning', 'remote node clock is wrong: statuses shown but not stored', {
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
    if (this.#isExpected(node.name)) {
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
    if (node.isEstablished) this.#options.left.write(this.#leftNodes());
  }

  #leftNodes(): Map<string, number> {
    const established = [...this.#nodes.values()].filter(({ isEstablished }) => isEstablished);
    return new Map(established.flatMap(({ leftMs, name }) => (leftMs === null ? [] : [[name, leftMs]])));
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

function newcomerSince(seconds: number): Heard {
  return { firstSeconds: seconds, lastSeconds: seconds, isEstablished: false };
}
