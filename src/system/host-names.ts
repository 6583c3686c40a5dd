import { readFile } from 'node:fs';
import { hostname } from 'node:os';

const HOSTS = '/etc/hosts';
const RESOLV_CONF = '/etc/resolv.conf';
/** Names may become known with the network, after the service started. */
const READ_AGAIN_MS = 10_000;

/**
 * The names by which clients may address this machine: its host name with and without its domain, with the search domains of
 * resolv.conf(5), in mDNS, and according to hosts(5). No name server is queried.
 */
export class HostNames {
  readonly #own: () => string;
  readonly #files: readonly [hosts: string, resolvConf: string];
  #hosts: readonly (readonly string[])[] = [];
  #domains: readonly string[] = [];
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(own: () => string = hostname, files: readonly [hosts: string, resolvConf: string] = [HOSTS, RESOLV_CONF]) {
    this.#own = own;
    this.#files = files;
  }

  /** The names as last read. The files are read in the background, so that a hanging disk does not block; the next call has the result. */
  names(): readonly string[] {
    if (performance.now() - this.#readMs > READ_AGAIN_MS) void this.read();
    const name = this.#own();
    const [short = ''] = name.split('.');
    if (short === '') return [];
    const own = [name, short, ...['local', ...this.#domains].map((domain) => `${short}.${domain}`)];
    return [...own, ...this.#hosts.filter((names) => names.some((one) => own.includes(one))).flat()];
  }

  async read(): Promise<void> {
    this.#readMs = performance.now();
    const [hosts, resolvConf] = await Promise.all(this.#files.map(linesOf));
    this.#hosts = hosts?.map((words) => words.slice(1)) ?? [];
    this.#domains = resolvConf?.flatMap(([keyword = '', ...domains]) => (/^(search|domain)$/.test(keyword) ? domains : [])) ?? [];
  }
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
