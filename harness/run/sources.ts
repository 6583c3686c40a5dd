import type { Target } from '../record/entries.ts';
import { collectedSource } from '../watch/collected.ts';
import { EventStream } from '../watch/events.ts';
import { graphSource } from '../watch/graph/source.ts';
import { KeptSupervisor } from '../watch/kept.ts';
import type { EventsSource, GraphSource, HoldingSource, ServiceSource, WatchListener } from '../watch/ports.ts';
import { ServiceWatch } from '../watch/service.ts';
import { storedSource } from '../watch/stored.ts';
import type { KnownRun, Supervisor } from '../watch/supervisor.ts';
import { UnitSupervisor } from '../watch/unit.ts';
import type { SoFar } from './so-far.ts';
import type { Subject } from './subject.ts';

/** Everything that tells of the service. */
export interface Sources {
  /** Null: `withoutGraph` says why. */
  readonly graph: GraphSource | null;
  readonly withoutGraph: string;
  readonly events: EventsSource;
  readonly service: ServiceSource;
  readonly stored: HoldingSource;
  /** Null: the data folder cannot be looked into from here. */
  readonly collected: HoldingSource | null;
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
  readonly listener: WatchListener;
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
    events: new EventStream({ rest, node, hertz: target.configured_hertz, lastEventId: null, listener, monotonicSeconds }),
    service: new ServiceWatch({ rest, node, supervisor: supervisorOf(subject), before: knownRun(soFar), bootId, monotonicSeconds }),
    stored: storedSource({ rest, node }),
    collected: target.data_folder === null ? null : collectedSource({ dataFolder: target.data_folder }),
  };
}

async function openGraph({ domainId, listener, subject, target, transport }: SourcesOptions) {
  if (transport === 'off') return { graph: null, withoutGraph: 'asked for with --transport off' };
  if (target.service_transport === 'off') return { graph: null, withoutGraph: 'the service is not on the ROS 2 graph' };
  const graph = await graphSource({
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
  if (keeper !== null) return new KeptSupervisor({ pid: () => keeper.pid(), exits: () => keeper.exits() });
  return unit === null ? null : new UnitSupervisor({ unit, environment: process.env });
}

function knownRun(soFar: SoFar | null): KnownRun | null {
  if (!soFar?.service) return null;
  const { invocation, pid, started, version } = soFar.service;
  return { started, version, pid, invocation, restarts: soFar.restarts, bootId: soFar.serviceBootId };
}
