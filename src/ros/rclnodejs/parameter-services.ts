import type { Log } from '../../core/ports.ts';
import { PARAMETER_SERVICES } from '../parameters.ts';
import type { RclNode, Rclnodejs } from './library.ts';

export interface ParameterServicesOptions {
  readonly library: Rclnodejs;
  /** By fully qualified name. */
  readonly nodes: ReadonlyMap<string, RclNode>;
  /** Starts the executor of a node, if it is not running. */
  readonly spin: (node: RclNode) => void;
  readonly log: Log;
}

/**
 * The parameter services of the nodes, without which `ros2 param list` waits five seconds per node. They are created when one of them
 * has a client; created at the start, they would add 48 endpoints to announce to every participant, and two threads.
 */
export class ParameterServices {
  readonly #options: ParameterServicesOptions;
  #isOffered = false;

  constructor(options: ParameterServicesOptions) {
    this.#options = options;
  }

  /** Creates all services once one of them has a client. */
  scan(): void {
    if (this.#isOffered) return;
    const { library, nodes, spin, log } = this.#options;
    const services = [...nodes].flatMap(([path, node]) =>
      Object.entries(PARAMETER_SERVICES).map(([name, service]) => ({ node, name: `${path}/${name}`, ...service })),
    );
    try {
      if (!services.some(({ node, name }) => node.countClients(name) > 0)) return;
      this.#isOffered = true;
      for (const { node, name, type, answer } of services) {
        node.createService(type.rosName, name, { qos: library.QoS.profileServicesDefault }, async (request) => answer(request));
      }
      for (const node of nodes.values()) spin(node);
    } catch (error) {
      this.#isOffered = true;
      // For example under SROS2, when the enclave has no permission for them.
      log('info', 'no parameter services: ros2 param list waits for each node', { error: (error as Error).message });
    }
  }
}
