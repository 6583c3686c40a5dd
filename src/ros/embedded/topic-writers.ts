import type { LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import type { Change } from '../../rtps/endpoints/writer.ts';
import type { Participant } from '../../rtps/participant.ts';
import { type GraphOptions, healthQos, TOPIC_DEPTH } from '../graph.ts';
import { ALERT, ALERT_ARRAY, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import type { PublishedTopic } from '../publisher.ts';
import { topicOf, typeHashData } from './dds-names.ts';

const TOPICS: Readonly<Record<PublishedTopic, { readonly type: MessageType; readonly transientLocal: boolean }>> = {
  healthStatus: { type: HEALTH_STATUS, transientLocal: true },
  alerts: { type: ALERT, transientLocal: true },
  openAlerts: { type: ALERT_ARRAY, transientLocal: true },
  shutdownStatus: { type: SHUTDOWN_STATUS, transientLocal: true },
  // As diagnostic_updater publishes it.
  diagnostics: { type: DIAGNOSTIC_ARRAY, transientLocal: false },
};

/** Creates the writer of a topic. `history`: the samples of the writer that it replaces, so that late joiners still get them. */
export function createTopicWriter(
  participant: Participant,
  { names, publishSeconds }: Pick<GraphOptions, 'names' | 'publishSeconds'>,
  topic: PublishedTopic,
  history: readonly Change[],
): LocalWriter {
  const { type, transientLocal } = TOPICS[topic];
  const writer = participant.createWriter({
    topic: topicOf(names.topics[topic]),
    type: type.ddsName,
    transientLocal,
    depth: TOPIC_DEPTH[topic],
    isPeriodic: topic === 'healthStatus' || topic === 'diagnostics',
    ...(topic === 'healthStatus' ? healthQos(publishSeconds) : {}),
    userData: typeHashData(type),
  });
  for (const { payload, timestampMs } of history) participant.write(writer, payload, { timestampMs });
  return writer;
}
