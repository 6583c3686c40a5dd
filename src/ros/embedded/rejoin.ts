import type { Log } from '../../core/ports.ts';
import type { GraphPlace } from '../graph.ts';
import { addressesOf } from './static-peers.ts';

/** A participant with its endpoints. */
export interface Joined {
  start(): Promise<void>;
  stop(): void;
}

export interface RejoiningSessionOptions<S extends Joined> {
  readonly place: GraphPlace;
  readonly log: Log;
  /** `staticPeers`: addresses for discovery by unicast; `former`: the session that is replaced; null: none. */
  readonly create: (staticPeers: readonly string[], former: S | null) => S;
}

const REJOIN_AGAIN_MS = 10_000;

/** Keeps the process on the graph: starts a session, and replaces it with a new one in `rejoin`. */
export class RejoiningSession<S extends Joined> {
  readonly #options: RejoiningSessionOptions<S>;
  #session: S | null = null;
  /** Resolved once, at the start. */
  #staticPeers: readonly string[] = [];
  #rejoinTimer: NodeJS.Timeout | null = null;
  #problem: string | null = null;
  #stopped = false;

  constructor(options: RejoiningSessionOptions<S>) {
    this.#options = options;
  }

  /** Null before `start` and after `stop`. */
  get session(): S | null {
    return this.#session;
  }

  /** Why there is no session on the graph; null: there is one. */
  get problem(): string | null {
    return this.#problem;
  }

  async start(): Promise<void> {
    const { create, log, place } = this.#options;
    this.#staticPeers = await addressesOf(place, log);
    const session = create(this.#staticPeers, null);
    await session.start();
    // `stop` may have been called during the start.
    if (this.#stopped) session.stop();
    else this.#session = session;
  }

  stop(): void {
    this.#stopped = true;
    if (this.#rejoinTimer) clearTimeout(this.#rejoinTimer);
    this.#session?.stop();
    this.#session = null;
  }

  /**
   * Joins again with a new GUID. Not every implementation accepts a changed address of a known participant; some would continue to
   * send to the removed one.
   */
  rejoin(reason: string): void {
    const { create, log } = this.#options;
    const old = this.#session;
    if (!old || this.#stopped) return;
    old.stop();
    const session = create(this.#staticPeers, old);
    this.#session = session;
    session.start().then(
      () => {
        this.#problem = null;
        log('notice', 'joined the ROS 2 graph again', { reason });
      },
      (error: Error) => {
        if (this.#stopped) return;
        this.#problem = `cannot join the ROS 2 graph: ${error.message}`;
        log('error', 'cannot join the ROS 2 graph; will retry', { error: error.message });
        this.#rejoinTimer = setTimeout(() => this.rejoin(reason), REJOIN_AGAIN_MS);
      },
    );
  }
}
