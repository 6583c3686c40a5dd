import type { Log } from '../../core/ports.ts';
import { type ParameterService, type ParameterSource, parameterServices } from '../parameters.ts';
import type { GuardCondition, RclNode, Rclnodejs, RclService } from './library.ts';

export interface ParameterServicesOptions extends ParameterSource {
  readonly library: Rclnodejs;
  /** By fully qualified name. They must not spin yet. */
  readonly nodes: ReadonlyMap<string, RclNode>;
  /** Starts the executor of a node, if it is not running. */
  readonly spin: (node: RclNode) => void;
  readonly log: Log;
}

interface OfferingNode {
  readonly node: RclNode;
  readonly services: readonly (readonly [name: string, ParameterService])[];
  /** Has the executor call `#change`: at any other time the change would block the event loop, as in `Follower`. */
  readonly guard: GuardCondition;
  offered: readonly RclService[];
}

/** The services are removed after this many consecutive scans without a client. */
const UNUSED_SCANS = 10;

/**
 * The parameter services of the nodes, without which `ros2 param list` waits five seconds per node. They are created when one of them
 * has a client, and removed when none has any more; kept, they would be 48 endpoints to announce to every participant.
 */
export class ParameterServices {
  readonly #options: ParameterServicesOptions;
  readonly #nodes: readonly OfferingNode[];
  #isOffered = false;
  #isRefused = false;
  #unusedScans = 0;

  constructor(options: ParameterServicesOptions) {
    this.#options = options;
    this.#nodes = [...options.nodes].map(([path, node]) => {
      const guard = node.createGuardCondition(() => this.#change(offering));
      const offering: OfferingNode = { node, services: parameterServices(path, options), guard, offered: [] };
      return offering;
    });
  }

  /** Has all services created once one of them has a client, and removed once none has. */
  scan(): void {
    if (this.#isRefused) return;
    try {
      const isUsed = this.#nodes.some(({ node, services }) => services.some(([name]) => node.countClients(name) > 0));
      this.#unusedScans = isUsed ? 0 : this.#unusedScans + 1;
      const isWanted = isUsed || (this.#isOffered && this.#unusedScans < UNUSED_SCANS);
      if (isWanted === this.#isOffered) return;
      this.#isOffered = isWanted;
      for (const { guard, node } of this.#nodes) {
        this.#options.spin(node);
        guard.trigger();
      }
    } catch (error) {
      this.#refuse(error as Error);
    }
  }

  #change(offering: OfferingNode): void {
    const { node, offered, services } = offering;
    if (this.#isOffered === offered.length > 0) return;
    try {
      const qos = this.#options.library.QoS.profileServicesDefault;
      for (const service of offered) node.destroyService(service);
      offering.offered = this.#isOffered
        ? services.map(([name, { type, answer }]) => node.createService(type.rosName, name, { qos }, async (request) => answer(request)))
        : [];
    } catch (error) {
      this.#refuse(error as Error);
    }
  }

  /** For example under SROS2, when the enclave has no permission for the services. */
  #refuse(error: Error): void {
    if (!this.#isRefused) this.#options.log('info', 'no parameter services: ros2 param list waits for each node', { error: error.message });
    this.#isRefused = true;
  }
}
