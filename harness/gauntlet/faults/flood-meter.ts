import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mainPid } from '../../../bench/support/appliance.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { dropIn } from '../../../testkit/container/appliance.ts';
import type { Host } from '../../../testkit/network/network.ts';
import { longestSilenceSeconds } from '../account.ts';
import { type Arena, pause } from '../arena.ts';

/**
 * The floods come from other computers, but take the processors of the same one: the service goes before them, so that what is measured is
 * what they do to it and not what they take from it.
 */
export const PRECEDENCE = { [dropIn('precedence')]: '[Service]\nNice=-10\n' };

const HTTP = join(import.meta.dirname, 'flood-program.ts');
const WATCH_MS = 250;
/** MemoryMax of the unit is 256 MiB. */
const MOST_BYTES = 200e6;

/** A program in a host that says `begins`, and in the end a line of JSON. */
export class Told {
  readonly #process: ChildProcess;
  #text = '';

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
    });
  }

  static async start(arena: Arena, host: Host, program: string, args: readonly string[]): Promise<Told> {
    const told = new Told(host.spawn('nice', ['-n', '19', process.execPath, program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] }));
    arena.afterwards(() => told.#process.kill('SIGKILL'));
    await arena.machine.until(
      () => told.#text.includes('\n') || told.#process.exitCode !== null,
      20,
      () => `${program} ${args.join(' ')} does not begin`,
    );
    return told;
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** Waits for its end, or has it end; what it said last. */
  async end<T>(now: boolean): Promise<T> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const closed = once(this.#process, 'close');
      if (now) this.#process.kill('SIGTERM');
      await closed;
    }
    const line = this.#text.trim().split('\n').at(-1) ?? '';
    if (!line.startsWith('{')) throw new Error(`the program ended with ${this.#process.exitCode}: ${line}`);
    return JSON.parse(line) as T;
  }
}

export const flood = (arena: Arena, host: Host, kind: string, seconds: number): Promise<Told> =>
  Told.start(arena, host, HTTP, [kind, addressOf(arena), String(seconds)]);

export function addressOf(arena: Arena): string {
  const address = arena.lan?.interface.address;
  if (address === undefined) throw new Error('the machine has no network');
  return address;
}

/** Another computer in the network of the machine, which means no good. */
export function attacker(arena: Arena): Host {
  if (!arena.lan) throw new Error('the machine has no network');
  const host = arena.lan.network.host();
  arena.lan.segment.attach(host);
  return host;
}

interface Honest {
  readonly served: number;
  readonly failed: number;
  readonly medianMs: number | null;
  readonly mostMs: number | null;
}

export interface Metered {
  readonly seconds: number;
  readonly missed: number;
  readonly mostBytes: number;
  readonly honest: Honest;
  readonly backSeconds: number;
}

/** What a flood costs the machine: watched from its beginning to when all is as before. */
export class Meter {
  readonly #arena: Arena;
  readonly #pid: number;
  readonly #inside: number;
  readonly #restarts: number;
  readonly #before: StatusDocument;
  readonly #beforeBytes: number;
  readonly #honest: Told;
  readonly #cuts: number;
  readonly #beganMs = Date.now();
  readonly #timer: NodeJS.Timeout;
  #mostBytes = 0;

  private constructor(arena: Arena, pid: number, inside: number, restarts: number, before: StatusDocument, honest: Told) {
    this.#arena = arena;
    this.#pid = pid;
    this.#inside = inside;
    this.#restarts = restarts;
    this.#before = before;
    this.#honest = honest;
    this.#cuts = arena.stream.cuts;
    this.#beforeBytes = this.#resident();
    this.#timer = setInterval(() => {
      this.#mostBytes = Math.max(this.#mostBytes, this.#resident());
    }, WATCH_MS);
    arena.afterwards(() => clearInterval(this.#timer));
  }

  static async start(arena: Arena): Promise<Meter> {
    const neighbour = arena.lan?.neighbour;
    if (!neighbour) throw new Error('the machine has no network');
    const [pid, inside, restarts] = [await mainPid(arena.machine), await arena.appliance.mainPid(), await arena.appliance.restarts()];
    const before = await arena.appliance.status();
    return new Meter(arena, pid, inside, restarts, before, await flood(arena, neighbour, 'honest', 0));
  }

  get mostBytes(): number {
    return this.#mostBytes;
  }

  get openFiles(): number {
    return readdirSync(`/proc/${this.#pid}/fd`).length;
  }

  /** The flood is over: what had to hold, and what has to now. `servedShare`: of honest requests, how many had to be served meanwhile. */
  async end(servedShare: number): Promise<Metered> {
    const arena = this.#arena;
    const endedMs = Date.now();
    const seconds = (endedMs - this.#beganMs) / 1000;
    const honest = await this.#honest.end<Honest>(true);
    const isSame = (await arena.appliance.mainPid()) === this.#inside && (await arena.appliance.restarts()) === this.#restarts;
    arena.must(
      'the watchdog is content: the same process goes on',
      isSame,
      (await arena.machine.journal('edge-health')).split('\n').slice(-5),
    );
    const status = await arena.appliance.status();
    const missed = status.publish.missed - this.#before.publish.missed;
    const slots = status.publish.samples - this.#before.publish.samples + missed;
    arena.must('no more than 1 % of the slots is missed, or one', missed <= Math.max(1, slots / 100), `${missed} of ${slots}`);
    const most = Math.max(this.#mostBytes, this.#resident());
    arena.must('memory stays below 200 MB', most < MOST_BYTES, `${(most / 1e6).toFixed(0)} MB`);
    const silence = longestSilenceSeconds(
      arena.stream.statuses.map(({ atMs }) => atMs),
      this.#beganMs,
      endedMs,
    );
    arena.must(
      'who followed the events before is not cut off',
      arena.stream.cuts === this.#cuts && silence < 2,
      `${silence} s of silence, cut ${arena.stream.cuts - this.#cuts} times`,
    );
    const asked = honest.served + honest.failed;
    arena.must(`an honest client elsewhere is served, ${servedShare * 100} % of the times`, honest.served >= asked * servedShare, honest);
    const backSeconds = await this.#isAsBefore(endedMs);
    clearInterval(this.#timer);
    return { seconds, missed, mostBytes: most, honest, backSeconds };
  }

  /** Connections and open files are as many as before; after how many seconds. */
  async #isAsBefore(endedMs: number): Promise<number> {
    const arena = this.#arena;
    const { process, rest, ros } = this.#before;
    let status = this.#before;
    const isBack = async (): Promise<boolean> => {
      status = await arena.appliance.status();
      return (
        status.rest.connections <= rest.connections + 2 &&
        status.rest.event_streams <= rest.event_streams + 1 &&
        (status.process.open_files ?? 0) <= (process.open_files ?? 0) + 4 &&
        (status.ros.peers ?? 0) <= (ros.peers ?? 0) + 1
      );
    };
    await arena.mustBe('connections, streams, open files and participants are back to what they were', async () => {
      await arena.machine.until(isBack, 60, () =>
        JSON.stringify({
          rest: status.rest,
          files: status.process.open_files,
          peers: status.ros.peers,
          before: { rest, files: process.open_files, peers: ros.peers },
        }),
      );
      return true;
    });
    const backSeconds = (Date.now() - endedMs) / 1000;
    await pause(1);
    const grown = this.#resident() - this.#beforeBytes;
    arena.must('and memory, but for 60 MB', grown < 60e6, `${(grown / 1e6).toFixed(0)} MB more`);
    return backSeconds;
  }

  #resident(): number {
    try {
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.#pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
    } catch {
      return 0; // It has ended, which is noticed elsewhere.
    }
  }
}

export function told({ missed, mostBytes, honest, seconds }: Metered): string {
  const asked = honest.served + honest.failed;
  const served = `${honest.served} of ${asked} honest requests served (median ${honest.medianMs?.toFixed(0)} ms)`;
  return `${seconds.toFixed(0)} s: ${missed} slots missed, at most ${(mostBytes / 1e6).toFixed(0)} MB, ${served}`;
}
