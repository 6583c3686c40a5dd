/** From one `minute`, `begin` or `resume` to the next `minute`: what was heard in it, and how long it was. */
export interface Stretch {
  /** On the run's axis. */
  readonly from: number;
  readonly to: number;
  /** CLOCK_MONOTONIC, less what the watcher itself missed. */
  readonly awakeSeconds: number;
  /** With it. */
  readonly monotonicSeconds: number;
  readonly stalledSeconds: number;
  /** The first of a watched span: after `begin` or `resume`. */
  readonly fresh: boolean;
  readonly hertz: number;
  /** Wall clock − axis in seconds, at the end and, where the clock was set, before that, newest first. */
  readonly wallOffsets: readonly number[];
}
