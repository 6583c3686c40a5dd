import { collectedScanner } from '../observe/collected-scan.ts';
import type { Scanner } from '../observe/coverage.ts';
import { EventsSource } from '../observe/events.ts';
import { ServiceObserver } from '../observe/service-observer.ts';
import type { ServiceSource, Source, SourceListener, TopicSource } from '../observe/sources.ts';
import { storedScanner } from '../observe/stored-scan.ts';
import { type KnownRun, ProcessSupervisor, type Supervisor } from '../observe/supervisor.ts';
import { topicSubscription } from '../observe/topic-subscription.ts';
import { UnitSupervisor } from '../observe/unit-supervisor.ts';
import type { Target } from '../record/entries.ts';
import type { SoFar } from './so-far.ts';
import type { Subject } from './subject.ts';

/** Everything that tells of the service. */
export interface Sources {
  /** Null: `withoutGraph` says why. */
  readonly graph: TopicSource | null;
  readonly withoutGraph: string;
  readonly events: Source;
  readonly service: ServiceSource;
  readonly stored: Scanner;
  /** Null: the data folder cannot be looked into from here. */
  readonly collected: Scanner | null;
}

export interface SourcesOptions {
  readonly subject: Subject;
  readonly target: Target;
  /** ROS 2 domain of the service; null: not known, or it is not on the graph. */
  readonly domainId: number | null;
  readonly transport: 'auto' | 'embedded' | 'rclnodejs' | 'off';
  /** What is known of a run that is resumed; null: it begins. */
  readonly soFar: SoFar | null;
  readonly bootId: string | null;
  readonly listener: SourceListener;
}

const monotonicSeconds = (): number => performance.now() / 1000;

/** None of them is started. Rejects with what to do where the graph cannot be listened to as asked. */
export async function openSources(options: SourcesOptions): Promise<Sources> {
  const { bootId, listener, soFar, subject, target } = options;
  const { rest } = subject;
  const node = target.node_name;
  const { graph, withoutGraph } = await openGraph(options);
  return {
    graph,
    withoutGraph,
    events: new EventsSource({ rest, node, hertz: target.configured_hertz, listener, monotonicSeconds }),
    service: new ServiceObserver({ rest, node, supervisor: supervisorOf(subject), before: knownRun(soFar), bootId, monotonicSeconds }),
    stored: storedScanner({ rest, node }),
    collected: target.data_folder === null ? null : collectedScanner({ dataFolder: target.data_folder }),
  };
}

async function openGraph({ domainId, listener, subject, target, transport }: SourcesOptions) {
  if (transport === 'off') return { graph: null, withoutGraph: 'asked for with --transport off' };
  if (target.service_transport === 'off') return { graph: null, withoutGraph: 'the service is not on the ROS 2 graph' };
  const graph = await topicSubscription({
    transport,
    ros: subject.config.ros,
    domainId,
    node: target.node_name,
    listener,
    log: () => undefined, // What matters of it comes as a note.
    environment: process.env,
    dataFolder: target.data_folder,
  });
  return { graph, withoutGraph: '' };
}

function supervisorOf({ keeper, unit }: Subject): Supervisor | null {
  if (keeper !== null) return new ProcessSupervisor({ pid: () => keeper.pid(), exits: () => keeper.exits() });
  return unit === null ? null : new UnitSupervisor({ unit, environment: process.env });
}

function knownRun(soFar: SoFar | null): KnownRun | null {
  if (!soFar?.service) return null;
  const { invocation, pid, started, version } = soFar.service;
  return { started, version, pid, invocation, restarts: soFar.restarts, bootId: soFar.serviceBootId };
}
