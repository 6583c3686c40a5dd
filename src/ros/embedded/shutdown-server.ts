import { rarely } from '../../rtps/log.ts';
import { type Network, UdpNetwork } from '../../rtps/net/network.ts';
import { Participant } from '../../rtps/participant.ts';
import type { GraphOptions, ShutdownServer } from '../graph.ts';
import { ENCLAVE_DATA, newPrefix } from './identity.ts';
import { NodeGraph } from './node-graph.ts';
import { ParameterServices } from './parameter-services.ts';
import { type Joined, RejoiningSession } from './rejoin.ts';
import { endpointsOf, type ServiceServer, shutdownServices } from './service-server.ts';
import { isLoopbackOnly } from './static-peers.ts';

export interface ShutdownServerOptions extends GraphOptions {
  readonly wallMilliseconds: () => number;
  /** UDP by default; replaced in tests. */
  readonly network?: () => Network;
}

const LOG_PERIOD_SECONDS = 60;

/** The node of the safe shutdown on a participant of its own, alongside a transport that cannot identify callers. */
export class EmbeddedShutdownServer implements ShutdownServer {
  readonly #options: ShutdownServerOptions;
  readonly #rejoining: RejoiningSession<ShutdownSession>;
  #problem: string | null = null;

  constructor(options: ShutdownServerOptions) {
    this.#options = options;
    const { log, monotonicSeconds, place } = options;
    const rejoin = (): void => this.#rejoining.rejoin('an address of this machine was removed');
    const sessionOptions = { ...options, log: rarely(log, monotonicSeconds, LOG_PERIOD_SECONDS), onAddressLost: rejoin };
    this.#rejoining = new RejoiningSession({
      place,
      log,
      create: (staticPeers) => new ShutdownSession({ ...sessionOptions, staticPeers }),
    });
  }

  get problem(): string | null {
    return this.#problem ?? this.#rejoining.problem;
  }

  async start(): Promise<void> {
    const { log, names } = this.#options;
    try {
      await this.#rejoining.start();
      log('notice', 'safe shutdown is served by the embedded participant, which can identify callers', {
        service: names.services.safeShutdown,
      });
    } catch (error) {
      this.#problem = `${names.services.safeShutdown} is not offered: ${(error as Error).message}`;
      log('error', 'safe shutdown is not offered', { service: names.services.safeShutdown, error: (error as Error).message });
    }
  }

  stop(): void {
    this.#rejoining.stop();
  }
}

interface ShutdownSessionOptions extends ShutdownServerOptions {
  readonly staticPeers: readonly string[];
  readonly onAddressLost: () => void;
}

class ShutdownSession implements Joined {
  readonly #participant: Participant;
  readonly #services: readonly ServiceServer[];
  readonly #parameters: ParameterServices;

  constructor(options: ShutdownSessionOptions) {
    const { names, place } = options;
    const localhostOnly = place.discoveryRange === 'LOCALHOST';
    const node = `${names.namespace === '/' ? '' : names.namespace}/${names.nodes.safeShutdown}`;
    this.#participant = new Participant({
      ...options,
      domain: place.domainId,
      prefix: newPrefix(),
      name: node,
      userData: ENCLAVE_DATA,
      network: options.network?.() ?? new UdpNetwork(isLoopbackOnly(place)),
      localhostOnly,
      onRemoteWriter: (endpoint) => {
        this.#parameters.onRemoteEndpoint(endpoint);
        return true;
      },
      onRemoteReader: (endpoint) => this.#parameters.onRemoteEndpoint(endpoint),
    });
    this.#services = shutdownServices(this.#participant, options);
    this.#parameters = new ParameterServices({ nodes: [node], participant: this.#participant, log: options.log });
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
