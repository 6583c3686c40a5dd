import type { Scanner } from '../observe/coverage.ts';
import { EventsSource } from '../observe/events.ts';
import { collectedScanner, storedScanner } from '../observe/scanners.ts';
import { ServiceObserver } from '../observe/service-observer.ts';
import type { ServiceSource, Source, SourceListener } from '../observe/sources.ts';
import { type KnownRun, ProcessSupervisor, type Supervisor } from '../observe/supervisor.ts';
import { type TopicSubscription, topicSubscription } from '../observe/topic-subscription.ts';
import { UnitSupervisor } from '../observe/unit-supervisor.ts';
import type { Target } from '../record/entries.ts';
import type { ResumeState } from './resume-state.ts';
import type { Subject } from './subject.ts';

/** All sources of a run. */
export interface Sources {
  /** Null: for the reason `withoutTopic`. */
  readonly topic: TopicSubscription | null;
  readonly withoutTopic: string;
  readonly events: Source;
  readonly service: ServiceSource;
  readonly stored: Scanner;
  /** Null: the data folder cannot be read from here. */
  readonly collected: Scanner | null;
}

export interface SourcesOptions {
  readonly subject: Subject;
  readonly target: Target;
  /** ROS 2 domain of the service; null: not known, or it is not on the graph. */
  readonly domainId: number | null;
  readonly transport: 'auto' | 'embedded' | 'rclnodejs' | 'off';
  /** Null: the run begins. */
  readonly resume: ResumeState | null;
  readonly bootId: string | null;
  readonly listener: SourceListener;
}

const monotonicSeconds = (): number => performance.now() / 1000;

/** Opens the sources without starting them. Rejects with what to do if the requested transport cannot be used. */
export async function openSources(options: SourcesOptions): Promise<Sources> {
  const { bootId, listener, resume, subject, target } = options;
  const { rest } = subject;
  const node = target.node_name;
  return {
    ...(await openTopic(options)),
    events: new EventsSource({ rest, node, hertz: target.configured_hertz, listener, monotonicSeconds }),
    service: new ServiceObserver({ rest, node, supervisor: supervisorOf(subject), before: knownRun(resume), bootId, monotonicSeconds }),
    stored: storedScanner({ rest, node }),
    collected: target.data_folder === null ? null : collectedScanner({ dataFolder: target.data_folder }),
  };
}

async function openTopic({ domainId, listener, subject, target, transport }: SourcesOptions) {
  if (transport === 'off') return { topic: null, withoutTopic: 'requested with --transport off' };
  if (target.service_transport === 'off') return { topic: null, withoutTopic: 'the service is not on the ROS 2 graph' };
  const topic = await topicSubscription({
    transport,
    ros: subject.config.ros,
    domainId,
    node: target.node_name,
    listener,
    environment: process.env,
    dataFolder: target.data_folder,
  });
  return { topic, withoutTopic: '' };
}

function supervisorOf({ supervisor, unit }: Subject): Supervisor | null {
  if (supervisor !== null) return new ProcessSupervisor(supervisor);
  return unit === null ? null : new UnitSupervisor({ unit, environment: process.env });
}

function knownRun(resume: ResumeState | null): KnownRun | null {
  if (!resume?.service) return null;
  const { invocation, pid, started, version } = resume.service;
  return { started, version, pid, invocation, restarts: resume.unitRestarts, bootId: resume.serviceBootId };
}
