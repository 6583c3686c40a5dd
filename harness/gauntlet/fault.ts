import type { Suite } from '../../testkit/container/images.ts';
import type { Arena } from './arena.ts';
import type { Figures } from './observation.ts';

/** The machine that a fault wants. Faults that want the same one are tried on it one after the other. */
export interface BootWish {
  /** Keys of the configuration over those of `arena-config.ts`; lists and values replace, mappings are merged. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** A disk of its own for a folder, which can be filled and frozen. */
  readonly disk?: { readonly path: string; readonly megabytes: number };
  /** Files that are there before it boots: text by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** An interface in a network with a neighbour, instead of loopback alone; `lossy`: over a wire that can be made bad. */
  readonly lan?: 'good' | 'lossy';
  /** The Debian it must be; else the one of the command line. */
  readonly suite?: Suite;
  /** Whether a subscriber on DDS listens to the topics; yes by default. */
  readonly topic?: boolean;
  /** Whether there is a steady cause of alerts (see tide.ts); yes by default. */
  readonly tide?: boolean;
  /** It shall not be tried on a machine that had another fault, nor leave one for the next. */
  readonly alone?: boolean;
}

export interface Fault {
  /** Lower case with hyphens; --only takes it. */
  readonly name: string;
  /** --only takes it as well. */
  readonly group: string;
  /** Whether it belongs to the part that runs in at most five minutes. */
  readonly core: boolean;
  /** What must hold during and after, in a sentence. */
  readonly expected: string;
  readonly boot?: BootWish;
  /**
   * Begins on a machine that is proven well. Says with `arena.must` what has to hold, and ends with `arena.finish`, which adds what has to
   * hold after every fault. A check that fails is noted and the fault goes on; what is thrown ends it.
   */
  run(arena: Arena): Promise<Figures>;
}
