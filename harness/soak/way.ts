import type { Alert } from '../../src/core/alert.ts';

/** The time stamps that are counted, in ms since the epoch; `toMs` is not among them. Nothing counts before `fromMs` is set. */
export interface Window {
  fromMs: number;
  toMs: number;
}

/** A change of an episode, for comparison. */
export function changeOf({ resolved, severity }: Pick<Alert, 'resolved' | 'severity'>): string {
  return resolved ? `${severity} resolved` : severity;
}

/** What was heard by one way. */
export class Way {
  readonly #window: Window;
  readonly #changes = new Map<string, { readonly told: Set<string>; readonly changes: string[] }>();
  readonly #earlier = new Set<string>();
  #count = 0;
  #sameStamp = 0;
  #lastMs = Number.NaN;
  #heard = 0;

  constructor(window: Window) {
    this.#window = window;
  }

  /** Statuses with a time stamp of the window. */
  get count(): number {
    return this.#count;
  }

  get sameStamp(): number {
    return this.#sameStamp;
  }

  /** All statuses, whenever stamped. */
  get heard(): number {
    return this.#heard;
  }

  /** Changes of each episode in the order of their arrival, by alert id. */
  get episodes(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.#changes].map(([id, { changes }]) => [id, changes]));
  }

  /** The last change of each episode that there is. */
  last(id: string): string | undefined {
    return this.#changes.get(id)?.changes.at(-1);
  }

  get episodeIds(): readonly string[] {
    return [...this.#changes.keys()];
  }

  onStatus(timestamp: string): void {
    const ms = Date.parse(timestamp);
    this.#heard += 1;
    if (ms < this.#window.fromMs || ms >= this.#window.toMs) return;
    this.#count += 1;
    if (ms === this.#lastMs) this.#sameStamp += 1;
    this.#lastMs = ms;
  }

  /** Of episodes that began in the window: of earlier ones not everybody heard the begin. The same change may come once more to who joins anew. */
  onAlert(alert: Pick<Alert, 'alert_id' | 'resolved' | 'severity' | 'timestamp'>): void {
    const isKnown = this.#changes.has(alert.alert_id);
    if (!isKnown && !(Date.parse(alert.timestamp) >= this.#window.fromMs)) this.#earlier.add(alert.alert_id);
    if (this.#earlier.has(alert.alert_id)) return;
    const change = changeOf(alert);
    const episode = this.#changes.get(alert.alert_id) ?? { told: new Set(), changes: [] };
    this.#changes.set(alert.alert_id, episode);
    const key = `${alert.timestamp} ${change}`;
    if (episode.told.has(key)) return;
    episode.told.add(key);
    episode.changes.push(change);
  }
}
