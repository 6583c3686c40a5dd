import { once } from 'node:events';
import { join } from 'node:path';
import type { Alert } from '../../src/core/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { DAY_MS, isoUtc } from '../../src/core/time.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { Cleanup } from '../../testkit/cleanup.ts';
import { thisKernel, thisMachine } from '../../testkit/machine/machine-info.ts';
import { AlertLoad } from './alert-load.ts';
import { fillAlmost } from './fill.ts';
import { type Counted, type Findings, memoryRule } from './findings.ts';
import { Listening } from './listening.ts';
import { Meter } from './meter.ts';
import type { SoakOptions } from './options.ts';
import type { SoakPlace } from './place.ts';
import { Poller } from './poller.ts';
import type { Progress } from './progress.ts';
import { Sampling } from './sampling.ts';
import { CannotRun, NODE, type SoakedService, startService } from './service.ts';
import { StoredCount } from './stored.ts';
import { Way, type Window } from './way.ts';

/** What is on its way when the window ends has this long to arrive. */
const DRAIN_SECONDS = 5;
/** Beyond it time stamps do not tell the window any more. */
const CLOCK_MS = 100;
const LOOK_MS = 100;

/** Runs it; `interrupted` ends it early. Rejects with CannotRun where it cannot be. Whatever was started is ended. */
export async function soak(options: SoakOptions, place: SoakPlace, interrupted: AbortSignal, progress: Progress): Promise<Findings> {
  const cleanup = new Cleanup();
  try {
    return await new Soak(options, place, cleanup, progress).run(interrupted);
  } finally {
    await cleanup.end();
  }
}

class Soak {
  readonly #options: SoakOptions;
  readonly #place: SoakPlace;
  readonly #cleanup: Cleanup;
  readonly #progress: Progress;
  readonly #notes: string[] = [];
  readonly #window: Window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  readonly #ways = { topic: new Way(this.#window), events: new Way(this.#window), peer: new Way(this.#window) };
  #isAsked = false;

  constructor(options: SoakOptions, place: SoakPlace, cleanup: Cleanup, progress: Progress) {
    this.#options = options;
    this.#place = place;
    this.#cleanup = cleanup;
    this.#progress = progress;
  }

  async run(interrupted: AbortSignal): Promise<Findings> {
    const { hertz, maxMegabytes, samples } = this.#options;
    const maxBytes = maxMegabytes * 1e6;
    const dataFolder = join(this.#cleanup.folderOnDisk(), 'data');
    this.#progress.say('filling a database to its cap');
    const filled = fillAlmost(dataFolder, NODE, maxBytes);
    const load = new AlertLoad(this.#cleanup.folderInMemory(), this.#ways.events);
    const { options, place } = { options: this.#options, place: this.#place };
    const service = await startService({ options, place, cleanup: this.#cleanup, dataFolder, sysRoot: load.sysRoot });
    const died = this.#watchEnd(service);
    const listening = new Listening({ options, place, rest: service.rest, ways: this.#ways, onNote: (text) => this.#note(text) });
    try {
      await listening.start(interrupted);
      const begin = await service.rest.json<StatusDocument>('/status');
      const poller = new Poller(service.rest);
      this.#progress.say('asking it much, so that its memory settles');
      await poller.settle();
      const oldest = await this.#oldest(service);
      const meter = new Meter(service.pid, dataFolder, service.bornSeconds);
      const planned = samples / hertz;
      const begun = this.#begin(planned);
      const cpuBefore = meter.cpuSeconds;
      const ownBefore = process.cpuUsage();
      const stored = new StoredCount(service.rest, NODE, this.#window);
      const loadEnd = new AbortController();
      const turning = load.run(loadEnd.signal);
      meter.start();
      poller.start();
      stored.start();
      const sampling = new Sampling(service, hertz);
      await sampling.begin();

      await this.#wait(planned, begun, AbortSignal.any([interrupted, died.signal]), () => ({
        meter,
        stored,
        poller,
        ways: this.#ways,
        window: this.#window,
        turns: load.turns,
        maxBytes,
      }));
      const seconds = this.#end(begun, planned);
      await sampling.end();
      const cpuAfter = meter.cpuSeconds;
      const own = process.cpuUsage(ownBefore);
      loadEnd.abort();
      await Promise.all([turning, poller.stop(), pause(DRAIN_SECONDS * 1000)]);
      await stored.stop();
      await stored.look();
      meter.stop();
      // What could not be asked is missing evidence, and makes its checks INCOMPLETE.
      const end = await service.rest.json<StatusDocument>('/status').catch(() => null);
      const rest = await this.#changes(service).catch(() => null);
      for (const failure of poller.failures) this.#note(`not answered: ${failure}`);
      this.#isAsked = true;
      const isPeerThere = listening.peer === null;
      return {
        began: isoUtc(this.#window.fromMs),
        machine: thisMachine(),
        kernel: thisKernel(),
        version: begin.version,
        samples,
        hertz,
        transport: this.#options.transport,
        transportReason: begin.ros.reason,
        watcher: listening.watcher,
        place: this.#place.title,
        seconds,
        cutShort: seconds < planned && died.reason === null ? `interrupted after ${seconds.toFixed(0)} of ${planned.toFixed(0)} s` : null,
        died: died.reason,
        expected: Math.round(seconds * hertz),
        counted: [
          ...(this.#options.transport === 'off' ? [] : [counted('topic', 'Topic', this.#ways.topic, null)]),
          counted('events', 'Event stream', this.#ways.events, null),
          this.#countedStored(stored),
          counted('peer', 'Topic, independent subscriber', this.#ways.peer, listening.peer),
        ],
        sampling: sampling.result,
        samplesGivenUp: end === null ? null : end.storage.samples_lost - begin.storage.samples_lost,
        readings: meter.readings,
        ...memoryRule(planned),
        database: { maxBytes, filled, oldest: [oldest, await this.#oldest(service)] },
        alerts: {
          turns: load.turns,
          unanswered: load.unanswered,
          byWay: {
            topic: this.#options.transport === 'off' ? null : this.#ways.topic.episodes,
            events: this.#ways.events.episodes,
            rest,
            peer: isPeerThere ? this.#ways.peer.episodes : null,
          },
        },
        rest: poller.results(),
        cpuSeconds: cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore,
        watcherCpuSeconds: (own.user + own.system) / 1e6,
        notes: this.#notes,
      };
    } finally {
      this.#isAsked = true;
      load.close();
      await listening.stop();
    }
  }

  #note(text: string): void {
    this.#notes.push(text);
    this.#progress.say(text);
  }

  /** Opens the window a moment from now; when that is, in seconds of performance.now. */
  #begin(plannedSeconds: number): number {
    this.#window.fromMs = Date.now();
    this.#window.toMs = this.#window.fromMs + plannedSeconds * 1000;
    return performance.now() / 1000;
  }

  /** How long the window was; one that ended early is closed now. */
  #end(begunSeconds: number, plannedSeconds: number): number {
    const seconds = Math.min(plannedSeconds, performance.now() / 1000 - begunSeconds);
    if (seconds < plannedSeconds) this.#window.toMs = this.#window.fromMs + seconds * 1000;
    return seconds;
  }

  /** Until the planned time is over, or it is ended; a clock that is set ends it too, since time stamps tell the window. */
  async #wait(planned: number, begun: number, ended: AbortSignal, look: () => Parameters<Progress['show']>[2]): Promise<void> {
    const elapsed = (): number => performance.now() / 1000 - begun;
    let noted = false;
    while (elapsed() < planned && !ended.aborted) {
      await pause(LOOK_MS);
      this.#progress.show(elapsed(), planned, look());
      const off = Date.now() - this.#window.fromMs - elapsed() * 1000;
      if (Math.abs(off) > CLOCK_MS && !noted)
        this.#note(`the clock of this machine was set by ${off.toFixed(0)} ms: what was counted by time stamps is wrong by as much`);
      noted ||= Math.abs(off) > CLOCK_MS;
    }
  }

  #watchEnd({ child }: SoakedService): { signal: AbortSignal; reason: string | null } {
    const controller = new AbortController();
    const found: { signal: AbortSignal; reason: string | null } = { signal: controller.signal, reason: null };
    void once(child, 'exit').then(([code, signal]) => {
      if (this.#isAsked) return;
      found.reason = signal === null ? `exit code ${String(code)}` : String(signal);
      controller.abort();
    });
    return found;
  }

  #countedStored({ count, countedToMs }: StoredCount): Counted {
    const isWhole = countedToMs >= this.#window.toMs;
    return {
      way: 'stored',
      title: 'Stored history',
      count: isWhole ? count : null,
      sameStamp: null,
      instead: isWhole ? '' : `/health/history did not answer for what came after ${isoUtc(countedToMs)}`,
    };
  }

  /** The time stamp of the oldest sample that is still there as such; null: there is none, or no answer. */
  async #oldest({ rest }: SoakedService): Promise<string | null> {
    const query = new URLSearchParams({ order: 'asc', limit: '1', from: isoUtc(Date.now() - 30 * DAY_MS) });
    const { data } = await rest.json<{ data: readonly HealthStatus[] }>(`/health/history?${query}`).catch(() => ({ data: [] }));
    return data[0]?.timestamp ?? null;
  }

  /** What /alerts tells of the run's episodes, in the order of their changes. */
  async #changes({ rest }: SoakedService): Promise<Readonly<Record<string, readonly string[]>>> {
    const way = new Way(this.#window);
    const told: Alert[] = [];
    const query = new URLSearchParams({ node: NODE, changes: 'true', limit: '10000' });
    for (let path: string | null = `/alerts?${query}`; path !== null; ) {
      const { body, next }: { body: { data: readonly Alert[] }; next: string | null } = await rest.page(path);
      told.push(...body.data);
      path = next;
    }
    for (const alert of told.reverse()) way.onAlert(alert);
    return way.episodes;
  }
}

function counted(way: Counted['way'], title: string, heard: Way, instead: string | null): Counted {
  return {
    way,
    title,
    count: instead === null ? heard.count : null,
    sameStamp: instead === null ? heard.sameStamp : null,
    instead: instead ?? '',
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export { CannotRun };
