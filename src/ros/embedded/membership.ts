import type { Log } from '../../core/ports.ts';
import type { GraphPlace } from '../graph.ts';
import { addressesOf } from './static-peers.ts';

/** A participant with what is on it. */
export interface Joined {
  start(): Promise<void>;
  stop(): void;
}

export interface MembershipOptions<S extends Joined> {
  readonly place: GraphPlace;
  readonly log: Log;
  /** `staticPeers`: addresses that discovery asks by unicast; `former`: what it takes over from, null at first. */
  readonly create: (staticPeers: readonly string[], former: S | null) => S;
}

const REJOIN_AGAIN_MS = 10_000;

/** Being on the graph as one participant after the other. */
export class Membership<S extends Joined> {
  readonly #options: MembershipOptions<S>;
  #session: S | null = null;
  /** As the names of the configuration were last resolved. */
  #staticPeers: readonly string[] = [];
  #rejoinTimer: NodeJS.Timeout | null = null;
  #problem: string | null = null;
  #stopped = false;

  constructor(options: MembershipOptions<S>) {
    this.#options = options;
  }

  /** Null before `start` and after `stop`. */
  get session(): S | null {
    return this.#session;
  }

  /** Why it is not on the graph just now; null: it is. */
  get problem(): string | null {
    return this.#problem;
  }

  async start(): Promise<void> {
    const { create, log, place } = this.#options;
    this.#staticPeers = await addressesOf(place, log);
    const session = create(this.#staticPeers, null);
    await session.start();
    // It may have been stopped meanwhile.
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
   * Joins again under another identity: others cannot be told that a known participant has moved, and would go on sending to an address
   * that is gone.
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
        log('error', 'cannot join the ROS 2 graph; trying again', { error: error.message });
        this.#rejoinTimer = setTimeout(() => this.rejoin(reason), REJOIN_AGAIN_MS);
      },
    );
  }
}
