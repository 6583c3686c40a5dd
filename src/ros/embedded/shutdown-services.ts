import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import type { Participant } from '../../rtps/participant.ts';
import { type GuidPrefix, prefixOf } from '../../rtps/wire/protocol.ts';
import type { GraphOptions } from '../graph.ts';
import { SAFE_SHUTDOWN } from '../interfaces.generated.ts';
import { replyTopicOf } from './dds-names.ts';
import type { GraphNode } from './node-graph.ts';
import { ServiceServer } from './service-server.ts';

/** The safe shutdown service under its shared name and under the node's own, and the other participants that offer the shared name. */
export class ShutdownServices {
  readonly #participant: Participant;
  readonly #sharedReplyTopic: string;
  readonly #servers: readonly ServiceServer[];
  readonly #others = new Set<GuidPrefix>();

  constructor(participant: Participant, { listener, log, names }: GraphOptions) {
    const answer = listener.onSafeShutdown;
    const { ownSafeShutdown, safeShutdown } = names.services;
    this.#participant = participant;
    this.#sharedReplyTopic = replyTopicOf(safeShutdown);
    this.#servers = (answer ? [safeShutdown, ownSafeShutdown] : []).map(
      (name) =>
        new ServiceServer({
          name,
          type: SAFE_SHUTDOWN,
          participant,
          log,
          handler: async (request, dds) => {
            const { reason, requested_by, timeout } = request as { reason: string; requested_by: string; timeout: number };
            const mayBeForAnother = (): boolean => name === safeShutdown && this.otherServers() > 0;
            const reply = await answer?.({ reason, requested_by, timeout }, { dds, mayBeForAnother });
            return reply ? { ...reply } : null;
          },
        }),
    );
  }

  /** False: the safe shutdown is not offered. */
  get isOffered(): boolean {
    return this.#servers.length > 0;
  }

  /** The endpoints of the services, for `NodeGraph`. */
  get endpoints(): Pick<GraphNode, 'readers' | 'writers'> {
    return { writers: this.#servers.map(({ replies }) => replies.guid), readers: this.#servers.map(({ requests }) => requests.guid) };
  }

  /** To be called for each remote writer. True: its participant offers the shared name, which was not known before. */
  addWriter({ guid, topic }: EndpointData): boolean {
    if (topic !== this.#sharedReplyTopic || this.#others.has(prefixOf(guid))) return false;
    this.#others.add(prefixOf(guid));
    return true;
  }

  /** Number of other participants that offer the shared name. */
  otherServers(): number {
    if (!this.isOffered) return 0;
    for (const prefix of this.#others) if (!this.#participant.hasParticipant(prefix)) this.#others.delete(prefix);
    return this.#others.size;
  }

  stop(): void {
    for (const server of this.#servers) server.stop();
  }
}
