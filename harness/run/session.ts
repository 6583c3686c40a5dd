import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TopicSubscription, topicSubscription } from '../../src/client/topic-subscription.ts';
import { installation } from '../../src/core/files/installation.ts';
import { readBootId } from '../../src/core/platform/boot-id.ts';
import { releaseProgramPages } from '../../src/core/platform/program-pages.ts';
import { formatDuration } from '../../src/core/time/duration.ts';
import type { Clocks } from '../../src/core/time/time.ts';
import { REQUIRED_SECONDS, type TestVerdict } from '../engine/judgement.ts';
import { ObserverClocks } from '../observe/clocks.ts';
import { Scans } from '../observe/coverage.ts';
import { type Discovered, discover, NoService } from '../observe/discover.ts';
import { EventsSource, type SourceListener } from '../observe/events.ts';
import { collectedScanner, storedScanner } from '../observe/scanners.ts';
import { ServiceObserver } from '../observe/service-observer.ts';
import { UnitSupervisor } from '../observe/unit-supervisor.ts';
import { type Clocked, type EndEntry, RECORD_VERSION, type Target } from '../record/entries.ts';
import { EXIT, Refusal } from './command.ts';
import type { Display, Progress } from './display.ts';
import { OwnUse } from './minute.ts';
import { Observation } from './observation.ts';
import { pollUntil } from './poll.ts';
import { Recorder } from './recorder.ts';
import type { ResumeState } from './resume-state.ts';
import { type Subject, type SubjectOptions, subjectOf } from './subject.ts';

export interface SessionOptions extends SubjectOptions {
  /** If null, the duration of an existing record applies, or else a week. */
  readonly durationSeconds: number | null;
  readonly transport: 'auto' | 'embedded' | 'rclnodejs' | 'off';
  /** Aborted when the run is to be stopped. */
  readonly signal: AbortSignal;
}

type EndReason = EndEntry['reason'];

/** Timeouts in seconds. A run is resumed even if the service does not respond. */
const WAIT = {
  /** For a response of a service that is starting, for the subscription to match, and for the first status to arrive. */
  begin: { response: 60, firstStatus: 15 },
  resume: { response: 5, firstStatus: 5 },
} as const;
/** How long the end of a run waits for the channels to agree, in seconds. */
const SETTLE_SECONDS: Readonly<Record<EndReason, number>> = { complete: 15, stopped: 4 };
const POLL_MS = 50;
const WRITE_RETRY_MS = 10_000;

type Found = Pick<Discovered, 'target' | 'machine' | 'domainId'>;

const monotonicSeconds = (): number => performance.now() / 1000;

/** The part of a run that one process observes. It resumes an unfinished run. */
export class Session {
  readonly #options: SessionOptions;
  readonly #display: Display;
  readonly #clocks: ObserverClocks;
  readonly #recorder: Recorder;
  readonly #ownUse = new OwnUse(releaseProgramPages);
  /** Without procfs, all boots count as one. */
  readonly #bootId = readBootId('/proc') ?? 'unknown';
  #observation: Observation | null = null;

  constructor(options: SessionOptions, display: Display, clocks: Clocks) {
    this.#options = options;
    this.#display = display;
    this.#clocks = new ObserverClocks({ clocks, onEvent: (kind, seconds) => this.#observation?.onClock(kind, seconds) });
    this.#recorder = new Recorder(() => clocks.monotonicSeconds());
  }

  /** The verdict on the entries so far. */
  verdict(): TestVerdict {
    return this.#recorder.verdict();
  }

  /** Starts or resumes the run of the folder, and observes it to its end. Returns null if it was stopped before it started. */
  async observe(): Promise<EndReason | null> {
    const resumed = this.#openUnfinished();
    const subject = await subjectOf(this.#options, (text) => this.#display.print(text));
    let isOver = false;
    try {
      const found = await this.#discover(subject, resumed);
      if (found === null) return null;
      this.#clocks.start();
      const reason = await this.#observe(subject, found, resumed);
      isOver = true;
      return reason;
    } finally {
      this.#clocks.stop();
      this.#recorder.close();
      // After an unexpected error, the next start resumes the run with the same service.
      if (isOver || resumed === null || this.#options.signal.aborted) await subject.supervisor?.stop();
    }
  }

  /** Opens the unfinished run of the folder, or returns null if there is none. */
  #openUnfinished(): ResumeState | null {
    const { durationSeconds, folder } = this.#options;
    const opened = this.#recorder.open(folder, durationSeconds, () => this.#clocks.now());
    if (opened === null) return null;
    const { reading, state, torn } = opened;
    const observed = `${formatDuration(this.#recorder.observedSeconds, 'h')} of ${formatDuration(state.plannedSeconds, 'h')} observed`;
    const tornLine = torn ? '; its last line was torn, which is recorded' : '';
    this.#display.print(`resuming the run in ${folder}: ${observed}, ${reading.entries} entries, head ${reading.head}${tornLine}`);
    return state;
  }

  /** Waits for the service. Returns null if stopped before it responded. */
  async #discover({ kind, rest, supervisor, unit }: Subject, resumed: ResumeState | null): Promise<Found | null> {
    const { signal } = this.#options;
    const formerMachine = resumed?.observer?.machine ?? null;
    this.#display.showStatus(`waiting for a response from ${rest.base}`);
    try {
      const seconds = WAIT[resumed ? 'resume' : 'begin'].response;
      const { dataFolderProblem, domainId, machine, target } = await discover({ rest, kind, unit, seconds, signal });
      if (dataFolderProblem !== null) this.#display.print(`warning: ${dataFolderProblem}`);
      return { target, machine: machine ?? formerMachine, domainId };
    } catch (error) {
      if (signal.aborted) return null;
      if (resumed?.target) return { target: resumed.target, machine: formerMachine, domainId: null };
      if (!(error instanceof NoService)) throw error;
      const log = supervisor === null ? '' : `\nlast lines of its log:\n${supervisor.lastLogLines()}`;
      throw new Refusal(EXIT.unavailable, `${error.message}${log}`);
    }
  }

  /** Observes on all channels. Returns null if stopped before the first entry. */
  async #observe(subject: Subject, found: Found, resumed: ResumeState | null): Promise<EndReason | null> {
    const { durationSeconds, folder, signal, transport } = this.#options;
    const { machine, target } = found;
    const plannedSeconds = resumed?.plannedSeconds ?? durationSeconds ?? REQUIRED_SECONDS;
    const withoutTopic = reasonWithoutTopic(transport, target);
    const scans = scansOf(subject, target, resumed, this.#clocks.now().wall);
    const observation = this.#createObservation(subject, target, plannedSeconds, resumed, scans);
    this.#observation = observation;
    const topic = withoutTopic === null ? await this.#subscribe(subject, found, observation) : null;
    const { configured_hertz: hertz, node_name: node } = target;
    const events = new EventsSource({ rest: subject.rest, node, hertz, listener: observation, monotonicSeconds });
    const stopSources = () => Promise.all([topic?.stop(), events.stop()]);
    await topic?.start();
    await events.start();
    // An observed span starts once each channel has delivered a status, or after the timeout.
    const { firstStatus } = WAIT[resumed ? 'resume' : 'begin'];
    await pollUntil(() => observation.hasReceived || signal.aborted, firstStatus, POLL_MS);
    if (signal.aborted) {
      await stopSources();
      return null;
    }
    const observer = {
      version: installation().version,
      transport: topic?.transport ?? ('off' as const),
      reason: topic?.reason ?? withoutTopic ?? '',
      machine,
    };
    await observation.begin((now) => {
      const stretch = { ...now, boot_id: this.#bootId, target, observer };
      if (resumed) {
        const entry = { type: 'resume', ...stretch } as const;
        resumed.add(entry);
        this.#recorder.write([entry]);
        return;
      }
      scans.beginAt(now.wall);
      const run = randomUUID();
      this.#recorder.create(folder, { type: 'begin', ...stretch, format: RECORD_VERSION, run, planned_seconds: plannedSeconds });
      this.#display.print(`observing ${node} at ${target.url} for ${formatDuration(plannedSeconds, 'h')}; record: ${folder}`);
    }, signal);
    const reason = signal.aborted ? 'stopped' : 'complete';
    await this.#display.pingDuring(observation.end(reason, SETTLE_SECONDS[reason]).then(() => this.#waitUntilWritten()));
    await stopSources();
    return reason;
  }

  #createObservation(
    { rest, supervisor, unit }: Subject,
    target: Target,
    plannedSeconds: number,
    resumed: ResumeState | null,
    scans: Scans,
  ): Observation {
    const { folder, transport } = this.#options;
    const recorder = this.#recorder;
    const progress = (now: Clocked): Progress => ({
      nodeName: target.node_name,
      url: target.url,
      folder,
      plannedSeconds,
      observedSeconds: observation.observedSeconds(now),
      gapSeconds: resumed?.gapSeconds ?? 0,
      judgements: recorder.judgements,
      restarts: (resumed?.serviceRestarts ?? 0) + observation.restarts,
      openAlerts: observation.openAlerts,
      entries: recorder.entries,
      head: recorder.head,
      problem: recorder.problem,
    });
    const observation = new Observation({
      plannedSeconds,
      recorder,
      hasTopic: reasonWithoutTopic(transport, target) === null,
      clocks: this.#clocks,
      wallMilliseconds: Date.now,
      service: new ServiceObserver({
        rest,
        node: target.node_name,
        supervisor: supervisor ?? (unit === null ? null : new UnitSupervisor({ unit, environment: process.env })),
        before: resumed?.knownRun ?? null,
        bootId: this.#bootId,
        monotonicSeconds,
      }),
      scans,
      openByTopic: resumed?.openByTopic ?? new Map(),
      ownUse: () => this.#ownUse.read(),
      onTick: (now) => this.#display.tick(() => progress(now)),
      onNote: (text) => this.#display.print(text),
    });
    return observation;
  }

  /** Throws Refusal with the remedy if the requested transport cannot be used. */
  async #subscribe({ config }: Subject, { domainId, target }: Found, listener: SourceListener): Promise<TopicSubscription | null> {
    const { transport } = this.#options;
    if (transport === 'off') return null;
    const { data_folder: dataFolder, node_name: node } = target;
    // The domain that the service reports is the one in use, even if its file has changed since.
    const ros = { ...config.ros, domain_id: domainId ?? config.ros.domain_id };
    try {
      return await topicSubscription({ transport, ros, node, listener, environment: process.env, dataFolder });
    } catch (error) {
      throw new Refusal(EXIT.unavailable, `cannot subscribe on the ROS 2 graph: ${(error as Error).message}`);
    }
  }

  /** Waits while the disk is full, because a run without its last entries is not complete. */
  async #waitUntilWritten(): Promise<void> {
    while (this.#recorder.problem !== null && !this.#options.signal.aborted) {
      this.#display.print(this.#recorder.problem);
      await sleep(WRITE_RETRY_MS);
      this.#recorder.check();
    }
  }
}

/** Why no topic is observed, or null if it is. */
function reasonWithoutTopic(transport: SessionOptions['transport'], target: Target): string | null {
  if (transport === 'off') return 'requested with --transport off';
  return target.service_transport === 'off' ? 'the service is not on the ROS 2 graph' : null;
}

function scansOf(
  { rest }: Subject,
  { data_folder: dataFolder, node_name: node }: Target,
  resumed: ResumeState | null,
  nowMs: number,
): Scans {
  const scanners = { stored: storedScanner({ rest, node }), collected: dataFolder === null ? null : collectedScanner({ dataFolder }) };
  const beganMs = resumed?.beganMs ?? nowMs;
  const { collected = null, stored = null } = resumed?.scannedUntil ?? {};
  return new Scans(scanners, { stored: stored ?? beganMs, collected: collected ?? beganMs });
}
