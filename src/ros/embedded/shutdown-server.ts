import type { LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import { Participant } from '../../rtps/participant.ts';
import type { GraphOptions, ShutdownServer } from '../graph.ts';
import { nodePath } from '../names.ts';
import { NodeGraph } from './node-graph.ts';
import { ParameterServices } from './parameter-services.ts';
import { type Joined, type JoinOptions, RejoiningSession, type SessionParticipant } from './rejoin.ts';
import { ShutdownServices } from './shutdown-services.ts';
import { createTopicWriter } from './topic-writers.ts';

/** The node of the safe shutdown with its services and /shutdown_status on a participant of its own, alongside a transport that cannot identify callers. */
export class EmbeddedShutdownServer implements ShutdownServer {
  readonly #options: GraphOptions;
  readonly #rejoining: RejoiningSession<ShutdownSession>;

  constructor(options: GraphOptions & JoinOptions) {
    this.#options = options;
    this.#rejoining = new RejoiningSession(options, (participant, former) => new ShutdownSession(options, participant, former));
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

  publish(progress: Buffer): void {
    this.#rejoining.session?.publish(progress);
  }

  stop(): void {
    this.#rejoining.stop();
  }
}

class ShutdownSession implements Joined {
  readonly #participant: Participant;
  readonly #shutdown: ShutdownServices;
  readonly #parameters: ParameterServices;
  readonly #status: LocalWriter;

  constructor(options: GraphOptions, participant: SessionParticipant, former: ShutdownSession | null) {
    const { names } = options;
    const { log } = participant;
    const node = nodePath(names.namespace, names.nodes.safeShutdown);
    this.#participant = new Participant({
      ...participant,
      name: node,
      onRemoteWriter: (endpoint) => {
        this.#shutdown.addWriter(endpoint);
        this.#parameters.onRemoteEndpoint(endpoint);
        return true;
      },
      onRemoteReader: (endpoint) => this.#parameters.onRemoteEndpoint(endpoint),
    });
    this.#shutdown = new ShutdownServices(this.#participant, { ...options, log });
    this.#parameters = new ParameterServices({ ...options, nodes: [node], participant: this.#participant, log });
    this.#status = createTopicWriter(this.#participant, options, 'shutdownStatus', former ? former.#status.state.history : []);
    const { readers, writers } = this.#shutdown.endpoints;
    const graph = { name: names.nodes.safeShutdown, readers, writers: [this.#status.guid, ...writers] };
    new NodeGraph(this.#participant, names.namespace).publish([graph]);
  }

  publish(progress: Buffer): void {
    this.#participant.write(this.#status, progress);
  }

  start(): Promise<void> {
    return this.#participant.start();
  }

  stop(): void {
    this.#shutdown.stop();
    this.#parameters.stop();
    this.#participant.stop();
  }
}
