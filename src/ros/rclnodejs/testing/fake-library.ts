import type { NodeOptions, RclContext, RclNode, Rclnodejs, RclPublisher, RclPublisherInfo, RclQos, RclSubscription } from '../library.ts';

/** The graph that fake nodes return. */
export interface FakeGraph {
  topics: { name: string; types: string[] }[];
  /** By topic. */
  publishers: Record<string, RclPublisherInfo[]>;
  nodes: { name: string; namespace: string }[];
  /** Those of other processes, by service. */
  servers?: Record<string, number>;
  clients?: Record<string, number>;
}

export interface FakeQos extends RclQos {
  readonly history: number;
  readonly reliability: number;
  readonly durability: number;
}

export interface FakePublisher extends RclPublisher {
  readonly type: string;
  readonly qos: FakeQos;
  readonly sent: Buffer[];
  subscriptionCount: number;
  failure: Error | null;
}

export interface FakeSubscription {
  readonly type: string;
  readonly topic: string;
  readonly qos: FakeQos;
  readonly deliver: (serialized: Buffer) => void;
}

type Answer = (request: Readonly<Record<string, unknown>>) => Promise<Readonly<Record<string, unknown>>>;

/** A stand-in for rclnodejs without ROS 2: records the created objects. */
export class FakeLibrary {
  readonly graph: FakeGraph = { topics: [], publishers: {}, nodes: [] };
  readonly nodes: FakeNode[] = [];
  readonly contexts: FakeContext[] = [];
  readonly argv: string[] = [];
  /** Thrown when a node of this name is created. */
  refusedNode: string | null = null;

  /** The type that the transport expects. */
  asRclnodejs(): Rclnodejs {
    const fake = this;
    return {
      Context: class extends FakeContext {
        constructor() {
          super();
          fake.contexts.push(this);
        }
      },
      Node: class extends FakeNode {
        constructor(name: string, namespace: string, _context: RclContext, options: NodeOptions) {
          if (name === fake.refusedNode) throw new Error(`no node ${name} here`);
          super(fake.graph, name, namespace, options);
          fake.nodes.push(this);
        }
      },
      QoS: FakeQosClass,
      init: async (_context, argv) => {
        fake.argv.push(...argv);
      },
      removeSignalHandlers: () => undefined,
    };
  }

  node(name: string): FakeNode {
    const found = this.nodes.find((node) => node.name === name);
    if (!found) throw new Error(`there is no node ${name}, but ${this.nodes.map((node) => node.name).join(', ')}`);
    return found;
  }
}

class FakeQosClass implements FakeQos {
  static readonly profileServicesDefault = 'qos_profile_services_default';
  readonly history: number;
  readonly depth: number;
  readonly reliability: number;
  readonly durability: number;

  constructor(history: number, depth: number, reliability: number, durability: number) {
    this.history = history;
    this.depth = depth;
    this.reliability = reliability;
    this.durability = durability;
  }
}

export class FakeContext implements RclContext {
  #shutdowns = 0;

  get shutdowns(): number {
    return this.#shutdowns;
  }

  shutdown(): void {
    this.#shutdowns += 1;
  }

  isShutdown(): boolean {
    return this.#shutdowns > 0;
  }
}

export class FakeNode implements RclNode {
  readonly name: string;
  readonly namespace: string;
  readonly options: NodeOptions;
  readonly publishers = new Map<string, FakePublisher>();
  readonly subscriptions: FakeSubscription[] = [];
  readonly services = new Map<string, { type: string; answer: Answer }>();
  spunWith: number | null = null;
  /** Called when handles are ready. */
  onExecute: () => void = () => undefined;
  readonly #graph: FakeGraph;
  readonly #triggers: (() => void)[] = [];
  #triggered = 0;

  constructor(graph: FakeGraph, name: string, namespace: string, options: NodeOptions) {
    this.#graph = graph;
    this.name = name;
    this.namespace = namespace;
    this.options = options;
  }

  execute(_handles: unknown): void {
    this.onExecute();
  }

  /** Runs the triggered guard conditions, like the executor. Returns their number. */
  runTriggered(): number {
    const times = this.#triggered;
    this.#triggered = 0;
    if (times > 0) for (const callback of this.#triggers) callback();
    return times;
  }

  spin(timeoutMilliseconds: number): void {
    if (this.spunWith !== null) throw new Error('The node is already spinning.');
    this.spunWith = timeoutMilliseconds;
  }

  createPublisher(type: { type(): object }, topic: string, { qos }: { qos: RclQos }): RclPublisher {
    const publisher: FakePublisher = {
      type: Object.values(type.type()).join('/'),
      qos: qos as FakeQos,
      sent: [],
      subscriptionCount: 0,
      failure: null,
      publish(serialized) {
        if (this.failure) throw this.failure;
        this.sent.push(serialized);
      },
      waitForAllAcked: () => true,
    };
    this.publishers.set(topic, publisher);
    return publisher;
  }

  createSubscription(
    type: { type(): object },
    topic: string,
    { qos }: { qos: RclQos },
    onMessage: (serialized: Buffer) => void,
  ): RclSubscription {
    const subscription: FakeSubscription = { type: Object.values(type.type()).join('/'), topic, qos: qos as FakeQos, deliver: onMessage };
    this.subscriptions.push(subscription);
    return subscription;
  }

  destroySubscription(subscription: RclSubscription): void {
    this.subscriptions.splice(this.subscriptions.indexOf(subscription as FakeSubscription), 1);
  }

  createService(type: string, name: string, _options: object, answer: Answer): object {
    const service = { type, answer };
    this.services.set(name, service);
    return service;
  }

  destroyService(service: object): void {
    for (const [name, offered] of this.services) if (offered === service) this.services.delete(name);
  }

  createGuardCondition(onTrigger: () => void): { trigger(): void } {
    this.#triggers.push(onTrigger);
    return {
      trigger: () => {
        this.#triggered += 1;
      },
    };
  }

  getPublishersInfoByTopic(topic: string): FakeGraph['publishers'][string] {
    return this.#graph.publishers[topic] ?? [];
  }

  getTopicNamesAndTypes(): FakeGraph['topics'] {
    return this.#graph.topics;
  }

  countServices(name: string): number {
    return (this.#graph.servers?.[name] ?? 0) + 1;
  }

  countClients(name: string): number {
    return this.#graph.clients?.[name] ?? 0;
  }

  getNodeNamesAndNamespaces(): FakeGraph['nodes'] {
    return this.#graph.nodes;
  }
}
