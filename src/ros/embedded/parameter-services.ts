import type { Message } from '../../rtps/cdr.ts';
import type { EndpointData } from '../../rtps/discovery-data.ts';
import type { Logger } from '../../rtps/log.ts';
import type { Participant } from '../../rtps/participant.ts';
import {
  DESCRIBE_PARAMETERS,
  GET_PARAMETER_TYPES,
  GET_PARAMETERS,
  LIST_PARAMETERS,
  SET_PARAMETERS,
  SET_PARAMETERS_ATOMICALLY,
} from '../interfaces.generated.ts';
import type { ServiceType } from '../interfaces.ts';
import { replyTopicOf, requestTopicOf } from './names.ts';
import { ServiceServer } from './service-server.ts';

const REFUSED = { successful: false, reason: 'edge-health has no ROS parameters; see its configuration file' };

/** The services of a node without parameters, by name: as rclcpp answers for parameters that were not declared. */
const SERVICES: Readonly<Record<string, { readonly type: ServiceType; readonly answer: (request: Message) => Message }>> = {
  list_parameters: { type: LIST_PARAMETERS, answer: () => ({}) },
  get_parameters: { type: GET_PARAMETERS, answer: () => ({}) },
  get_parameter_types: { type: GET_PARAMETER_TYPES, answer: () => ({}) },
  describe_parameters: { type: DESCRIBE_PARAMETERS, answer: () => ({}) },
  set_parameters: {
    type: SET_PARAMETERS,
    answer: ({ parameters }) => ({ results: (parameters as readonly unknown[]).map(() => REFUSED) }),
  },
  set_parameters_atomically: { type: SET_PARAMETERS_ATOMICALLY, answer: () => ({ result: REFUSED }) },
};

export interface ParameterServicesOptions {
  /** Fully qualified: `/robot1/health_monitor`. */
  readonly nodes: readonly string[];
  readonly participant: Participant;
  readonly log: Logger;
}

/**
 * The parameter services of the nodes, without which `ros2 param list` waits five seconds for each node. Each is created when a client for
 * it is discovered: from the start they would be 48 more endpoints to announce to every other participant.
 */
export class ParameterServices {
  readonly #options: ParameterServicesOptions;
  /** What is not offered yet, by the DDS topics that its clients have. */
  readonly #offers = new Map<string, () => void>();
  readonly #servers: ServiceServer[] = [];

  constructor(options: ParameterServicesOptions) {
    this.#options = options;
    for (const node of options.nodes) {
      for (const [name, service] of Object.entries(SERVICES)) {
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

  /** For the participant's `onRemoteEndpoint`. */
  onRemoteEndpoint({ topic }: EndpointData): void {
    this.#offers.get(topic)?.();
  }

  stop(): void {
    for (const server of this.#servers) server.stop();
  }

  #offer(name: string, { type, answer }: (typeof SERVICES)[string]): void {
    const { log, participant } = this.#options;
    this.#servers.push(
      new ServiceServer({ name, type, participant, log, handler: async (request, { isNew }) => (isNew() ? answer(request) : null) }),
    );
  }
}
