/** `auto`: observe while there are few appliances, or as the elected one; see `observersOf`. */
export const OBSERVE_MODES = ['auto', 'always', 'never'] as const;
export type ObserveMode = (typeof OBSERVE_MODES)[number];

/** An edge-health service on the graph, by its `node_name`. */
export interface Appliance {
  readonly name: string;
  readonly mode: ObserveMode;
}

/** Up to this many appliances, each observes all others. Each costs 0.1 % of a core at 1 Hz: 0.5 % in total (docs/fleet/scaling.md). */
export const MOST_WITHOUT_ELECTION = 4;

/**
 * Names of the nodes that receive the statuses of all others; the first one publishes alerts about other nodes on /alerts. Among many
 * appliances these are the ones set to `always`, or without any the first by name.
 */
export function observersOf(appliances: readonly Appliance[]): string[] {
  const named = (mode: ObserveMode): string[] => appliances.flatMap((one) => (one.mode === mode ? one.name : [])).sort();
  const always = named('always');
  const auto = named('auto');
  if (always.length + auto.length <= MOST_WITHOUT_ELECTION) return [...always, ...auto];
  return always.length > 0 ? always : auto.slice(0, 1);
}
