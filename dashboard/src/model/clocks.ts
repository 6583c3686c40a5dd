import type { NodeState } from '../types.ts';
import { clockOffsetMs } from './fleet.ts';

/** Estimates the wall clocks of the machine and of the shown node from timestamps and ages that the service reports. */
export class Clocks {
  /** The machine's wall clock minus performance.now(); null: not known yet. */
  #machineOffsetMs: number | null = null;
  /** The same for the node that is shown. */
  #shownOffsetMs: number | null = null;

  /** The machine's wall clock, or the browser's until it is known. */
  get machineNowMs(): number {
    return this.#machineOffsetMs === null ? Date.now() : performance.now() + this.#machineOffsetMs;
  }

  /** The shown node's wall clock, or the machine's until it is known. */
  get shownNowMs(): number {
    return this.#shownOffsetMs === null ? this.machineNowMs : performance.now() + this.#shownOffsetMs;
  }

  /** The machine's wall clock minus the browser's; null: not known yet. */
  get differenceMs(): number | null {
    return this.#machineOffsetMs === null ? null : this.machineNowMs - Date.now();
  }

  /** `statusMs`: when /status was received, in performance.now() time. A node is null if /status does not list it. */
  updateFromStatus(local: NodeState | null, shown: NodeState | null, statusMs: number): void {
    this.#machineOffsetMs = (local && clockOffsetMs(local, statusMs)) ?? this.#machineOffsetMs;
    this.#shownOffsetMs = shown && clockOffsetMs(shown, statusMs);
  }

  /** A clock cannot be behind a timestamp that it has produced, so a later timestamp moves the estimate forward. */
  updateFromMachineSample(timestampMs: number): void {
    if (timestampMs > this.machineNowMs) this.#machineOffsetMs = timestampMs - performance.now();
  }

  /** The same for the node that is shown. */
  updateFromShownSample(timestampMs: number): void {
    if (timestampMs > this.shownNowMs) this.#shownOffsetMs = timestampMs - performance.now();
  }
}
