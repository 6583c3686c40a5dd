import { join } from 'node:path';
import type { Log } from '../../core/ports.ts';
import type { DiscoverySettings } from '../graph.ts';
import { addonFile, type Prepared } from './prepared.ts';
import { applyVariables, discoveryVariables } from './ros-variables.ts';

/**
 * The part of rclnodejs 2 that is used here. Messages pass through it in serialized form: the CDR code of the embedded transport takes a
 * third of the CPU time of rclnodejs' message objects.
 */
export interface Rclnodejs {
  readonly Context: new () => RclContext;
  readonly Node: new (
    name: string,
    namespace: string,
    context: RclContext,
    options: NodeOptions,
    rosArguments: readonly string[],
    useGlobalArguments: boolean,
  ) => RclNode;
  readonly QoS: (new (
    history: number,
    depth: number,
    reliability: number,
    durability: number,
  ) => RclQos) & {
    readonly profileServicesDefault: string;
  };
  init(context: RclContext, argv: readonly string[]): Promise<void>;
  /** Removes its SIGINT handler, which would destroy the nodes before the service stops them. */
  removeSignalHandlers(): void;
}

export interface RclContext {
  /** Destroys all nodes; blocks until the waits of their executors end. */
  shutdown(): void;
  isShutdown(): boolean;
}

export interface NodeOptions {
  readonly startParameterServices: boolean;
  readonly startTypeDescriptionService: boolean;
  readonly enableRosout: boolean;
}

export interface RclQos {
  readonly depth: number;
}

/** The part of a message class that rclnodejs needs for serialized messages. */
export interface RawType {
  type(): { readonly pkgName: string; readonly subFolder: string; readonly interfaceName: string };
}

export interface RclPublisher {
  publish(serialized: Buffer): void;
  /** Matched subscriptions, including those of this process. */
  readonly subscriptionCount: number;
  /** Blocks at most this long; throws if the middleware does not support it. */
  waitForAllAcked(nanoseconds: bigint): boolean;
}

export type RclSubscription = object;

export type RclService = object;

export interface GuardCondition {
  trigger(): void;
}

export interface RclPublisherInfo {
  readonly node_name: string;
  readonly node_namespace: string;
  readonly qos_profile: { readonly reliability: number; readonly durability: number };
}

/** The topics of the graph with their types. */
export type GraphTopics = readonly { readonly name: string; readonly types: readonly string[] }[];

export interface RclNode {
  /** Called by native code with the handles that are ready. */
  execute(handles: unknown): void;
  /** Waits in a separate thread, at most this long at a time; callbacks run in the event loop. */
  spin(timeoutMilliseconds: number): void;
  createPublisher(type: RawType, topic: string, options: { readonly qos: RclQos }): RclPublisher;
  createSubscription(
    type: RawType,
    topic: string,
    options: { readonly qos: RclQos; readonly isRaw: true },
    onMessage: (serialized: Buffer) => void,
  ): RclSubscription;
  destroySubscription(subscription: RclSubscription): void;
  createService(
    type: string,
    name: string,
    options: { readonly qos: string },
    onRequest: (request: Readonly<Record<string, unknown>>) => Promise<Readonly<Record<string, unknown>>>,
  ): RclService;
  destroyService(service: RclService): void;
  createGuardCondition(onTrigger: () => void): GuardCondition;
  getPublishersInfoByTopic(topic: string): readonly RclPublisherInfo[];
  getTopicNamesAndTypes(): GraphTopics;
  /** Includes those of this process. Not available in Humble. */
  countServices(name: string): number;
  /** Includes those of this process. Not available in Humble. */
  countClients(name: string): number;
  getNodeNamesAndNamespaces(): readonly { readonly name: string; readonly namespace: string }[];
}

/** Numbers of rmw/types.h. */
const KEEP_LAST = 1;
const RELIABLE = 1;
const BEST_EFFORT = 2;
const TRANSIENT_LOCAL = 1;
const VOLATILE = 2;

/** The QoS classes of publishers, and of the subscriptions that match them; every publisher satisfies the last one. */
export type QosClass = 'transient local' | 'volatile' | 'best effort';

export function qosOf(library: Rclnodejs, qosClass: QosClass, depth: number): RclQos {
  const reliability = qosClass === 'best effort' ? BEST_EFFORT : RELIABLE;
  return new library.QoS(KEEP_LAST, depth, reliability, qosClass === 'transient local' ? TRANSIENT_LOCAL : VOLATILE);
}

/** Properties of a QoS object that only an addon compiled by `setup/addon.ts` reads. */
export interface QosPeriods {
  readonly deadlineMilliseconds: number;
  readonly leaseMilliseconds: number;
}

/** The highest QoS class that matches a publisher's offer. With a higher one the two do not match, and the publisher logs a warning. */
export function qosClassOf({ reliability, durability }: RclPublisherInfo['qos_profile']): QosClass {
  if (reliability !== RELIABLE) return 'best effort';
  return durability === TRANSIENT_LOCAL ? 'transient local' : 'volatile';
}

/** A stand-in for the message class of a type such as `edge_health_interfaces/msg/Alert`. */
export function rawType(rosName: string): RawType {
  const [pkgName = '', subFolder = '', interfaceName = ''] = rosName.split('/');
  return Object.assign(() => undefined, { type: () => ({ pkgName, subFolder, interfaceName }) });
}

/**
 * Catches errors thrown by a node's callbacks, for example on an unreadable request. In native code they would terminate the
 * process.
 */
export function catchErrors(node: RclNode, onError: (error: Error) => void): void {
  const execute = node.execute.bind(node);
  node.execute = (handles) => {
    try {
      execute(handles);
    } catch (error) {
      onError(error as Error);
    }
  };
}

/** Without parameters and rosout, which the product does not use and which take endpoints and memory (see `ParameterServices`). */
const BARE: NodeOptions = { startParameterServices: false, startTypeDescriptionService: false, enableRosout: false };

/** A node without the standard services, which logs errors of its callbacks. */
export function bareNode(
  library: Rclnodejs,
  context: RclContext,
  { name, namespace, log }: { readonly name: string; readonly namespace: string; readonly log: Log },
): RclNode {
  const node = new library.Node(name, namespace, context, BARE, [], false);
  catchErrors(node, (error) => log('warning', 'rclnodejs could not process a message', { node: name, error: error.message }));
  return node;
}

/**
 * Defers work from a callback of rclnodejs. Native code runs these outside of Node's callback scope, where continuations of settled
 * promises do not run until the next event of the process.
 */
export function later<T>(work: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(work());
      } catch (error) {
        reject(error as Error);
      }
    });
  });
}

/**
 * Loads the private copy in a prepared folder. Throws the dynamic linker's error when its addon cannot be loaded. The addon is loaded
 * first, because rclnodejs would react to the error by compiling itself.
 */
export function loadRclnodejs(folder: string): Rclnodejs {
  delete process.env['RCLNODEJS_FORCE_BUILD'];
  const require = process.getBuiltinModule('node:module').createRequire(join(folder, 'prepared.cjs'));
  require(addonFile(folder));
  const loaded = require('rclnodejs') as Rclnodejs & { default?: Rclnodejs };
  const library = loaded.default ?? loaded;
  library.removeSignalHandlers();
  return library;
}

export interface RclOptions {
  readonly prepared: Prepared;
  readonly discovery: DiscoverySettings;
  /** SROS2 enclave; null: from the environment. */
  readonly enclave: string | null;
  /** Loads the prepared copy by default; replaced in tests. */
  readonly load?: (folder: string) => Rclnodejs;
}

/**
 * Loads rclnodejs, initializes rcl and calls `make`. The process must have the environment of `environmentFor`. On failure nothing is
 * left running.
 */
export async function withRcl<T>(options: RclOptions, make: (library: Rclnodejs, context: RclContext) => T): Promise<T> {
  applyVariables(process.env, discoveryVariables(options.prepared.distro, options.discovery));
  const library = (options.load ?? loadRclnodejs)(options.prepared.folder);
  const context = new library.Context();
  try {
    // Without rcl's log files, which the product does not need and which require a writable home folder.
    const named = options.enclave === null ? [] : ['--enclave', options.enclave];
    await library.init(context, ['--ros-args', '--disable-external-lib-logs', ...named]);
    return make(library, context);
  } catch (error) {
    if (!context.isShutdown()) context.shutdown();
    throw error;
  }
}
