import { monotonicFactory } from 'ulid';
import {
  type Alert,
  alertId,
  isAboutRemoteNode,
  NAME_CONFLICT_METRIC,
  NODE_LIMIT_METRIC,
  nodeOfAlertId,
  raisedBy,
  STALE_METRIC,
} from '../../core/alerts/alert.ts';
import { type Arrival, isPlausible, type KnownNode, NodeWatch, type Stamp, stampOf } from '../../core/alerts/node-watch.ts';
import { TokenBucket } from '../../core/alerts/rate-limit.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { isNodeName } from '../../core/node-name.ts';
import { rateLimited } from '../../core/platform/log.ts';
import type { Log, RecordCursor } from '../../core/ports.ts';
import { type ClockCorrection, corrected } from '../../core/time/clock-watch.ts';
import { isoUtc } from '../../core/time/time.ts';
import type { StatusDocument } from '../../http/api/schema.ts';
import { type ExpectedAppliance, type GraphListener, type Sender, THIS_HOST } from '../../ros/graph.ts';
import { MAX_NODES, NodeLimit, SHORT_FROM } from './node-limit.ts';
import { isSameHost, NodePublisher } from './node-publisher.ts';
import { RemoteAlerts } from './remote-alerts.ts';
import {
  ESTABLISHED_SECONDS,
  makeStaleAlert,
  RemoteNode,
  type RemoteNodeRules,
  type RemoteNodesOptions,
  type RemoteNodesPast,
  type SeenTimes,
} from './remote-node.ts';

export type RemoteCounts = NonNullable<StatusDocument['remote']>;

/** A newcomer is removed after this long without data. */
const NEWCOMER_FORGET_SECONDS = 7200;
/** A node seen over less than this time is young. */
const YOUNG_SECONDS = 3600;
/** Limit of open alerts about stale young nodes, also the burst; and their long-term rate. */
const MAX_YOUNG_ALERTS = 32;
const YOUNG_ALERTS_PER_SECOND = 1 / 60;
const ALL_STATUSES_PER_SECOND = 5000;
/** Limit of alerts about names with several publishers, also the burst; and their long-term rate. */
const MAX_CONFLICT_ALERTS = 32;
const CONFLICT_ALERTS_PER_SECOND = 1 / 60;
/** Number of publishers of one name from which on there is a conflict. */
const CONFLICT_PUBLISHERS = 2;
/** This process as the publisher of its own name. */
const OWN_SENDER: Sender = { participant: 'this process', address: THIS_HOST };
const UNKNOWN_SENDER: Sender = { participant: 'unknown', address: 'an unknown address' };
const NO_STAMP: Stamp = { ms: Number.NaN, print: Number.NaN };
/** A node seen within this time before the start is expected after it. */
const EXPECTED_HOURS = 24;
/** Grace period after the start for DDS discovery. */
const DISCOVERY_SECONDS = 10;
/** For this long, an observer that does not publish waits for the alert of the one that does, to show it under the same id. */
const PUBLISHED_SECONDS = 5;
const SHORTEST_CHECK_SECONDS = 0.1;
const LONGEST_CHECK_SECONDS = 5;
/** Limit of names in the response to a request for an unknown node. */
const NAMES_LISTED = 20;
/** A check delayed by more than this means that the process was stopped; received statuses may still wait in the sockets. */
const DELAYED_SECONDS = 1;

/**
 * Receives from remote nodes: detects stale nodes, stores and serves their data. Staleness is judged by arrival times on the monotonic
 * clock; a node's own clock only orders its history. All state is bounded, regardless of the senders.
 */
export class RemoteNodes
  implements Pick<Required<GraphListener>, 'onHealthStatus' | 'onAlert' | 'onOwnName' | 'onPublisherGone' | 'onApplianceGone'>
{
  readonly #options: RemoteNodesOptions;
  readonly #uniqueId = monotonicFactory(Math.random);
  readonly #nodes = new Map<string, RemoteNode>();
  readonly #capacity = new NodeLimit(this.#nodes);
  readonly #alerts: RemoteAlerts;
  readonly #rateLimitedLog: Log;
  readonly #statuses = new TokenBucket(ALL_STATUSES_PER_SECOND, ALL_STATUSES_PER_SECOND);
  readonly #youngAlerts = new TokenBucket(YOUNG_ALERTS_PER_SECOND, MAX_YOUNG_ALERTS);
  /** Limits the log lines about discovered nodes. */
  readonly #discoveryLines = new TokenBucket(1 / 60, MAX_NODES);
  readonly #counts = { statuses: 0, duplicates: 0, late: 0, not_stored: 0, refused: 0, evicted: 0 };
  readonly #conflictAlerts = new TokenBucket(CONFLICT_ALERTS_PER_SECOND, MAX_CONFLICT_ALERTS);
  /** Others that publish under the name of this node. */
  readonly #own = new NodePublisher();
  /** The open alert about the list of remote nodes being almost full. */
  #capacityAlert: Alert | null = null;
  /** By node: the alerts about stale nodes that another observer published and has not resolved. */
  readonly #published = new Map<string, { readonly alert: Alert; readonly sender: Sender | null }>();
  #isObserving = true;
  /** Since when this machine has been the observer that publishes; infinite: it is not. */
  #firstSinceSeconds = Number.POSITIVE_INFINITY;
  #rules: RemoteNodeRules;
  #isRunning = false;
  #timer: NodeJS.Timeout | null = null;
  #nextCheckSeconds = 0;
  #wasDelayed = false;

  constructor(options: RemoteNodesOptions) {
    this.#options = options;
    this.#rateLimitedLog = rateLimited(options.log, () => options.clocks.monotonicSeconds());
    this.#rules = options.rules;
    this.#alerts = new RemoteAlerts(options);
  }

  /** Restores the state of earlier runs. Data received before start() is dropped. */
  start(past: RemoteNodesPast): void {
    this.#isRunning = true;
    this.adopt(past.openAlerts, past.remoteNodes);
    if (this.#options.isOn === false)
      for (const name of [...this.#nodes.keys()]) void this.forget(name, 'this machine does not observe other nodes');
    this.#scheduleCheck();
  }

  stop(): void {
    this.#isRunning = false;
    this.#scheduleCheck();
  }

  /**
   * Starts or stops observing remote nodes. Without observing, their state would become outdated and is dropped; the next observer continues
   * the alerts about stale nodes, and resolves them. Appliances are expected from the start, so that those are reported that vanished
   * with the former observer.
   */
  setObserving(isObserving: boolean, appliances: readonly ExpectedAppliance[]): void {
    const { clocks, firstObserver, localNode } = this.#options;
    this.#isObserving = isObserving;
    if (!isObserving) {
      const observer = firstObserver();
      for (const { name, staleAlert } of [...this.#nodes.values()])
        if (staleAlert === null || name === observer) void this.forget(name, 'another appliance observes it');
      return;
    }
    const now = clocks.monotonicSeconds();
    for (const { address, lostSeconds, name, sinceSeconds } of appliances) {
      const lastSeconds = lostSeconds ?? now;
      if (name === localNode || this.#nodes.has(name) || now - lastSeconds > EXPECTED_HOURS * 3600) continue;
      const isEstablished = lastSeconds - sinceSeconds >= ESTABLISHED_SECONDS && this.#capacity.hasCapacity(true);
      const node = this.#watch(name, [], now + DISCOVERY_SECONDS, { firstSeconds: sinceSeconds, lastSeconds, isEstablished });
      if (lostSeconds !== null) node?.watch.vanish(lostSeconds);
      if (!node?.isEstablished) continue;
      node.restoreAddress(address, lostSeconds ?? now + DISCOVERY_SECONDS, false);
    }
    this.#options.addresses.write(this.#homes());
    this.#firstSinceSeconds = Number.NEGATIVE_INFINITY;
    this.check();
  }

  setRules(rules: RemoteNodeRules): void {
    this.#rules = rules;
    for (const node of this.#nodes.values()) {
      node.watch.setGrace(rules.graceSeconds);
      if (node.leftMs !== null) this.#applyLeft(node);
    }
    this.#scheduleCheck();
  }

  /** Open alerts about this node, which count in its status. */
  openAlerts(): readonly Alert[] {
    return [this.#capacityAlert, this.#own.alert].filter((alert) => alert !== null);
  }

  /**
   * Restores the state from a database that was opened after the start, merged with the nodes seen meanwhile. The database lists
   * established nodes only; stored alerts of other nodes, and of former names of this machine, are resolved, since no sender will do so.
   */
  adopt(openAlerts: readonly Alert[], remoteNodes: readonly KnownNode[]): void {
    const { clocks, live, localNode } = this.#options;
    const now = clocks.monotonicSeconds();
    const nowMs = clocks.wallMilliseconds();
    const remoteAlerts = openAlerts.filter((alert) => isAboutRemoteNode(alert, localNode));
    const hasAlert = new Set(remoteAlerts.map(({ alert_id }) => nodeOfAlertId(alert_id)));
    const secondsAt = (ms: number | null): number => now - Math.max(0, nowMs - (ms ?? 0)) / 1000;
    live.addNames(remoteNodes.map(({ name }) => name));
    const left = this.#options.left.read();
    const addresses = this.#options.addresses.read();
    for (const { firstSeenMs, lastSeenMs, name, recent } of remoteNodes.toSorted((a, b) => (b.lastSeenMs ?? 0) - (a.lastSeenMs ?? 0))) {
      const lastSeconds = secondsAt(lastSeenMs);
      const isExpected = now - lastSeconds <= EXPECTED_HOURS * 3600;
      if (name === localNode || this.#nodes.has(name) || !(isExpected || hasAlert.has(name))) continue;
      const node = this.#watch(name, recent, isExpected ? now + DISCOVERY_SECONDS : null, {
        firstSeconds: secondsAt(firstSeenMs),
        lastSeconds,
        isEstablished: true,
      });
      const leftMs = left.get(name);
      const address = addresses.get(name);
      if (node && address !== undefined) node.restoreAddress(address, now + DISCOVERY_SECONDS, leftMs !== undefined);
      if (node && leftMs !== undefined) this.#setLeft(node, leftMs);
    }
    for (const alert of remoteAlerts) {
      const name = nodeOfAlertId(alert.alert_id);
      const node = this.#nodes.get(name) ?? this.#watchUnseen(alert, addresses.get(name), secondsAt(Date.parse(alert.timestamp)));
      if (raisedBy(alert, localNode) === 'other') this.#alerts.adopt(alert);
      else if (!node) this.#resolve(alert);
      else if (alert.metric === NAME_CONFLICT_METRIC) this.#adoptConflict(node.publisher, alert);
      else this.#adoptStale(node, alert);
    }
    for (const name of hasAlert) if (!this.#nodes.has(name)) void Promise.all(this.#alerts.end(name));
    const own = openAlerts.filter((alert) => raisedBy(alert, localNode) === 'reception');
    const conflictAlert = own.find(({ metric }) => metric === NAME_CONFLICT_METRIC);
    if (conflictAlert) this.#adoptConflict(this.#own, conflictAlert);
    const capacityAlert = own.find(({ metric }) => metric === NODE_LIMIT_METRIC);
    if (capacityAlert && this.#capacityAlert) this.#resolve(capacityAlert);
    this.#capacityAlert ??= capacityAlert ?? null;
    this.#updateCapacityAlert();
  }

  /** An established appliance that vanished before a status of it was received: only its address and the alert about it are stored. */
  #watchUnseen({ alert_id }: Alert, address: string | undefined, seconds: number): RemoteNode | null {
    if (address === undefined) return null;
    const node = this.#watch(nodeOfAlertId(alert_id), [], null, { firstSeconds: seconds, lastSeconds: seconds, isEstablished: true });
    node?.restoreAddress(address, seconds, false);
    return node;
  }

  counts(): RemoteCounts {
    return { ...this.#counts, ...this.#alerts.counts, alerts_not_stored: this.#options.store.alertsNotStored };
  }

  onHealthStatus(received: HealthStatus, sender: Sender | null = null): void {
    const { clocks, events, live, localNode } = this.#options;
    if (!this.#isRunning || received.node_name === localNode) return;
    const now = clocks.monotonicSeconds();
    const node = this.#nodeOf(received.node_name, now);
    const stamp = stampOf(received);
    // Before the limits, so that another publisher cannot use up those of the node.
    if (node && sender && !this.#isAdmitted(node, received, stamp, sender, now)) return;
    if (!node?.takeStatus(now, this.#statuses)) {
      this.#counts.refused += 1;
      this.#rateLimitedLog('warning', node ? 'remote statuses dropped: rate limit exceeded' : 'remote node ignored: node limit reached', {
        node: received.node_name,
      });
      return;
    }
    const nowMs = clocks.wallMilliseconds();
    const isClockRight = isPlausible(stamp.ms, nowMs);
    const { arrival, change, isInBurst, isSending } = node.watch.receive(stamp, now, isClockRight);
    const timestampMs = isClockRight ? stamp.ms : nowMs;
    const status = isClockRight ? received : { ...received, timestamp: isoUtc(nowMs) };
    const clockAheadSeconds = isClockRight || stamp.ms < nowMs ? null : Math.round((stamp.ms - nowMs) / 1000);
    if (arrival === 'duplicate') {
      this.#counts.duplicates += 1;
      if (!isSending) return;
      // A duplicate carries no new data, but shows that the node is sending.
      this.#onNodeSeen(node, now);
      if (!live.refresh(node.name, now)) live.setStatus(status, now, node.watch.periodSeconds, clockAheadSeconds);
      if (change === 'resolve') this.#endStale(node);
      return;
    }
    this.#counts.statuses += 1;
    if (arrival === 'late') this.#counts.late += 1;
    this.#onNodeSeen(node, now);
    if (!isClockRight) this.#logWrongClock(node, received);
    const line = JSON.stringify(status);
    const mayStore = node.mayStore(arrival, isInBurst, now);
    const cursor = mayStore ? this.#store(node, status, line, timestampMs, now) : this.#skip(node, arrival);
    if (arrival !== 'late') live.setStatus(status, now, node.watch.periodSeconds, clockAheadSeconds);
    events.publishHealth(status, line, cursor);
    if (change === 'resolve') this.#endStale(node);
    const soonest = now + Math.max(SHORTEST_CHECK_SECONDS, node.watch.allowedSeconds);
    if (this.#timer === null || soonest < this.#nextCheckSeconds) this.#scheduleCheck();
  }

  onAlert(alert: Alert, sender: Sender | null = null): void {
    const { clocks, localNode } = this.#options;
    const name = nodeOfAlertId(alert.alert_id);
    if (!this.#isRunning) return;
    const raiser = raisedBy(alert, localNode);
    if (raiser === 'observer' && alert.metric === STALE_METRIC) this.#onPublished(name, alert, sender);
    // Each observer judges by its own arrivals, so the other alerts of observers are ignored.
    if (raiser !== 'other' || !this.#isObserving) return;
    const now = clocks.monotonicSeconds();
    const node = this.#nodeOf(name, now);
    if (!node) {
      this.#alerts.refuse('node limit reached', alert);
      return;
    }
    const isNode = sender === null || node.publisher.isNode(sender);
    const source = { node, sender, isNode };
    if ((!isNode && node.publisher.isRival(sender)) || !this.#alerts.mayChange(alert, source)) {
      if (sender) node.publisher.holdBack(sender, now, () => this.onAlert(alert, sender));
      this.#alerts.refuse('not sent by the participant that raised it', alert, sender);
      return;
    }
    if (isNode || node.address === null) node.lastSeenSeconds = now;
    this.#alerts.take(alert, source);
  }

  onOwnName(sender: Sender | null): void {
    if (!this.#isRunning) return;
    const now = this.#options.clocks.monotonicSeconds();
    for (const one of [OWN_SENDER, sender ?? UNKNOWN_SENDER])
      this.#own.takeStatus(one, NO_STAMP, false, now, Number.POSITIVE_INFINITY, () => undefined);
    this.#updateConflict(this.#options.localNode, this.#own, now);
  }

  onPublisherGone(name: string, participant: string | null, hasLeft: boolean): void {
    const { clocks, left, localNode, log } = this.#options;
    const node = this.#nodes.get(name);
    const now = clocks.monotonicSeconds();
    if (name === localNode && participant !== null) this.#own.remove(participant, now);
    if (!this.#isRunning || !node) return;
    const isWithoutPublisher = participant === null || node.publisher.remove(participant, now);
    this.#updateConflict(name, node.publisher, now);
    if (!hasLeft || !isWithoutPublisher) return;
    if (node.changes.take(now)) log('notice', 'remote node left the graph', { node: name });
    this.#setLeft(node, clocks.wallMilliseconds());
    // Newcomers are not restored after a restart.
    if (node.isEstablished) left.write(this.#leftNodes());
  }

  onApplianceGone(name: string, hasLeft: boolean): void {
    const { clocks } = this.#options;
    const node = this.#nodes.get(name);
    // Otherwise its publisher and its statuses decide.
    if (!this.#isRunning || !node || node.address !== null) return;
    if (hasLeft) this.#setLeft(node, clocks.wallMilliseconds());
    else node.watch.vanish(clocks.monotonicSeconds());
  }

  /** Raises alerts about stale nodes and forgets nodes without data for too long. */
  check(): void {
    const { clocks, live } = this.#options;
    const now = clocks.monotonicSeconds();
    const ruleSeconds = this.#rules.forgetAfterHours * 3600 || Number.POSITIVE_INFINITY;
    const isYoung = ({ name, spanSeconds }: RemoteNode): boolean => spanSeconds < YOUNG_SECONDS && !this.#isExpected(name);
    let young = [...this.#nodes.values()].filter((node) => node.staleAlert && isYoung(node)).length;
    this.#updateConflict(this.#options.localNode, this.#own, now);
    this.#postponeIfOffline(now);
    const newlyStale = new Set([...this.#nodes.values()].filter(({ watch }) => watch.check(now) !== null));
    for (const { name } of newlyStale) live.setStale(name, true);
    this.#continuePublished(now);
    for (const node of this.#nodes.values()) {
      node.publisher.succeed(now, node.silentSeconds);
      this.#updateConflict(node.name, node.publisher, now);
      const isNew = newlyStale.has(node);
      const staleSeconds = node.staleAlert ? null : node.watch.staleSeconds(now);
      const published = this.#published.get(node.name)?.alert;
      if (staleSeconds !== null && published) this.#continueStale(node, published);
      else if (staleSeconds !== null && (this.#isFirst() || staleSeconds - node.watch.allowedSeconds >= PUBLISHED_SECONDS)) {
        // New names and nodes that come and go must not fill the list of alerts; theirs are raised once there are fewer.
        const exceedsLimit = isYoung(node) && (young >= MAX_YOUNG_ALERTS || !this.#youngAlerts.take(now));
        if (!exceedsLimit && node.staleAlertLimit.take(now)) {
          this.#raiseStale(node, staleSeconds);
          if (isYoung(node)) young += 1;
        } else if (isNew)
          this.#rateLimitedLog('warning', 'stale remote node without alert: alert rate limit exceeded', { node: node.name });
      }
      const forgetSeconds = node.isEstablished ? ruleSeconds : Math.min(ruleSeconds, NEWCOMER_FORGET_SECONDS);
      if (now - node.lastSeenSeconds >= forgetSeconds) void this.forget(node.name, `no data for ${forgetSeconds / 3600} h`);
    }
    this.#updateCapacityAlert();
    this.#scheduleCheck();
  }

  /**
   * Forgets a remote node until it publishes again, and resolves its open alerts. Resolves with their number once they are stored; null:
   * the node is unknown.
   */
  async forget(name: string, reason: string): Promise<number | null> {
    const node = this.#nodes.get(name);
    if (!node) return null;
    const resolved = this.#remove(node);
    const count = resolved.length + (node.staleAlert ? 1 : 0) + (node.publisher.alert ? 1 : 0);
    this.#options.log('notice', 'remote node forgotten, its alerts resolved', { node: name, reason, alerts: count });
    this.#updateCapacityAlert();
    await Promise.all(resolved);
    return count;
  }

  /** Removes a node and resolves its alerts. Returns one promise per remote alert, fulfilled once its change is stored. */
  #remove(node: RemoteNode): Promise<void>[] {
    const { left, live, store } = this.#options;
    this.#nodes.delete(node.name);
    live.forget(node.name, node.isEstablished || node.wasKnown);
    if (!node.isEstablished && !node.wasKnown) store.dropNewcomer(node.name);
    if (node.staleAlert) this.#resolve(node.staleAlert);
    if (node.publisher.alert) this.#resolve(node.publisher.alert);
    if (node.leftMs !== null && node.isEstablished) left.write(this.#leftNodes());
    if (node.savedHome !== null) this.#options.addresses.write(this.#homes());
    return this.#alerts.end(node.name);
  }

  /** forget() with a message for the user who requested it. */
  async forgetOnRequest(name: string, requestedBy: string): Promise<{ readonly ok: boolean; readonly message: string }> {
    if (name === this.#options.localNode) return { ok: false, message: `${name} is this node itself and cannot be forgotten` };
    const alerts = await this.forget(name, `forgotten on request by ${requestedBy}`);
    if (alerts !== null) return { ok: true, message: `${name} forgotten; open alerts resolved: ${alerts}` };
    const known = [...this.#nodes.keys()];
    const listed = known.slice(0, NAMES_LISTED).join(', ') + (known.length > NAMES_LISTED ? ', …' : '');
    return { ok: false, message: `no remote node is named "${name}"; ${listed === '' ? 'there are none' : `remote nodes: ${listed}`}` };
  }

  /** Forgets every stale node. */
  async forgetStaleOnRequest(requestedBy: string): Promise<{ readonly ok: boolean; readonly message: string }> {
    const now = this.#options.clocks.monotonicSeconds();
    const stale = [...this.#nodes.values()].filter((node) => node.isStale(now));
    const alerts = await Promise.all(stale.map(({ name }) => this.forget(name, `stale, forgotten on request by ${requestedBy}`)));
    const resolved = alerts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
    return { ok: true, message: `stale nodes forgotten: ${stale.length}; open alerts resolved: ${resolved}` };
  }

  /** Sets the single timer to the earliest deadline of all nodes. */
  #scheduleCheck(notBeforeSeconds = SHORTEST_CHECK_SECONDS): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (!this.#isRunning || (this.#nodes.size === 0 && this.#own.alert === null)) return;
    const now = this.#options.clocks.monotonicSeconds();
    let wait = LONGEST_CHECK_SECONDS;
    for (const { watch } of this.#nodes.values()) wait = Math.min(wait, watch.deadlineSeconds - now);
    wait = Math.max(notBeforeSeconds, wait);
    this.#nextCheckSeconds = now + wait;
    this.#timer = setTimeout(() => this.#onTimer(), wait * 1000);
  }

  #onTimer(): void {
    const late = this.#options.clocks.monotonicSeconds() - this.#nextCheckSeconds;
    // Only once in a row, so that repeated delays cannot suppress the checks.
    this.#wasDelayed = late > DELAYED_SECONDS && !this.#wasDelayed;
    if (this.#wasDelayed) this.#scheduleCheck(DELAYED_SECONDS);
    else this.check();
  }

  #nodeOf(name: string, now: number): RemoteNode | null {
    const known = this.#nodes.get(name);
    if (known) return known;
    const evicted = this.#capacity.nodeToEvict(now);
    if (evicted) this.#evict(evicted, 'stale newcomer evicted: node limit reached');
    const isEstablished = this.#isExpected(name) && this.#capacity.hasCapacity(true);
    const node = this.#watch(name, [], null, { ...newcomerSince(now), isEstablished });
    if (node && this.#discoveryLines.take(now)) this.#options.log('info', 'remote node discovered', { node: name });
    return node;
  }

  #watch(name: string, recent: readonly Stamp[], expectedSinceSeconds: number | null, seen: SeenTimes): RemoteNode | null {
    if (!this.#capacity.hasCapacity(seen.isEstablished) || !isNodeName(name)) return null;
    const node = new RemoteNode(name, new NodeWatch(recent, expectedSinceSeconds, this.#rules.graceSeconds), seen);
    this.#nodes.set(name, node);
    node.wasKnown = this.#options.live.isKnown(name);
    this.#options.live.expect(name, seen.lastSeconds);
    return node;
  }

  /** Nodes named in the configuration are established at once. */
  #isExpected(name: string): boolean {
    return this.#rules.expectedNodes.includes(name);
  }

  #evict(node: RemoteNode, reason: string): void {
    this.#counts.evicted += 1;
    this.#rateLimitedLog('warning', reason, { node: node.name });
    void Promise.all(this.#remove(node));
  }

  #onNodeSeen(node: RemoteNode, now: number): void {
    const evicted = node.recordArrival(now) ? this.#capacity.establish(node, now) : null;
    if (evicted) this.#evict(evicted, 'stale remote node evicted: limit of established nodes reached');
    this.#onNodeReturned(node);
  }

  /** Raises or resolves the WARNING that the list of remote nodes is almost full. */
  #updateCapacityAlert(): void {
    const { clocks, localNode, publishAlerts } = this.#options;
    const value = this.#nodes.size;
    if (value >= SHORT_FROM === (this.#capacityAlert !== null)) return;
    const nowMs = clocks.wallMilliseconds();
    const alert_id = this.#capacityAlert?.alert_id ?? alertId(localNode, NODE_LIMIT_METRIC, this.#uniqueId(nowMs));
    const resolved = this.#capacityAlert !== null;
    const timestamp = isoUtc(nowMs);
    const alert: Alert = { alert_id, severity: 'WARNING', metric: NODE_LIMIT_METRIC, value, threshold: SHORT_FROM, timestamp, resolved };
    this.#capacityAlert = resolved ? null : alert;
    publishAlerts([alert]);
  }

  /** Whether a status counts as one of the node; otherwise it is counted, and possibly held back. */
  #isAdmitted(node: RemoteNode, status: HealthStatus, stamp: Stamp, sender: Sender, now: number): boolean {
    const { publisher, watch } = node;
    const isKnown = !publisher.isEstablished(sender) && watch.stamps.has(stamp);
    const admission = publisher.takeStatus(sender, stamp, isKnown, now, node.silentSeconds, () => this.onHealthStatus(status, sender));
    if (admission === 'accepted') {
      if (node.address !== null && node.address !== sender.address)
        this.#rateLimitedLog('notice', 'remote node has another address', {
          node: node.name,
          former: node.address,
          address: sender.address,
        });
      node.address = sender.address;
      if (node.isEstablished && node.savedHome !== publisher.home) {
        node.savedHome = publisher.home;
        this.#options.addresses.write(this.#homes());
      }
      return true;
    }
    if (admission === 'copy') this.#counts.duplicates += 1;
    if (admission === 'refused') {
      this.#counts.refused += 1;
      const fields = { node: node.name, address: sender.address, established: node.address };
      this.#rateLimitedLog('warning', 'remote status refused: another machine publishes under this name', fields);
    }
    this.#updateConflict(node.name, publisher, now);
    return false;
  }

  /** Raises or resolves the WARNING that several machines publish under one name. */
  #updateConflict(name: string, publisher: NodePublisher, now: number): void {
    const { clocks, live, log, publishAlerts } = this.#options;
    const addresses = publisher.conflict(now);
    live.setConflict(name, addresses);
    if (addresses.length === 0 && publisher.alert === null) return;
    const isRaise = publisher.alert === null;
    if (isRaise ? !publisher.alertLimit.take(now) || !this.#conflictAlerts.take(now) : addresses.length > 0 || publisher.isKept(now))
      return;
    const nowMs = clocks.wallMilliseconds();
    const alert: Alert = {
      alert_id: publisher.alert?.alert_id ?? alertId(name, NAME_CONFLICT_METRIC, this.#uniqueId(nowMs)),
      severity: 'WARNING',
      metric: NAME_CONFLICT_METRIC,
      value: isRaise ? addresses.length : CONFLICT_PUBLISHERS - 1,
      threshold: CONFLICT_PUBLISHERS,
      timestamp: isoUtc(nowMs),
      resolved: !isRaise,
    };
    publisher.alert = isRaise ? alert : null;
    const [established, ...others] = addresses;
    if (isRaise) log('warning', 'several machines publish under one node name', { node: name, established, others });
    publishAlerts([alert]);
    this.#scheduleCheck();
  }

  /** Continues a stored alert about a conflict; if this process has raised one meanwhile, the stored one is resolved. */
  #adoptConflict(publisher: NodePublisher, alert: Alert): void {
    if (publisher.alert) this.#resolve(alert);
    else publisher.adopt(alert, this.#options.clocks.monotonicSeconds());
  }

  #store(node: RemoteNode, status: HealthStatus, line: string, timestampMs: number, now: number): RecordCursor | null {
    const { store } = this.#options;
    const hertz = node.rateToRecord(now);
    if (hertz !== null) store.recordRate(node.name, hertz, timestampMs);
    return store.recordHealth(status, line, timestampMs, !node.isEstablished);
  }

  #skip(node: RemoteNode, arrival: Arrival): null {
    this.#counts.not_stored += 1;
    if (arrival === 'jump')
      this.#rateLimitedLog('warning', 'remote node clock jumps too often: some statuses shown but not stored', { node: node.name });
    return null;
  }

  #logWrongClock(node: RemoteNode, { timestamp }: HealthStatus): void {
    if (node.isWrongClockLogged) return;
    node.isWrongClockLogged = true;
    this.#options.log('warning', 'remote node clock is wrong: its statuses get the time of their arrival', { node: node.name, timestamp });
  }

  /** The clock stepped: corrects the times at which nodes left. */
  correct(correction: ClockCorrection): void {
    const left = [...this.#nodes.values()].filter(({ leftMs }) => leftMs !== null);
    for (const node of left) this.#setLeft(node, corrected(node.leftMs as number, correction));
    if (left.length > 0) this.#options.left.write(this.#leftNodes());
  }

  #setLeft(node: RemoteNode, leftMs: number): void {
    node.leftMs = leftMs;
    this.#options.live.setLeft(node.name, leftMs);
    this.#applyLeft(node);
  }

  /** After leaving in an orderly way, only an expected node becomes stale. */
  #applyLeft(node: RemoteNode): void {
    if (this.#isExpected(node.name)) {
      node.watch.expect(this.#options.clocks.monotonicSeconds());
      return;
    }
    node.watch.leave();
    this.#endStale(node);
  }

  #onNodeReturned(node: RemoteNode): void {
    if (node.leftMs === null) return;
    node.leftMs = null;
    this.#options.live.setLeft(node.name, null);
    if (node.isEstablished) this.#options.left.write(this.#leftNodes());
  }

  #homes(): Map<string, string> {
    return new Map([...this.#nodes.values()].flatMap(({ name, savedHome }) => (savedHome === null ? [] : [[name, savedHome]])));
  }

  #leftNodes(): Map<string, number> {
    const established = [...this.#nodes.values()].filter(({ isEstablished }) => isEstablished);
    return new Map(established.flatMap(({ leftMs, name }) => (leftMs === null ? [] : [[name, leftMs]])));
  }

  #raiseStale(node: RemoteNode, staleSeconds: number): void {
    const nowMs = this.#options.clocks.wallMilliseconds();
    node.staleAlert = makeStaleAlert(node, staleSeconds, this.#uniqueId(nowMs), nowMs);
    this.#options.publishAlerts([node.staleAlert]);
  }

  #endStale(node: RemoteNode): void {
    this.#options.live.setStale(node.name, false);
    if (node.staleAlert) this.#resolve(node.staleAlert);
    node.staleAlert = null;
  }

  /** Continues a stored alert about a stale node; if this process has raised one meanwhile, the stored one is resolved. */
  #adoptStale(node: RemoteNode, alert: Alert): void {
    if (node.staleAlert) {
      if (node.staleAlert.alert_id !== alert.alert_id) this.#resolve(alert);
      return;
    }
    node.staleAlert = alert;
    node.watch.adoptOpen();
    this.#options.live.setStale(node.name, true);
  }

  /** Whether this machine publishes the alerts about remote nodes; also if that is not known. */
  #isFirst(): boolean {
    return (this.#options.firstObserver() ?? this.#options.localNode) === this.#options.localNode;
  }

  /** Raises the alert of a stale node with the id under which another observer has raised it. */
  #continueStale(node: RemoteNode, alert: Alert): void {
    this.#adoptStale(node, alert);
    this.#options.publishAlerts([alert]);
  }

  /**
   * Another observer publishes an alert about a stale node. It may be changed from the host that raised it, or by the observer that
   * continues it. Without observing, the alerts that this machine has raised end with those of the observer.
   */
  #onPublished(name: string, alert: Alert, sender: Sender | null): void {
    const { clocks, firstObserver, publishAlerts } = this.#options;
    const known = this.#published.get(name);
    const appliance = sender?.appliance ?? null;
    const mayChange = known && sender && known.sender ? isSameHost(known.sender, sender) : appliance !== null || sender === null;
    if (!mayChange && (appliance === null || appliance !== firstObserver())) return;
    const node = this.#nodes.get(name);
    if (alert.resolved) {
      if (known?.alert.alert_id === alert.alert_id) this.#published.delete(name);
      if (this.#isObserving || !node?.staleAlert) return;
      publishAlerts([{ ...alert, alert_id: node.staleAlert.alert_id }]);
      node.staleAlert = null;
      void Promise.all(this.#remove(node));
      return;
    }
    const isValid = alert.alert_id.startsWith(`${name}/${STALE_METRIC}/`) && alert.severity === 'ERROR';
    if (!isValid || !isPlausible(Date.parse(alert.timestamp), clocks.wallMilliseconds())) return;
    if (!known && this.#published.size >= MAX_NODES) return;
    this.#published.set(name, { alert, sender });
    if (this.#isObserving && node && !node.staleAlert && node.watch.isStale) this.#continueStale(node, alert);
  }

  /** Without a network it is this machine that is cut off: nodes of other hosts are judged again some time after it has returned. */
  #postponeIfOffline(now: number): void {
    const others = [...this.#nodes.values()].filter(({ address, savedHome }) => ![null, THIS_HOST].includes(address ?? savedHome));
    if (!others.some(({ watch }) => now > watch.deadlineSeconds) || !this.#options.isOffline()) return;
    this.#rateLimitedLog('warning', 'no network: remote nodes not judged', { nodes: others.length });
    for (const { watch } of others) watch.postpone(now + DISCOVERY_SECONDS);
  }

  /** Once this machine has become the observer that publishes, it continues what its predecessors published, or resolves it. */
  #continuePublished(now: number): void {
    const { firstObserver, localNode } = this.#options;
    const isFirst = this.#isObserving && firstObserver() === localNode;
    this.#firstSinceSeconds = isFirst ? Math.min(this.#firstSinceSeconds, now) : Number.POSITIVE_INFINITY;
    // After a start, it takes a while until the other observers are discovered.
    if (now - this.#firstSinceSeconds < DISCOVERY_SECONDS) return;
    for (const [name, { alert }] of this.#published) {
      this.#published.delete(name);
      const known = this.#nodes.get(name);
      if (known?.staleAlert?.alert_id === alert.alert_id) continue;
      const isPresent = known !== undefined && known.address !== null && !known.watch.isStale;
      const node = known ?? (this.#youngAlerts.take(now) ? this.#watch(name, [], null, newcomerSince(now)) : null);
      if (node && !node.staleAlert && !isPresent) this.#continueStale(node, alert);
      else this.#resolve(alert);
    }
  }

  #resolve(alert: Alert): void {
    const { clocks, publishAlerts } = this.#options;
    publishAlerts([{ ...alert, value: 0, timestamp: isoUtc(clocks.wallMilliseconds()), resolved: true }]);
  }
}

function newcomerSince(seconds: number): SeenTimes {
  return { firstSeconds: seconds, lastSeconds: seconds, isEstablished: false };
}
