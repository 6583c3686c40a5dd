import { Participant } from '../../rtps/participant.ts';
import type { GraphOptions, ShutdownServer } from '../graph.ts';
import { nodePath } from '../names.ts';
import { NodeGraph } from './node-graph.ts';
import { ParameterServices } from './parameter-services.ts';
import { type Joined, type JoinOptions, RejoiningSession, type SessionParticipant } from './rejoin.ts';
import { endpointsOf, type ServiceServer, shutdownServices } from './service-server.ts';

/** The node of the safe shutdown on a participant of its own, alongside a transport that cannot identify callers. */
export class EmbeddedShutdownServer implements ShutdownServer {
  readonly #options: GraphOptions;
  readonly #rejoining: RejoiningSession<ShutdownSession>;

  constructor(options: GraphOptions & JoinOptions) {
    this.#options = options;
    this.#rejoining = new RejoiningSession(options, (participant) => new ShutdownSession(options, participant));
  }

  get problem(): string | null {
    const { problem } = this.#rejoining;
    return problem === null ? null : `${this.#options.names.services.safeShutdown} is not offered: ${problem}`;
  }

  async start(): Promise<void> {
    const { log, names } = this.#options;
    await this.#rejoining.start();
    if (this.problem !== null) return;
    log('notice', 'safe shutdown is served by the embedded participant, which can identify callers', {
      service: names.services.safeShutdown,
    });
  }

  stop(): void {
    this.#rejoining.stop();
  }
}

class ShutdownSession implements Joined {
  readonly #participant: Participant;
  readonly #services: readonly ServiceServer[];
  readonly #parameters: ParameterServices;

  constructor(options: GraphOptions, participant: SessionParticipant) {
    const { names } = options;
    const { log } = participant;
    const node = nodePath(names.namespace, names.nodes.safeShutdown);
    this.#participant = new Participant({
      ...participant,
      name: node,
      onRemoteWriter: (endpoint) => {
        this.#parameters.onRemoteEndpoint(endpoint);
        return true;
      },
      onRemoteReader: (endpoint) => this.#parameters.onRemoteEndpoint(endpoint),
    });
    this.#services = shutdownServices(this.#participant, { ...options, log });
    this.#parameters = new ParameterServices({ nodes: [node], participant: this.#participant, log });
    new NodeGraph(this.#participant, names.namespace).publish([{ name: names.nodes.safeShutdown, ...endpointsOf(this.#services) }]);
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  stop(): void {
    for (const service of this.#services) service.stop();
    this.#parameters.stop();
    this.#participant.stop();
  }
}
