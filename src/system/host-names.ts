import { readFile } from 'node:fs';
import { hostname } from 'node:os';
import { nullAfterTimeout } from '../core/platform/timeout.ts';

const HOSTS = '/etc/hosts';
const RESOLV_CONF = '/etc/resolv.conf';
/** Names may become known with the network, after the service started. */
const READ_AGAIN_MS = 10_000;
/** The same for a request to an unknown name, which waits for the result, but not for a hanging disk. */
const UNKNOWN_AGAIN_MS = 1000;
const ANSWER_SECONDS = 0.5;
/** How many machines of one name Avahi is expected to count. */
const NUMBERED = 9;

/**
 * The names by which clients may address this machine: its host name with and without its domain, with the search domains of
 * resolv.conf(5), in mDNS, and according to hosts(5). In mDNS, a number is appended if another machine has the name. No name server is queried.
 */
export class HostNames {
  readonly #own: () => string;
  readonly #files: readonly [hosts: string, resolvConf: string];
  #hosts: readonly (readonly string[])[] = [];
  #domains: readonly string[] = [];
  #readMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> = Promise.resolve();

  constructor(own: () => string = hostname, files: readonly [hosts: string, resolvConf: string] = [HOSTS, RESOLV_CONF]) {
    this.#own = own;
    this.#files = files;
  }

  /** The names as last read. The files are read in the background, so that a hanging disk does not block; the next call has the result. */
  names(): readonly string[] {
    this.#readAfter(READ_AGAIN_MS);
    const name = this.#own();
    const [short = ''] = name.split('.');
    if (short === '') return [];
    const own = [name, short, ...['local', ...this.#domains].map((domain) => `${short}.${domain}`), ...numberedNames(short)];
    return [...own, ...this.#hosts.filter((names) => names.some((one) => own.includes(one))).flat()];
  }

  /** For a request to a name that is not among them: reads the files again, at most once a second. Resolves when `names` has the result. */
  async readAgain(): Promise<void> {
    this.#readAfter(UNKNOWN_AGAIN_MS);
    await nullAfterTimeout(ANSWER_SECONDS, this.#reading);
  }

  #readAfter(ms: number): void {
    if (performance.now() - this.#readMs > ms) this.#reading = this.#read();
  }

  async #read(): Promise<void> {
    this.#readMs = performance.now();
    const [hosts, resolvConf] = await Promise.all(this.#files.map(linesOf));
    this.#hosts = hosts?.map((words) => words.slice(1)) ?? [];
    this.#domains = resolvConf?.flatMap(([keyword = '', ...domains]) => (/^(search|domain)$/.test(keyword) ? domains : [])) ?? [];
  }
}

/** Avahi's names after conflicts: robot-2.local for robot, robot-8.local for robot-7 (avahi_alternative_host_name). */
function numberedNames(short: string): string[] {
  const { 1: base = '', 2: number = '1' } = /^(.*?)(?:-(\d+))?$/.exec(short) ?? [];
  return Array.from({ length: NUMBERED }, (_, i) => `${base}-${Number(number) + 1 + i}.local`);
}

/** The words of each line without comments; empty for a file that cannot be read. */
function linesOf(file: string): Promise<string[][]> {
  return new Promise((resolve) => {
    readFile(file, 'utf8', (error, text) => {
      const lines = error ? [] : text.split('\n');
      resolve(lines.map((line) => (line.split(/[#;]/)[0] as string).trim().split(/\s+/)));
    });
  });
}
