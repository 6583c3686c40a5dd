/** `auto`: as long as there are few appliances, or as the elected one; see `observersOf`. */
export const OBSERVE_MODES = ['auto', 'always', 'never'] as const;
export type ObserveMode = (typeof OBSERVE_MODES)[number];

/** An edge-health service on the graph, by its `node_name`. */
export interface Appliance {
  readonly name: string;
  readonly mode: ObserveMode;
}

/** So many appliances each observe all others. Each of them costs 0.1 % of a core at 1 Hz: 0.5 % in all (docs/fleet.md). */
export const MOST_WITHOUT_ELECTION = 4;

/**
 * The names of those that receive the statuses of all others, the first of which publishes alerts about other nodes on /alerts. Where
 * there are many, those set to `always`; without any, the one that is first by name.
 */
export function observersOf(appliances: readonly Appliance[]): string[] {
  const named = (mode: ObserveMode): string[] => appliances.flatMap((one) => (one.mode === mode ? one.name : [])).sort();
  const always = named('always');
  const auto = named('auto');
  if (always.length + auto.length <= MOST_WITHOUT_ELECTION) return [...always, ...auto];
  return always.length > 0 ? always : auto.slice(0, 1);
}
