/** A place outside of this machine's data folder that takes copies, in a folder named after this machine. */
export interface CopyTarget {
  /** Sizes of the copies that are there, by name. */
  list(signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** Copies a file, under its name only when it is there whole. */
  put(path: string, name: string, signal: AbortSignal): Promise<void>;
  remove(names: readonly string[], signal: AbortSignal): Promise<void>;
}

/** What is wrong with a target, and what to do. */
export class CopyProblem extends Error {
  override readonly name = 'CopyProblem';
}
