/** Exit codes of `edge-health harness` beside those of a verdict (engine/judgement.ts): 0 PASS, 1 FAIL, 2 INCOMPLETE. */
export const EXIT = {
  ok: 0,
  /** `status`: a run is unfinished and nobody watches. */
  unwatched: 3,
  usage: 64,
  /** The service does not answer, or there is no such run. */
  unavailable: 69,
  /** Something that nobody foresaw; systemd tries again. Not 1, which is a verdict. */
  internal: 70,
  /** Somebody watches into this folder already. */
  inUse: 75,
  config: 78,
} as const;

/** Why a command does not do what it was asked to; the message says what to do. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}
