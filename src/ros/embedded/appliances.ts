import type { Appliance } from '../../core/observer.ts';
import { LIMITS } from '../../rtps/limits.ts';
import type { GuidPrefix } from '../../rtps/wire/protocol.ts';
import type { ExpectedAppliance } from '../graph.ts';

/** Limit of the appliances that are present, and of those that vanished. */
const MAX_APPLIANCES = LIMITS.participants;

interface Seen {
  readonly address: string;
  /** Monotonic seconds. */
  readonly sinceSeconds: number;
}

/**
 * The other appliances on the graph, by their participants, and those that vanished: every appliance knows them from discovery, whether it
 * observes or not, so that the next observer can expect all of them.
 */
export class Appliances {
  readonly #present = new Map<GuidPrefix, Appliance & Seen>();
  readonly #vanished = new Map<string, Seen & { readonly lostSeconds: number }>();

  /** `former`: those of the participant that a new one replaces, which may not discover all of them again; null: there was none. */
  constructor(former: Appliances | null, nowSeconds: number) {
    for (const [name, seen] of former ? former.#vanished : []) this.#vanished.set(name, seen);
    for (const { address, name, sinceSeconds } of former ? former.#present.values() : [])
      this.#vanished.set(name, { address, sinceSeconds, lostSeconds: nowSeconds });
  }

  /** The present ones. */
  all(): Appliance[] {
    return [...this.#present.values()];
  }

  /** All that have not left: the present ones and those that vanished. */
  expected(): ExpectedAppliance[] {
    const expected = new Map<string, ExpectedAppliance>();
    for (const [name, vanished] of this.#vanished) expected.set(name, { name, ...vanished });
    for (const { address, name, sinceSeconds } of this.#present.values())
      expected.set(name, { name, address, sinceSeconds, lostSeconds: null });
    return [...expected.values()];
  }

  /** Null: the participant is not an appliance. */
  nameOf(participant: GuidPrefix): string | null {
    return this.#present.get(participant)?.name ?? null;
  }

  participantsOf(names: readonly string[]): GuidPrefix[] {
    return [...this.#present].filter(([, { name }]) => names.includes(name)).map(([participant]) => participant);
  }

  add(participant: GuidPrefix, appliance: Appliance, address: string, nowSeconds: number): void {
    const before = this.#vanished.get(appliance.name);
    // Another host that announces the name of a robot must not hide that the robot vanished.
    if (before?.address === address) this.#vanished.delete(appliance.name);
    const known = this.#present.get(participant);
    if (!known && this.#present.size >= MAX_APPLIANCES) return;
    this.#present.set(participant, { ...appliance, address, sinceSeconds: known?.sinceSeconds ?? before?.sinceSeconds ?? nowSeconds });
  }

  /**
   * A participant is gone; `hasLeft`: it left in an orderly way. Returns the appliance that is gone with it, and whether that has left;
   * null: none, or another participant is still present under its name.
   */
  remove(participant: GuidPrefix, hasLeft: boolean, nowSeconds: number): { readonly name: string; readonly hasLeft: boolean } | null {
    const gone = this.#present.get(participant);
    if (!gone) return null;
    this.#present.delete(participant);
    const { address, name, sinceSeconds } = gone;
    const others = [...this.#present.values()].filter((other) => other.name === name);
    const isReplaced = others.some((other) => other.address === address);
    if (!hasLeft && !isReplaced && this.#vanished.size < MAX_APPLIANCES)
      this.#vanished.set(name, { address, sinceSeconds, lostSeconds: nowSeconds });
    return others.length > 0 ? null : { name, hasLeft: hasLeft && !this.#vanished.has(name) };
  }
}
