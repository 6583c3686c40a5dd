import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import type { Logger } from '../../rtps/log.ts';
import type { Participant } from '../../rtps/participant.ts';
import { type ParameterService, type ParameterSource, parameterServices } from '../parameters.ts';
import { replyTopicOf, requestTopicOf } from './dds-names.ts';
import { type RequestHandler, ServiceServer } from './service-server.ts';

export interface ParameterServicesOptions extends ParameterSource {
  /** Fully qualified: `/robot1/health_monitor`. */
  readonly nodes: readonly string[];
  readonly participant: Participant;
  readonly log: Logger;
}

/** Period in which services without a client are removed. */
const UNUSED_MS = 10_000;

/**
 * The parameter services of the nodes, without which `ros2 param list` waits five seconds per node. Each is created when a client for it
 * is discovered, and removed when it has none any more; kept, they would be 48 endpoints to announce to every participant.
 */
export class ParameterServices {
  readonly #options: ParameterServicesOptions;
  /** Functions that create the services not offered now, by the DDS topics of their clients. */
  readonly #offers = new Map<string, () => void>();
  /** With the functions that prepare the services to be offered again. */
  readonly #servers = new Map<ServiceServer, () => void>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: ParameterServicesOptions) {
    this.#options = options;
    for (const node of options.nodes) for (const service of parameterServices(node, options)) this.#prepare(...service);
  }

  /** To be called for each discovered remote endpoint. */
  onRemoteEndpoint({ topic }: EndpointData): void {
    this.#offers.get(topic)?.();
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    for (const server of this.#servers.keys()) server.stop();
  }

  #prepare(name: string, service: ParameterService): void {
    const topics = [requestTopicOf(name), replyTopicOf(name)];
    const offer = (): void => {
      for (const topic of topics) this.#offers.delete(topic);
      this.#offer(name, service);
    };
    for (const topic of topics) this.#offers.set(topic, offer);
  }

  #offer(name: string, service: ParameterService): void {
    const { log, participant } = this.#options;
    const { answer, type } = service;
    const handler: RequestHandler = async (request, { isNew }) => (isNew() ? answer(request) : null);
    this.#servers.set(new ServiceServer({ name, type, participant, log, handler }), () => this.#prepare(name, service));
    this.#timer ??= setTimeout(() => this.#removeUnused(), UNUSED_MS).unref();
  }

  #removeUnused(): void {
    for (const [server, prepare] of this.#servers) {
      if (server.hasClient) continue;
      this.#servers.delete(server);
      server.remove();
      prepare();
    }
    this.#timer = this.#servers.size > 0 ? setTimeout(() => this.#removeUnused(), UNUSED_MS).unref() : null;
  }
}
