import type { GraphNames } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import { isProbeTopic } from '../names.ts';
import type { SubscribedTopics } from '../subscription.ts';

export interface FollowedTopic {
  readonly topic: string;
  readonly kind: 'health' | 'alert';
}

/** What is published on the graph. */
export type GraphTopics = readonly { readonly name: string; readonly types: readonly string[] }[];

/** How a publisher's offer is numbered in rmw/types.h. */
export interface Offer {
  readonly reliability: number;
  readonly durability: number;
}

/** Topics of other namespaces that are taken in. */
export const MAX_FOLLOWED_TOPICS = 64;

/** What a subscription asks for: as much as the publishers that it is for offer. */
export type Asking = 'transient local' | 'volatile' | 'best effort';

const RELIABLE = 1;
const TRANSIENT_LOCAL = 1;

/**
 * The topics to listen to: the own ones, and whatever else on the graph ends in /health_status or /alerts and has our type. The
 * own ones come first, the others in the order of their names.
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

/** The topics of a subscription: those named, and of the kinds that are not named all, by their type, in the order of their names. */
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

/** The most that a subscription may ask of a publisher: of one that asks for more it gets nothing, and the publisher logs a warning. */
export function askingFor({ reliability, durability }: Offer): Asking {
  if (reliability !== RELIABLE) return 'best effort';
  return durability === TRANSIENT_LOCAL ? 'transient local' : 'volatile';
}
