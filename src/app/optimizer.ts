import { setFlagsFromString } from 'node:v8';
import type { Log } from '../core/ports.ts';
import { RateMeter } from './live.ts';

/** Statuses of remote nodes per second at which V8's optimizing compiler becomes worth its 7 MB. */
export const OPTIMIZE_FROM_HERTZ = 50;
/**
 * The rate is computed once per this many statuses, which take a minute at that rate. The old statuses that many nodes send at a join are
 * fewer.
 */
const CHECK_EVERY = 60 * OPTIMIZE_FROM_HERTZ;

function enableOptimizer(): void {
  setFlagsFromString('--opt');
  // With hundreds of nodes, collecting the old generation early takes a third of the CPU time.
  setFlagsFromString('--no-optimize-for-size');
}

/** Enables V8's optimizing compiler, which `bin/edge-health` disables to save memory, once many remote nodes publish. */
export class Optimizer {
  readonly #log: Log;
  readonly #monotonicSeconds: () => number;
  readonly #enable: () => void;
  readonly #rate = new RateMeter();
  #statuses = 0;
  #isEnabled = false;

  constructor(log: Log, monotonicSeconds: () => number, enable = enableOptimizer) {
    this.#log = log;
    this.#monotonicSeconds = monotonicSeconds;
    this.#enable = enable;
  }

  /** Called with every status of a remote node. */
  count(): void {
    if (this.#isEnabled) return;
    const now = this.#monotonicSeconds();
    this.#rate.count(now);
    this.#statuses += 1;
    if (this.#statuses % CHECK_EVERY !== 0) return;
    const hertz = this.#rate.hertz(now) ?? 0;
    if (hertz < OPTIMIZE_FROM_HERTZ) return;
    this.#isEnabled = true;
    this.#enable();
    this.#log('info', 'optimizing compiler enabled for many remote nodes', { statuses_per_second: Math.round(hertz) });
  }
}
