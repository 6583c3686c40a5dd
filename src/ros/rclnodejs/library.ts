import { join } from 'node:path';
import type { Log } from '../../core/ports.ts';
import type { GraphPlace } from '../graph.ts';
import { applyVariables, placeVariables } from './place.ts';
import { addonFile, type Prepared } from './prepared.ts';

/**
 * The part of rclnodejs 2 that is used here. Messages go through it serialized: their bytes are made and read by this product's
 * own CDR code, as with the embedded transport, which takes a third of the CPU time of rclnodejs' message objects.
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
  /** Takes away its SIGINT handler, which would end the nodes behind the service's back. */
  removeSignalHandlers(): void;
}

export interface RclContext {
  /** Destroys every node; blocks until their executors' waits are over. */
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

/** What rclnodejs asks of a message class when only serialized messages pass. */
export interface RawType {
  type(): { readonly pkgName: string; readonly subFolder: string; readonly interfaceName: string };
}

export interface RclPublisher {
  publish(serialized: Buffer): void;
  /** Matched subscriptions, those of this process too. */
  readonly subscriptionCount: number;
  /** Blocks at most this long; throws where the middleware cannot tell. */
  waitForAllAcked(nanoseconds: bigint): boolean;
}

export type RclSubscription = object;

export interface GuardCondition {
  trigger(): void;
}

export interface RclPublisherInfo {
  readonly node_name: string;
  readonly node_namespace: string;
  readonly qos_profile: { readonly reliability: number; readonly durability: number };
}

export interface RclNode {
  /** Called by native code with what is ready. */
  execute(handles: unknown): void;
  /** Waits in a thread of its own, at most this long at a time; callbacks run in the event loop. */
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
  ): object;
  createGuardCondition(onTrigger: () => void): GuardCondition;
  getPublishersInfoByTopic(topic: string): readonly RclPublisherInfo[];
  getTopicNamesAndTypes(): readonly { readonly name: string; readonly types: readonly string[] }[];
  /** Of this process, too. Not in Humble. */
  countServices(name: string): number;
  /** Of this process, too. Not in Humble. */
  countClients(name: string): number;
  getNodeNamesAndNamespaces(): readonly { readonly name: string; readonly namespace: string }[];
}

/** As numbered in rmw/types.h. */
const KEEP_LAST = 1;
const RELIABLE = 1;
const BEST_EFFORT = 2;
const TRANSIENT_LOCAL = 1;
const VOLATILE = 2;

export function reliableQos(library: Rclnodejs, durability: 'transient local' | 'volatile', depth: number): RclQos {
  return new library.QoS(KEEP_LAST, depth, RELIABLE, durability === 'volatile' ? VOLATILE : TRANSIENT_LOCAL);
}

/** What every publisher satisfies. */
export function anyQos(library: Rclnodejs, depth: number): RclQos {
  return new library.QoS(KEEP_LAST, depth, BEST_EFFORT, VOLATILE);
}

/** What rclnodejs takes for the class of a type such as `edge_health_interfaces/msg/Alert`. */
export function rawType(rosName: string): RawType {
  const [pkgName = '', subFolder = '', interfaceName = ''] = rosName.split('/');
  return Object.assign(() => undefined, { type: () => ({ pkgName, subFolder, interfaceName }) });
}

/**
 * Keeps what is thrown while a node handles what is ready (a request that cannot be read, for one) from going back to native
 * code, which would end the process.
 */
export function keepErrors(node: RclNode, onError: (error: Error) => void): void {
  const execute = node.execute.bind(node);
  node.execute = (handles) => {
    try {
      execute(handles);
    } catch (error) {
      onError(error as Error);
    }
  };
}

/** Neither parameters nor rosout: the product has its own configuration and log, and each costs endpoints and memory (`ParameterServices`). */
const BARE: NodeOptions = { startParameterServices: false, startTypeDescriptionService: false, enableRosout: false };

/** A node that outlives whatever arrives. */
export function bareNode(
  library: Rclnodejs,
  context: RclContext,
  { name, namespace, log }: { readonly name: string; readonly namespace: string; readonly log: Log },
): RclNode {
  const node = new library.Node(name, namespace, context, BARE, [], false);
  keepErrors(node, (error) => log('warning', 'rclnodejs could not process a message', { node: name, error: error.message }));
  return node;
}

/**
 * Leaves a callback of rclnodejs, which native code runs outside of Node's own callbacks: promises that are settled there would
 * not go on before something else happens in the process.
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
 * Loads the private copy in a prepared folder. Throws what the dynamic linker says when its addon cannot be loaded; rclnodejs
 * itself would start to compile then, so the addon goes first.
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

export interface RclPlace {
  readonly prepared: Prepared;
  readonly place: GraphPlace;
  /** SROS2 enclave; null: as the environment says. */
  readonly enclave: string | null;
  /** For tests; otherwise the prepared copy. */
  readonly load?: (folder: string) => Rclnodejs;
}

/**
 * Loads rclnodejs, initialises rcl at that place and has something made in it: to be called in a process whose environment is that of
 * `environmentFor`. Where that fails nothing is left running.
 */
export async function withRcl<T>(at: RclPlace, make: (library: Rclnodejs, context: RclContext) => T): Promise<T> {
  applyVariables(process.env, placeVariables(at.prepared.distro, at.place));
  const library = (at.load ?? loadRclnodejs)(at.prepared.folder);
  const context = new library.Context();
  try {
    // Without rcl's own log files: the product logs elsewhere, and a home folder need not be writable then.
    const named = at.enclave === null ? [] : ['--enclave', at.enclave];
    await library.init(context, ['--ros-args', '--disable-external-lib-logs', ...named]);
    return make(library, context);
  } catch (error) {
    if (!context.isShutdown()) context.shutdown();
    throw error;
  }
}
