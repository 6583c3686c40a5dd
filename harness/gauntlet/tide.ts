import { writeFileSync } from 'node:fs';
import type { Container } from '../../testkit/container/container.ts';
import type { Turn } from './account.ts';

/** The file system whose usage is measured: small and in memory, so that nothing else fills it. */
export const SHORE = '/srv/tide';
const MEGABYTE = 1024 * 1024;
const HIGH = 0.7;
const LOW = 0.1;
/** Long enough for a restart in between. */
const TURN_SECONDS = 3;

/** A steady cause of alerts: a file system that fills beyond its threshold and empties again, every few seconds. */
export class Tide {
  readonly turns: Turn[] = [];
  readonly #machine: Container;
  #timer: NodeJS.Timeout | null = null;

  constructor(machine: Container) {
    this.#machine = machine;
  }

  get isHigh(): boolean {
    return this.turns.at(-1)?.isHigh ?? false;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.turn(), TURN_SECONDS * 1000);
    this.turn();
  }

  /** Where it stands it stays. */
  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Turns now, or to the level given. */
  turn(isHigh = !this.isHigh): void {
    const pid = this.#machine.pid1;
    if (pid === null) return; // The machine is off: nothing fills.
    const atMs = Date.now();
    try {
      writeFileSync(`/proc/${pid}/root${SHORE}/water`, Buffer.alloc((isHigh ? HIGH : LOW) * MEGABYTE));
      this.turns.push({ atMs, isHigh });
    } catch {
      // It is going down, or not yet up.
    }
  }
}
