/** What an endpoint offers or asks for (DDS 1.4, 2.2.3), as far as it decides whether two of them match. */
export interface Qos {
  readonly reliable: boolean;
  /** DURABILITY: 0 volatile, 1 transient local, 2 transient, 3 persistent. */
  readonly durability: number;
  readonly deadlineSeconds: number;
  /** LIVELINESS: 0 automatic, 1 manual by participant, 2 manual by topic. */
  readonly liveliness: number;
  readonly livelinessLeaseSeconds: number;
  /** OWNERSHIP: 0 shared, 1 exclusive. */
  readonly ownership: number;
  readonly partitions: readonly string[];
}

/** What this participant's own endpoints are, apart from reliability and durability. */
export const OWN_QOS: Omit<Qos, 'reliable' | 'durability'> = {
  deadlineSeconds: Number.POSITIVE_INFINITY,
  liveliness: 0,
  livelinessLeaseSeconds: Number.POSITIVE_INFINITY,
  ownership: 0,
  partitions: [],
};

/**
 * Whether a writer's offer satisfies a reader's request (DDS 1.4, 2.2.3, "RxO"): null when it does, else which policy does not, by the
 * name that ROS 2 gives it.
 */
export function incompatiblePolicy(offered: Qos, requested: Qos): string | null {
  if (requested.reliable && !offered.reliable) return 'RELIABILITY';
  if (requested.durability > offered.durability) return 'DURABILITY';
  if (requested.deadlineSeconds < offered.deadlineSeconds) return 'DEADLINE';
  if (requested.liveliness > offered.liveliness || requested.livelinessLeaseSeconds < offered.livelinessLeaseSeconds) return 'LIVELINESS';
  if (requested.ownership !== offered.ownership) return 'OWNERSHIP';
  if (!sharePartition(offered.partitions, requested.partitions)) return 'PARTITION';
  return null;
}

/** No partition is the one named ''. Patterns beyond a lone * are not known to ROS 2 and match nothing here. */
function sharePartition(a: readonly string[], b: readonly string[]): boolean {
  const ours = a.length > 0 ? a : [''];
  const theirs = b.length > 0 ? b : [''];
  return ours.some((name) => theirs.includes(name) || theirs.includes('*')) || ours.includes('*');
}
