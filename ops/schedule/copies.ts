import type { OpsDocument } from '../../src/http/api/ops-schema.ts';

export interface CopyFiles {
  saveLive(document: OpsDocument): void;
  saveDurable(document: OpsDocument): Promise<void>;
}

export interface CopiesOptions {
  readonly files: CopyFiles;
  readonly monotonicSeconds: () => number;
  /** What each copy is to have now. */
  readonly live: () => OpsDocument;
  readonly durable: () => OpsDocument;
}

/** The live copy is renewed at least this often, the durable one as often where nothing calls for it. */
const LIVE_SECONDS = 45;
const DURABLE_SECONDS = 300;
/** Jobs that end together are written together. */
const GATHER_SECONDS = 2;

/** Decides when the copies of the state are written: the live one costs nothing, each write of the durable one wears out flash. */
export class Copies {
  readonly #options: CopiesOptions;
  /** Something changed that the live copy does not have. */
  isDirty = false;
  #liveAt = Number.NEGATIVE_INFINITY;
  #durableAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #hasEnded = false;

  constructor(options: CopiesOptions) {
    this.#options = options;
  }

  /** Writes what is due. */
  beat(): void {
    const now = this.#options.monotonicSeconds();
    if (this.isDirty || now - this.#liveAt >= LIVE_SECONDS) this.saveLive();
    if (now - this.#durableAt >= DURABLE_SECONDS) void this.#saveDurably();
  }

  saveLive(): void {
    this.isDirty = false;
    this.#liveAt = this.#options.monotonicSeconds();
    this.#options.files.saveLive(this.#options.live());
  }

  saveDurablySoon(): void {
    if (!this.#hasEnded) this.#timer ??= setTimeout(() => void this.#saveDurably(), GATHER_SECONDS * 1000).unref();
  }

  saveBoth(): void {
    this.saveLive();
    void this.#saveDurably();
  }

  /** Resolves when both have everything, or cannot be written. */
  end(): Promise<void> {
    this.#hasEnded = true;
    this.saveLive();
    return this.#saveDurably();
  }

  #saveDurably(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#durableAt = this.#options.monotonicSeconds();
    return this.#options.files.saveDurable(this.#options.durable());
  }
}
