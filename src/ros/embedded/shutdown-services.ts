import type { Participant } from '../../rtps/participant.ts';
import type { GraphOptions } from '../graph.ts';
import { SAFE_SHUTDOWN } from '../interfaces.generated.ts';
import type { GraphNode } from './node-graph.ts';
import { ServiceServer } from './service-server.ts';

/** The safe shutdown service under its shared name and under the node's own; empty when it is not offered. */
export function shutdownServices(participant: Participant, { listener, log, names }: GraphOptions): readonly ServiceServer[] {
  const answer = listener.onSafeShutdown;
  if (!answer) return [];
  const { ownSafeShutdown, safeShutdown } = names.services;
  return [safeShutdown, ownSafeShutdown].map(
    (name) =>
      new ServiceServer({
        name,
        type: SAFE_SHUTDOWN,
        participant,
        log,
        handler: async (request, requester) => {
          const { reason, requested_by, timeout } = request as { reason: string; requested_by: string; timeout: number };
          const isShared = name === safeShutdown;
          const reply = await answer({ reason, requested_by, timeout }, { dds: requester, isShared });
          return reply && { ...reply };
        },
      }),
  );
}

/** The endpoints of services, for `NodeGraph`. */
export function endpointsOf(services: readonly ServiceServer[]): Pick<GraphNode, 'readers' | 'writers'> {
  return { writers: services.map(({ replies }) => replies.guid), readers: services.map(({ requests }) => requests.guid) };
}
