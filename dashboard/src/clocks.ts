import { clockOffsetMs } from './fleet.ts';
import type { NodeState } from './types.ts';

/** The wall clocks of the machine and of the node that is shown, as far as the service told them; all in milliseconds. */
export class Clocks {
  /** The machine's wall clock minus performance.now(); null: it is not known. */
  #machineOffsetMs: number | null = null;
  /** The same of the node that is shown. */
  #shownOffsetMs: number | null = null;

  /** The machine's wall clock now; this device's as long as it is not known. */
  get machineNowMs(): number {
    return this.#machineOffsetMs === null ? Date.now() : performance.now() + this.#machineOffsetMs;
  }

  /** The wall clock of the node that is shown; the machine's as long as it is not known. */
  get shownNowMs(): number {
    return this.#shownOffsetMs === null ? this.machineNowMs : performance.now() + this.#shownOffsetMs;
  }

  /** The machine's wall clock minus this device's; null: not known. */
  get differenceMs(): number | null {
    return this.#machineOffsetMs === null ? null : this.machineNowMs - Date.now();
  }

  /** /status told of these nodes at `toldMs`, on the clock of performance.now(); null: it does not list it. */
  told(local: NodeState | null, shown: NodeState | null, toldMs: number): void {
    this.#machineOffsetMs = (local && clockOffsetMs(local, toldMs)) ?? this.#machineOffsetMs;
    this.#shownOffsetMs = shown && clockOffsetMs(shown, toldMs);
  }

  /** A measurement of the machine bears this time: no clock is behind what it has said. */
  receivedFromMachine(timestampMs: number): void {
    if (timestampMs > this.machineNowMs) this.#machineOffsetMs = timestampMs - performance.now();
  }

  /** The same of the node that is shown. */
  receivedFromShown(timestampMs: number): void {
    if (timestampMs > this.shownNowMs) this.#shownOffsetMs = timestampMs - performance.now();
  }
}
