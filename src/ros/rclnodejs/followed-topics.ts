import type { GraphNames } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import { isProbeTopic } from '../names.ts';
import type { SubscribedTopics } from '../subscription.ts';

export interface FollowedTopic {
  readonly topic: string;
  readonly kind: 'health' | 'alert';
}

/** The topics of the graph with their types. */
export type GraphTopics = readonly { readonly name: string; readonly types: readonly string[] }[];

/** A publisher's QoS, with the numbers of rmw/types.h. */
export interface Offer {
  readonly reliability: number;
  readonly durability: number;
}

/** Limit of subscribed topics. */
export const MAX_FOLLOWED_TOPICS = 64;

/** The QoS class of a subscription, equal to that of the publishers it is for. */
export type QosClass = 'transient local' | 'volatile' | 'best effort';

const RELIABLE = 1;
const TRANSIENT_LOCAL = 1;

/**
 * The topics to subscribe to: those of this process first, then all others on the graph that end in /health_status or /alerts and have the
 * matching type, sorted by name.
 */
export function topicsToFollow(graph: GraphTopics, names: GraphNames): FollowedTopic[] {
  const own: FollowedTopic[] = [
    { topic: names.topics.healthStatus, kind: 'health' },
    { topic: names.topics.alerts, kind: 'alert' },
  ];
  const others: FollowedTopic[] = [];
  for (const { name, types } of [...graph].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (own.some(({ topic }) => topic === name) || isProbeTopic(name)) continue;
    if (name.endsWith('/health_status') && types.includes(HEALTH_STATUS.rosName)) others.push({ topic: name, kind: 'health' });
    if (name.endsWith('/alerts') && types.includes(ALERT.rosName)) others.push({ topic: name, kind: 'alert' });
  }
  return [...own, ...others].slice(0, MAX_FOLLOWED_TOPICS);
}

/** The topics of a `GraphSubscription`: the configured ones; for a kind without one, all topics of its type, sorted by name. */
export function subscribedTopics(graph: GraphTopics, { alerts, healthStatus }: SubscribedTopics): FollowedTopic[] {
  const topics: FollowedTopic[] = [];
  if (healthStatus !== null) topics.push({ topic: healthStatus, kind: 'health' });
  if (alerts !== null) topics.push({ topic: alerts, kind: 'alert' });
  for (const { name, types } of [...graph].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (isProbeTopic(name)) continue;
    if (healthStatus === null && types.includes(HEALTH_STATUS.rosName)) topics.push({ topic: name, kind: 'health' });
    if (alerts === null && types.includes(ALERT.rosName)) topics.push({ topic: name, kind: 'alert' });
  }
  return topics.slice(0, MAX_FOLLOWED_TOPICS);
}

/** The highest QoS class that matches a publisher's offer. With a higher one the two do not match, and the publisher logs a warning. */
export function qosClassOf({ reliability, durability }: Offer): QosClass {
  if (reliability !== RELIABLE) return 'best effort';
  return durability === TRANSIENT_LOCAL ? 'transient local' : 'volatile';
}
