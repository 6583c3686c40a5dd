import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import type { Logger } from '../../rtps/log.ts';
import type { Participant } from '../../rtps/participant.ts';
import { PARAMETER_SERVICES, type ParameterService } from '../parameters.ts';
import { replyTopicOf, requestTopicOf } from './dds-names.ts';
import { ServiceServer } from './service-server.ts';

export interface ParameterServicesOptions {
  /** Fully qualified: `/robot1/health_monitor`. */
  readonly nodes: readonly string[];
  readonly participant: Participant;
  readonly log: Logger;
}

/**
 * The parameter services of the nodes, without which `ros2 param list` waits five seconds per node. Each is created when a client for it
 * is discovered; created at the start, they would add 48 endpoints to announce to every participant.
 */
export class ParameterServices {
  readonly #options: ParameterServicesOptions;
  /** Functions that create the services not offered yet, by the DDS topics of their clients. */
  readonly #offers = new Map<string, () => void>();
  readonly #servers: ServiceServer[] = [];

  constructor(options: ParameterServicesOptions) {
    this.#options = options;
    for (const node of options.nodes) {
      for (const [name, service] of Object.entries(PARAMETER_SERVICES)) {
        const [request, reply] = [requestTopicOf(`${node}/${name}`), replyTopicOf(`${node}/${name}`)];
        const offer = (): void => {
          this.#offers.delete(request);
          this.#offers.delete(reply);
          this.#offer(`${node}/${name}`, service);
        };
        this.#offers.set(request, offer).set(reply, offer);
      }
    }
  }

  /** To be called for each discovered remote endpoint. */
  onRemoteEndpoint({ topic }: EndpointData): void {
    this.#offers.get(topic)?.();
  }

  stop(): void {
    for (const server of this.#servers) server.stop();
  }

  #offer(name: string, { type, answer }: ParameterService): void {
    const { log, participant } = this.#options;
    this.#servers.push(
      new ServiceServer({ name, type, participant, log, handler: async (request, { isNew }) => (isNew() ? answer(request) : null) }),
    );
  }
}
