import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from '../../src/core/duration.ts';
import type { Clocks } from '../../src/core/time.ts';
import { installation } from '../../src/installation/installation.ts';
import { readBootId } from '../../src/system/boot-id.ts';
import { releaseProgramPages } from '../../src/system/program-pages.ts';
import type { TestVerdict } from '../engine/judgement.ts';
import { ObserverClocks } from '../observe/clocks.ts';
import { discover, NoService } from '../observe/discover.ts';
import {
  type Clocked,
  type EndEntry,
  type Machine,
  type Observer,
  RECORD_VERSION,
  type RecordEntry,
  type Target,
} from '../record/entries.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { RecordWriter } from '../record/writer.ts';
import { EXIT, Refusal } from './command.ts';
import type { Display, Progress } from './display.ts';
import { OwnUse } from './minute.ts';
import { Observation } from './observation.ts';
import { openSources } from './open-sources.ts';
import { Recorder } from './recorder.ts';
import { openUnfinished, ResumeState } from './resume-state.ts';
import { Scans } from './scans.ts';
import { type Subject, subjectOf } from './subject.ts';

export interface SessionOptions {
  readonly folder: string;
  /** Null: as in an existing record, else a week. */
  readonly durationSeconds: number | null;
  readonly url: string | null;
  readonly unit: string | null;
  readonly config: string | null;
  readonly transport: 'auto' | 'embedded' | 'rclnodejs' | 'off';
  readonly isCheckout: boolean;
  /** Aborted when the run is to be stopped. */
  readonly signal: AbortSignal;
}

type EndReason = EndEntry['reason'];

const WEEK_SECONDS = 604_800;
/** For a service that is starting. */
const RESPONSE_SECONDS = 60;
/** A run is resumed even if the service does not respond. */
const RESUME_RESPONSE_SECONDS = 5;
/** For the subscription to match, and the first status to arrive. */
const FIRST_STATUS_SECONDS = 15;
const RESUME_FIRST_STATUS_SECONDS = 5;
const SETTLE_SECONDS = 15;
const SETTLE_STOPPED_SECONDS = 4;
const POLL_MS = 50;
const PING_MS = 5000;
const WRITE_RETRY_MS = 10_000;

/** The observed service. */
interface Found {
  readonly target: Target;
  readonly machine: Machine | null;
  readonly domainId: number | null;
}

/** The part of a run that one process observes; it resumes an unfinished run. */
export class Session {
  readonly #options: SessionOptions;
  readonly #display: Display;
  readonly #clocks: ObserverClocks;
  readonly #recorder: Recorder;
  readonly #resume = new ResumeState();
  readonly #ownUse = new OwnUse(releaseProgramPages);
  /** Without procfs all boots count as one. */
  readonly #bootId = readBootId('/proc') ?? 'unknown';
  #writer: RecordWriter | null = null;
  #observation: Observation | null = null;

  constructor(options: SessionOptions, display: Display, clocks: Clocks) {
    this.#options = options;
    this.#display = display;
    this.#clocks = new ObserverClocks({ clocks, onEvent: (kind, seconds) => this.#observation?.onClock(kind, seconds) });
    this.#recorder = new Recorder(new EvidenceBuilder(), () => clocks.monotonicSeconds());
  }

  /** The verdict on the entries so far. */
  verdict(): TestVerdict {
    return this.#recorder.verdict();
  }

  /** Begins or resumes the run of the folder, and observes to its end. Null: it was stopped before it began. */
  async observe(): Promise<EndReason | null> {
    this.#openUnfinished();
    const isResumed = this.#writer !== null;
    const subject = await subjectOf({ ...this.#options, print: (text) => this.#display.print(text) });
    let isOver = false;
    try {
      const found = await this.#discover(subject, isResumed);
      if (found === null) return null;
      this.#clocks.start();
      const reason = await this.#observe(subject, found, isResumed);
      isOver = true;
      return reason;
    } finally {
      this.#clocks.stop();
      if (this.#writer) this.#recorder.close();
      // After an unexpected error the run is resumed by the next start, with the same service.
      if (isOver || !isResumed || this.#options.signal.aborted) await subject.supervisor?.stop();
    }
  }

  /** Opens the unfinished run of the folder, if there is one. Throws Refusal if there is a run that cannot be resumed. */
  #openUnfinished(): void {
    const onEntry = (entry: RecordEntry): void => {
      this.#resume.add(entry);
      this.#recorder.take([entry]);
    };
    const opened = openUnfinished({ ...this.#options, resume: this.#resume, clocks: () => this.#clocks.now(), onEntry });
    if (!opened) return;
    const { reading, torn, writer } = opened;
    this.#writer = writer;
    const observed = `${formatDuration(this.#recorder.observedSeconds, 'h')} of ${formatDuration(this.#resume.plannedSeconds, 'h')} observed`;
    const tornLine = torn ? '; its last line was torn, which is recorded' : '';
    this.#display.print(
      `resuming the run in ${this.#options.folder}: ${observed}, ${reading.entries} entries, head ${reading.head}${tornLine}`,
    );
  }

  async #discover(subject: Subject, isResumed: boolean): Promise<Found | null> {
    const { signal } = this.#options;
    const { kind, rest, supervisor, unit } = subject;
    this.#display.showStatus(`waiting for a response from ${rest.base}`);
    try {
      const { dataFolderProblem, machine, status, target } = await discover({
        rest,
        kind,
        unit,
        seconds: isResumed ? RESUME_RESPONSE_SECONDS : RESPONSE_SECONDS,
        signal,
      });
      if (dataFolderProblem !== null) this.#display.print(`warning: ${dataFolderProblem}`);
      return { target, machine: machine ?? this.#resume.observer?.machine ?? null, domainId: status.ros.domain_id };
    } catch (error) {
      if (signal.aborted) return null;
      if (isResumed && this.#resume.target !== null)
        return { target: this.#resume.target, machine: this.#resume.observer?.machine ?? null, domainId: null };
      const log = supervisor === null ? '' : `\nlast lines of its log:\n${supervisor.lastLogLines()}`;
      if (error instanceof NoService) throw new Refusal(EXIT.unavailable, `${error.message}${log}`);
      throw error;
    }
  }

  /** Observes with all sources. Null: stopped before the first entry. */
  async #observe(subject: Subject, { domainId, machine, target }: Found, isResumed: boolean): Promise<EndReason | null> {
    const { folder, signal, transport } = this.#options;
    const clocks = this.#clocks;
    const resume = this.#resume;
    const plannedSeconds = isResumed ? resume.plannedSeconds : (this.#options.durationSeconds ?? WEEK_SECONDS);
    // The observation is created from the sources, which deliver to it.
    const { collected, events, service, stored, topic, withoutTopic } = await openSources({
      subject,
      target,
      domainId,
      transport,
      resume: isResumed ? resume : null,
      bootId: this.#bootId,
      listener: {
        onStatus: (channel, status) => this.#observation?.onStatus(channel, status),
        onAlert: (channel, alert) => this.#observation?.onAlert(channel, alert),
        onNote: (text) => this.#observation?.onNote(text),
      },
    }).catch((error: Error) => {
      throw new Refusal(EXIT.unavailable, `cannot subscribe on the ROS 2 graph: ${error.message}`);
    });
    const begunMs = isResumed ? resume.beganMs : clocks.now().wall;
    const from = { stored: resume.scannedUntil.stored ?? begunMs, collected: resume.scannedUntil.collected ?? begunMs };
    const scans = new Scans({ scanners: { stored, collected }, from });
    const observation = new Observation({
      plannedSeconds,
      recordedSeconds: () => this.#recorder.observedSeconds,
      hasTopic: topic !== null,
      clocks,
      wallMilliseconds: Date.now,
      service,
      scans,
      openByTopic: resume.openByTopic,
      write: this.#recorder.write,
      check: () => this.#recorder.check(),
      ownUse: () => this.#ownUse.read(),
      onTick: (now) => this.#display.tick(() => this.#progress(observation, target, plannedSeconds, now)),
      onNote: (text) => this.#display.print(text),
    });
    this.#observation = observation;
    const stopSources = () => Promise.all([topic?.stop(), events.stop()]);
    await topic?.start();
    await events.start();
    await this.#waitForStatuses(observation, isResumed ? RESUME_FIRST_STATUS_SECONDS : FIRST_STATUS_SECONDS);
    if (signal.aborted) {
      await stopSources();
      return null;
    }
    const watcher: Observer = {
      version: installation().version,
      transport: topic?.transport ?? 'off',
      reason: topic?.reason ?? withoutTopic,
      machine,
    };
    await observation.begin((now) => {
      const entry = { ...now, boot_id: this.#bootId, target, watcher };
      if (this.#writer) {
        const resumeEntry = { type: 'resume' as const, ...entry };
        resume.add(resumeEntry);
        this.#recorder.begin(this.#writer);
        this.#recorder.write([resumeEntry]);
        return;
      }
      scans.beginAt(now.wall);
      const begin = { type: 'begin', ...entry, format: RECORD_VERSION, run: randomUUID(), planned_seconds: plannedSeconds } as const;
      this.#writer = RecordWriter.create(folder, begin);
      this.#recorder.begin(this.#writer);
      this.#recorder.take([begin]);
      this.#display.print(`observing ${target.node_name} at ${target.url} for ${formatDuration(plannedSeconds, 'h')}; record: ${folder}`);
    }, signal);
    const reason = signal.aborted ? 'stopped' : 'complete';
    const pinging = setInterval(() => this.#display.ping(), PING_MS);
    await observation.end(reason, reason === 'stopped' ? SETTLE_STOPPED_SECONDS : SETTLE_SECONDS);
    await this.#waitUntilWritten();
    clearInterval(pinging);
    await stopSources();
    return reason;
  }

  /** Waits while the disk is full: without its last entries the run is not complete. */
  async #waitUntilWritten(): Promise<void> {
    while (this.#recorder.problem !== null && !this.#options.signal.aborted) {
      this.#display.print(this.#recorder.problem);
      await sleep(WRITE_RETRY_MS);
      this.#recorder.check();
    }
  }

  /** A stretch begins once each channel delivers, or after the timeout. */
  async #waitForStatuses(observation: Observation, timeoutSeconds: number): Promise<void> {
    const timeoutAt = performance.now() + timeoutSeconds * 1000;
    while (!observation.hasReceived && !this.#options.signal.aborted && performance.now() < timeoutAt) await sleep(POLL_MS);
  }

  #progress(observation: Observation, target: Target, plannedSeconds: number, now: Clocked): Progress {
    const { entries, head, judgements, problem } = this.#recorder;
    return {
      nodeName: target.node_name,
      url: target.url,
      folder: this.#options.folder,
      plannedSeconds,
      observedSeconds: observation.observedSeconds(now),
      gapSeconds: this.#resume.gapSeconds,
      judgements,
      restarts: this.#resume.serviceRestarts + observation.restarts,
      openAlerts: observation.openAlerts,
      entries,
      head,
      problem,
    };
  }
}
