/** Floods of the service from other computers, and their effects on it. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { dropIn, mainPidOnHost, UNIT } from '../../../testkit/container/appliance.ts';
import type { Host } from '../../../testkit/network/network.ts';
import { longestGapSeconds } from '../../../testkit/weeks/losses.ts';
import { type FaultBench, pause, type ServiceProcess } from './bench.ts';

/**
 * The floods come from other computers, but use the processors of this one: the service has priority, so that the effect of the flood is
 * measured and not that of the missing CPU time.
 */
export const PRIORITY = { [dropIn('priority')]: '[Service]\nNice=-10\n' };

const HTTP = join(import.meta.dirname, 'flood-program.ts');
const POLL_MS = 250;
/** Share of MemoryMax of the unit. */
const MEMORY_SHARE = 0.8;
const LIMIT_SECONDS = 120;

/** A program in a host that prints `begins`, and a line of JSON at its end. */
export class FloodProgram {
  readonly #process: ChildProcess;
  #text = '';

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
    });
  }

  static async start(bench: FaultBench, host: Host, program: string, args: readonly string[]): Promise<FloodProgram> {
    const child = host.spawn('nice', ['-n', '19', process.execPath, program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const started = new FloodProgram(child);
    bench.teardown(() => child.kill('SIGKILL'));
    await bench.machine.until(
      () => started.#text.includes('\n') || child.exitCode !== null,
      LIMIT_SECONDS,
      () => `${program} ${args.join(' ')} does not begin`,
    );
    return started;
  }

  /** Waits for its end, or ends it now; returns its last line. */
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

export const flood = (bench: FaultBench, host: Host, kind: string, seconds: number): Promise<FloodProgram> =>
  FloodProgram.start(bench, host, HTTP, [kind, bench.lan.interface.address, String(seconds)]);

/** Another computer in the network of the machine. */
export function attacker(bench: FaultBench): Host {
  const host = bench.lan.network.host();
  bench.lan.segment.attach(host);
  return host;
}

/** The responses that a regular client got. */
interface Served {
  readonly served: number;
  readonly failed: number;
  readonly medianMs: number | null;
  readonly mostMs: number | null;
}

export interface Metered {
  readonly seconds: number;
  readonly missed: number;
  readonly mostBytes: number;
  readonly regular: Served;
  readonly recoverySeconds: number;
}

const SERVED_TARGET = 0.9;

/** The effect of a flood on the service, from its start until all is as before. */
export class FloodMeter {
  readonly #bench: FaultBench;
  readonly #pid: number;
  readonly #service: ServiceProcess;
  readonly #before: StatusDocument;
  readonly #beforeBytes: number;
  readonly #regular: FloodProgram;
  readonly #disconnections: number;
  readonly #beganMs = Date.now();
  readonly #timer: NodeJS.Timeout;
  #mostBytes = 0;

  private constructor(bench: FaultBench, pid: number, service: ServiceProcess, before: StatusDocument, regular: FloodProgram) {
    this.#bench = bench;
    this.#pid = pid;
    this.#service = service;
    this.#before = before;
    this.#regular = regular;
    this.#disconnections = bench.stream.disconnections;
    this.#beforeBytes = this.#resident();
    this.#timer = setInterval(() => {
      this.#mostBytes = Math.max(this.#mostBytes, this.#resident());
    }, POLL_MS);
    bench.teardown(() => clearInterval(this.#timer));
  }

  static async start(bench: FaultBench): Promise<FloodMeter> {
    const [pid, service] = [await mainPidOnHost(bench.machine), await bench.serviceProcess()];
    const before = await bench.appliance.status();
    return new FloodMeter(bench, pid, service, before, await flood(bench, bench.lan.neighbour, 'regular', 0));
  }

  /** Ends the flood: checks what had to hold meanwhile, and that all is as before. */
  async end(): Promise<Metered> {
    const bench = this.#bench;
    const endedMs = Date.now();
    const seconds = (endedMs - this.#beganMs) / 1000;
    const regular = await this.#regular.end<Served>(true);
    await bench.checkSameProcess(this.#service);
    const status = await bench.machine.untilJson<StatusDocument>('/status', () => true, LIMIT_SECONDS);
    const missed = status.publish.missed - this.#before.publish.missed;
    const taken = status.publish.samples - this.#before.publish.samples;
    bench.check('sampling continues', taken > missed, { taken, missed });
    bench.target('at most 1 % of the samples is missed', missed <= Math.max(1, (taken + missed) / 100), `${missed} of ${taken + missed}`);
    const mostBytes = Math.max(this.#mostBytes, this.#resident());
    const limit = Number(await bench.machine.show(UNIT, 'MemoryMax')) * MEMORY_SHARE;
    bench.check('memory stays below 80 % of MemoryMax', mostBytes < limit, `${(mostBytes / 1e6).toFixed(0)} MB`);
    const disconnected = bench.stream.disconnections - this.#disconnections;
    bench.check('the earlier client of the event stream is not disconnected', disconnected === 0, disconnected);
    const gap = longestGapSeconds(
      bench.stream.statuses.map(({ atMs }) => atMs),
      this.#beganMs,
      endedMs,
    );
    bench.target('it receives a status at least every 2 s', gap < 2, `${gap.toFixed(1)} s`);
    const share = regular.served / (regular.served + regular.failed);
    bench.check('a regular client on another computer is served', regular.served > 0, regular);
    bench.target('of its requests 90 % are served', share >= SERVED_TARGET, `${(share * 100).toFixed(0)} %`);
    const recoverySeconds = await this.#untilAsBefore(endedMs);
    clearInterval(this.#timer);
    return { seconds, missed, mostBytes, regular, recoverySeconds };
  }

  /** Waits until connections and open files are as many as before; returns after how many seconds. */
  async #untilAsBefore(endedMs: number): Promise<number> {
    const bench = this.#bench;
    const { process, rest, ros } = this.#before;
    let status = this.#before;
    const isAsBefore = async (): Promise<boolean> => {
      status = await bench.machine.untilJson<StatusDocument>('/status', () => true, LIMIT_SECONDS);
      return (
        status.rest.connections <= rest.connections + 2 &&
        status.rest.event_streams <= rest.event_streams + 1 &&
        (status.process.open_files ?? 0) <= (process.open_files ?? 0) + 4 &&
        (status.ros.peers ?? 0) <= (ros.peers ?? 0) + 1
      );
    };
    await bench.checkEventually('connections, streams, open files and participants are as many as before', isAsBefore, () =>
      JSON.stringify({
        rest: status.rest,
        files: status.process.open_files,
        peers: status.ros.peers,
        before: { rest, files: process.open_files, peers: ros.peers },
      }),
    );
    const recoverySeconds = (Date.now() - endedMs) / 1000;
    await pause(1);
    const grown = this.#resident() - this.#beforeBytes;
    bench.target('memory is as before, up to 60 MB', grown < 60e6, `${(grown / 1e6).toFixed(0)} MB more`);
    return recoverySeconds;
  }

  #resident(): number {
    try {
      return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.#pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
    } catch {
      return 0; // It has ended, which another check finds.
    }
  }
}

export function meterText({ missed, mostBytes, regular, seconds }: Metered): string {
  const served = `${regular.served} of ${regular.served + regular.failed} regular requests served (median ${regular.medianMs?.toFixed(0)} ms)`;
  return `${seconds.toFixed(0)} s: ${missed} samples missed, at most ${(mostBytes / 1e6).toFixed(0)} MB, ${served}`;
}
