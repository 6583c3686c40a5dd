import { randomUUID } from 'node:crypto';
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
import type { Display } from './display.ts';
import { Looks } from './looks.ts';
import { OwnUse } from './own-use.ts';
import type { Standing } from './progress.ts';
import { Recorder } from './recorder.ts';
import { EXIT, Refusal } from './refusal.ts';
import { openUnfinished } from './resume.ts';
import { SoFar } from './so-far.ts';
import { openSources, type Sources, type SourcesOptions } from './sources.ts';
import { type Subject, subjectOf } from './subject.ts';
import { Watch } from './watch.ts';

export interface SessionOptions {
  readonly folder: string;
  /** Null: as the record that is there says, else a week. */
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
/** For a service that is just being started. */
const ANSWER_SECONDS = 60;
/** A run that is resumed goes on whether the service answers or not. */
const ANSWER_AGAIN_SECONDS = 5;
/** For the subscription to be matched, and the first status to come. */
const HEAR_SECONDS = 15;
const HEAR_AGAIN_SECONDS = 5;
const SETTLE_SECONDS = 15;
const SETTLE_STOPPED_SECONDS = 4;
const POLL_MS = 50;
const PING_MS = 5000;
const WRITE_AGAIN_MS = 10_000;

/** What there is to watch. */
interface Found {
  readonly target: Target;
  readonly machine: Machine | null;
  readonly domainId: number | null;
}

/** One process's part of a run: what is there already is gone on with. */
export class Session {
  readonly #options: SessionOptions;
  readonly #display: Display;
  readonly #clocks: ObserverClocks;
  readonly #recorder: Recorder;
  readonly #soFar = new SoFar();
  readonly #ownUse = new OwnUse(releaseProgramPages);
  /** Without procfs every boot is the same. */
  readonly #bootId = readBootId('/proc') ?? 'unknown';
  #writer: RecordWriter | null = null;
  #watch: Watch | null = null;

  constructor(options: SessionOptions, display: Display, clocks: Clocks) {
    this.#options = options;
    this.#display = display;
    this.#clocks = new ObserverClocks({ clocks, onEvent: (kind, seconds) => this.#watch?.onClock(kind, seconds) });
    this.#recorder = new Recorder(new EvidenceBuilder(), () => clocks.monotonicSeconds());
  }

  /** As the entries tell so far. */
  verdict(): TestVerdict {
    return this.#recorder.verdict();
  }

  /** Throws Refusal where there is a run that cannot be gone on with, and says so where one is. */
  resumeIfThere(): void {
    const onEntry = (entry: RecordEntry): void => {
      this.#soFar.add(entry);
      this.#recorder.take([entry]);
    };
    const opened = openUnfinished({ ...this.#options, soFar: this.#soFar, clocks: () => this.#clocks.now(), onEntry });
    if (!opened) return;
    const { reading, torn, writer } = opened;
    this.#writer = writer;
    const watched = `${formatDuration(this.#recorder.watchedSeconds, 'h')} of ${formatDuration(this.#soFar.plannedSeconds, 'h')} watched`;
    const was = torn ? '; its last line was cut off, which is noted in it' : '';
    this.#display.say(
      `going on with the run in ${this.#options.folder}: ${watched}, ${reading.entries} entries, head ${reading.head}${was}`,
    );
  }

  /** Watches to the end; how it ended. Null: it was stopped before it began. */
  async watch(): Promise<EndReason | null> {
    const { folder, isCheckout, signal } = this.#options;
    const isResumed = this.#writer !== null;
    const subject = await subjectOf({ ...this.#options, isCheckout, folder, say: (text) => this.#display.say(text) });
    let isOver = false;
    try {
      const found = await this.#discover(subject, isResumed);
      if (found === null) return null;
      this.#clocks.start();
      const watch = await this.#prepare(subject, found, isResumed);
      const reason = watch && (await watch());
      isOver = true;
      return reason;
    } finally {
      this.#clocks.stop();
      if (this.#writer) this.#recorder.close();
      // A run that failed for what nobody foresaw is tried again, and finds the service that it watched.
      if (isOver || !isResumed || signal.aborted) await subject.keeper?.stop();
    }
  }

  async #discover(subject: Subject, isResumed: boolean): Promise<Found | null> {
    const { signal } = this.#options;
    const { keeper, kind, rest, unit } = subject;
    this.#display.tell(`waiting for ${rest.base} to answer`);
    try {
      const { dataFolderProblem, machine, status, target } = await discover({
        rest,
        kind,
        unit,
        seconds: isResumed ? ANSWER_AGAIN_SECONDS : ANSWER_SECONDS,
        signal,
      });
      if (dataFolderProblem !== null) this.#display.say(`warning: ${dataFolderProblem}`);
      return { target, machine: machine ?? this.#soFar.watcher?.machine ?? null, domainId: status.ros.domain_id };
    } catch (error) {
      if (signal.aborted) return null;
      if (isResumed && this.#soFar.target !== null)
        return { target: this.#soFar.target, machine: this.#soFar.watcher?.machine ?? null, domainId: null };
      const words = keeper === null ? '' : `\nthe service said last:\n${keeper.lastWords()}`;
      if (error instanceof NoService) throw new Refusal(EXIT.unavailable, `${error.message}${words}`);
      throw error;
    }
  }

  /** Opens the sources, and returns what watches to the end; null: stopped before. */
  async #prepare(subject: Subject, { domainId, machine, target }: Found, isResumed: boolean): Promise<(() => Promise<EndReason>) | null> {
    const { folder, signal, transport } = this.#options;
    const clocks = this.#clocks;
    const soFar = this.#soFar;
    const plannedSeconds = isResumed ? soFar.plannedSeconds : (this.#options.durationSeconds ?? WEEK_SECONDS);
    // The sources speak to the watch, which is made of what they are.
    const sources = await this.#open({
      subject,
      target,
      domainId,
      transport,
      soFar: isResumed ? soFar : null,
      bootId: this.#bootId,
      listener: {
        onStatus: (by, status) => this.#watch?.onStatus(by, status),
        onAlert: (by, alert) => this.#watch?.onAlert(by, alert),
        onNote: (text) => this.#watch?.onNote(text),
      },
    });
    const { events, graph, service } = sources;
    const begunMs = isResumed ? soFar.beganMs : clocks.now().wall;
    const from = { stored: soFar.lookedUntil.stored ?? begunMs, collected: soFar.lookedUntil.collected ?? begunMs };
    const looks = new Looks({ sources: { stored: sources.stored, collected: sources.collected }, from });
    const watch = new Watch({
      plannedSeconds,
      recordedSeconds: () => this.#recorder.watchedSeconds,
      hasTopic: graph !== null,
      clocks,
      wallMilliseconds: Date.now,
      service,
      looks,
      openByTopic: soFar.openByTopic,
      write: this.#recorder.write,
      check: () => this.#recorder.check(),
      ownUse: () => this.#ownUse.read(),
      onBeat: (now) => this.#display.beat(() => this.#standing(watch, target, plannedSeconds, now)),
      onNote: (text) => this.#display.say(text),
    });
    this.#watch = watch;
    await graph?.start();
    await events.start();
    await this.#hear(watch, isResumed ? HEAR_AGAIN_SECONDS : HEAR_SECONDS);
    if (signal.aborted) {
      await Promise.all([graph?.stop(), events.stop()]);
      return null;
    }
    const watcher: Observer = {
      version: installation().version,
      transport: graph?.transport ?? 'off',
      reason: graph?.reason ?? sources.withoutGraph,
      machine,
    };
    return async () => {
      const entry = (now: Clocked) => ({ ...now, boot_id: this.#bootId, target, watcher });
      await watch.begin((now) => {
        if (this.#writer) {
          const resume = { type: 'resume' as const, ...entry(now) };
          soFar.add(resume);
          this.#recorder.begin(this.#writer);
          this.#recorder.write([resume]);
          return;
        }
        looks.beginAt(now.wall);
        const begin = {
          type: 'begin' as const,
          ...entry(now),
          format: RECORD_VERSION,
          run: randomUUID(),
          planned_seconds: plannedSeconds,
        } as const;
        this.#writer = RecordWriter.create(folder, begin);
        this.#recorder.begin(this.#writer);
        this.#recorder.take([begin]);
        this.#display.say(`watching ${target.node_name} at ${target.url} for ${formatDuration(plannedSeconds, 'h')}; record: ${folder}`);
      }, signal);
      const reason = signal.aborted ? 'stopped' : 'complete';
      const pinging = setInterval(() => this.#display.keepAlive(), PING_MS);
      await watch.end(reason, reason === 'stopped' ? SETTLE_STOPPED_SECONDS : SETTLE_SECONDS);
      await this.#written();
      clearInterval(pinging);
      await Promise.all([graph?.stop(), events.stop()]);
      return reason;
    };
  }

  async #open(options: SourcesOptions): Promise<Sources> {
    try {
      return await openSources(options);
    } catch (error) {
      throw new Refusal(EXIT.unavailable, `the ROS 2 graph cannot be listened to: ${(error as Error).message}`);
    }
  }

  /** A full disk is waited for: without its last entries the run would not be complete. */
  async #written(): Promise<void> {
    while (this.#recorder.problem !== null && !this.#options.signal.aborted) {
      this.#display.say(this.#recorder.problem);
      await pause(WRITE_AGAIN_MS);
      this.#recorder.check();
    }
  }

  /** Waits for the first statuses: a stretch begins with what listens. */
  async #hear(watch: Watch, seconds: number): Promise<void> {
    const deadline = performance.now() + seconds * 1000;
    while (!watch.isHeard && !this.#options.signal.aborted && performance.now() < deadline) await pause(POLL_MS);
  }

  #standing(watch: Watch, target: Target, plannedSeconds: number, now: Clocked): Standing {
    const { entries, head, judgements, problem } = this.#recorder;
    return {
      nodeName: target.node_name,
      url: target.url,
      folder: this.#options.folder,
      plannedSeconds,
      watchedSeconds: watch.watchedSeconds(now),
      absentSeconds: this.#soFar.absentSeconds,
      judgements,
      restarts: this.#soFar.restartsBefore + watch.restarts,
      openAlerts: watch.openAlerts,
      entries,
      head,
      problem,
    };
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}
