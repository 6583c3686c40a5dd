import { rateLimited } from '../../core/platform/log.ts';
import type { Log } from '../../core/ports.ts';
import { retryPauseMs } from '../../core/time/time.ts';
import { type Network, UdpNetwork } from '../../rtps/net/network.ts';
import type { ParticipantOptions } from '../../rtps/participant.ts';
import type { DiscoverySettings } from '../graph.ts';
import { type ResolveName, StaticPeers } from './static-peers.ts';

export interface JoinOptions {
  readonly discovery: DiscoverySettings;
  readonly log: Log;
  readonly monotonicSeconds: () => number;
  readonly wallMilliseconds: () => number;
  /** UDP by default; replaced in tests. */
  readonly network?: Network;
  /** The participant's default; another one in tests. */
  readonly leaseSeconds?: number;
  /** The system's resolver by default; replaced in tests. */
  readonly resolve?: ResolveName;
}

/** The options of a participant that do not depend on the nodes and endpoints of its session. */
export type SessionParticipant = Omit<ParticipantOptions, 'name' | 'onRemoteWriter' | 'onRemoteReader' | 'onRemoteGone'>;

/** A participant with its endpoints. */
export interface Joined {
  start(): Promise<void>;
  stop(): void;
}

/** `former`: the session that is replaced; null: none. */
export type CreateSession<S extends Joined> = (participant: SessionParticipant, former: S | null) => S;

/** USER_DATA of a participant: the SROS2 enclave, which ROS 2 tools display. */
const ENCLAVE_DATA = 'enclave=/;';

/** Keeps the process on the graph: starts a session, replaces it with a new one in `rejoin`, and repeats what fails with growing pauses. */
export class RejoiningSession<S extends Joined> {
  readonly #options: JoinOptions;
  readonly #create: CreateSession<S>;
  readonly #participant: Omit<SessionParticipant, 'prefix' | 'staticPeers'>;
  #session: S | null = null;
  readonly #staticPeers: StaticPeers;
  #rejoinTimer: NodeJS.Timeout | null = null;
  /** A session is being started. */
  #isJoining = false;
  /** Consecutive ones. */
  #failures = 0;
  /** The reason of a rejoin that was requested meanwhile; null: none. */
  #nextReason: string | null = null;
  #problem: string | null = null;
  #stopped = false;

  constructor(options: JoinOptions, create: CreateSession<S>) {
    const { leaseSeconds, log, monotonicSeconds, network, discovery, resolve, wallMilliseconds } = options;
    this.#options = options;
    this.#create = create;
    this.#staticPeers = new StaticPeers(discovery, log, resolve);
    this.#participant = {
      domain: discovery.domainId,
      userData: ENCLAVE_DATA,
      network: network ?? new UdpNetwork(isLoopbackOnly(discovery)),
      localhostOnly: discovery.discoveryRange === 'LOCALHOST',
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
      log: rateLimited(log, monotonicSeconds),
      monotonicSeconds,
      wallMilliseconds,
      onAddressLost: () => this.rejoin('an address of this machine was removed'),
    };
  }

  /** Null before `start` and after `stop`. While there is a problem, it is not on the graph. */
  get session(): S | null {
    return this.#session;
  }

  /** Why there is no session on the graph; null: there is one. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Resolves after the first attempt; if it failed, `problem` has the reason, and the session keeps what is published until it joins. */
  start(): Promise<void> {
    return this.#join(null, null);
  }

  stop(): void {
    this.#stopped = true;
    this.#staticPeers.stop();
    if (this.#rejoinTimer) clearTimeout(this.#rejoinTimer);
    this.#session?.stop();
    this.#session = null;
  }

  /**
   * Joins again with a new GUID. Not every implementation accepts a changed address of a known participant; some would continue to
   * send to the removed one. All sessions use the same network, which has one set of sockets, so while a session is being started the
   * next one has to wait.
   */
  rejoin(reason: string): void {
    if (this.#isJoining) this.#nextReason = reason;
    else if (this.#session && !this.#stopped) void this.#join(this.#session, reason);
  }

  /** `reason` null: for the first time. */
  async #join(old: S | null, reason: string | null): Promise<void> {
    const { log } = this.#options;
    if (this.#rejoinTimer) clearTimeout(this.#rejoinTimer);
    this.#isJoining = true;
    void this.#staticPeers.start(); // Not awaited: without a network, a lookup takes many seconds.
    old?.stop();
    const session = this.#newSession(old);
    this.#session = session;
    const error = await session.start().then(
      () => null,
      (failure: Error) => failure,
    );
    this.#isJoining = false;
    if (this.#stopped) return;
    if (error) {
      const problem = `cannot join the ROS 2 graph: ${error.message}`;
      if (problem !== this.#problem) log('error', 'cannot join the ROS 2 graph; will retry', { error: error.message });
      this.#problem = problem;
      this.#failures += 1;
      this.#rejoinTimer = setTimeout(() => this.rejoin(reason ?? 'the first attempt failed'), retryPauseMs(this.#failures));
    } else {
      this.#problem = null;
      this.#failures = 0;
      if (reason !== null) log('notice', 'joined the ROS 2 graph again', { reason });
    }
    const next = this.#nextReason;
    this.#nextReason = null;
    if (next !== null) this.rejoin(next);
  }

  #newSession(former: S | null): S {
    return this.#create({ ...this.#participant, prefix: newPrefix(), staticPeers: this.#staticPeers.addresses }, former);
  }
}

/** A unique GUID prefix (8.2.4.2), beginning with the vendor id (9.3.1.5). It is not secret, so Math.random suffices. */
export function newPrefix(): string {
  const octets = Buffer.alloc(12);
  octets.writeUInt32BE((process.pid ^ (Date.now() >>> 0)) >>> 0, 2);
  for (let i = 6; i < 12; i += 1) octets[i] = Math.floor(Math.random() * 256);
  return octets.toString('hex');
}

/** Whether only loopback is used: with LOCALHOST, unless there are static peers. */
export function isLoopbackOnly({ discoveryRange, staticPeers }: DiscoverySettings): boolean {
  return discoveryRange === 'LOCALHOST' && staticPeers.length === 0;
}
