/** The QoS policies of an endpoint that decide whether a writer and a reader match (DDS 1.4, 2.2.3). */
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

/** QoS of local endpoints, apart from reliability and durability, and the deadline and the lease of some writers. */
export const OWN_QOS: Omit<Qos, 'reliable' | 'durability'> = {
  deadlineSeconds: Number.POSITIVE_INFINITY,
  liveliness: 0,
  livelinessLeaseSeconds: Number.POSITIVE_INFINITY,
  ownership: 0,
  partitions: [],
};

/**
 * Whether a writer's offer satisfies a reader's request (DDS 1.4, 2.2.3, "RxO"): null when it does, otherwise the ROS 2 name of the
 * first incompatible policy.
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

/** An empty list means the partition ''. The only supported pattern is a single *; ROS 2 uses no others. */
function sharePartition(ofWriter: readonly string[], ofReader: readonly string[]): boolean {
  const offered = ofWriter.length > 0 ? ofWriter : [''];
  const requested = ofReader.length > 0 ? ofReader : [''];
  return offered.some((name) => requested.includes(name) || requested.includes('*')) || offered.includes('*');
}
