import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { Problem } from './problem.ts';

const MAX_SHOWN = 100;

/**
 * Which names of the service requests may use. A foreign page can have a name of its own resolve to this machine's address (DNS rebinding)
 * and would then read the API as its own origin; the name that the browser sends as Host gives it away.
 */
export class HostCheck {
  readonly #namesOfMachine: () => readonly string[];
  #allowed: ReadonlySet<string>;

  /** `namesOfMachine` is asked at each request: a machine may be given its name late. */
  constructor(namesOfMachine: () => readonly string[], allowed: readonly string[]) {
    this.#namesOfMachine = namesOfMachine;
    this.#allowed = lowerCased(allowed);
  }

  /** Names allowed from now on beside addresses and this machine's own. */
  setAllowed(allowed: readonly string[]): void {
    this.#allowed = lowerCased(allowed);
  }

  /** Why a request is refused; null: it is not. The host of a whole URL, as a proxy gets it, counts as much as the header. */
  problemOf({ headers: { host }, httpVersion, rawHeaders, url = '' }: IncomingMessage): Problem | null {
    if (host === undefined && httpVersion === '1.1') return new Problem('malformed_request', 'the Host header is missing');
    // Node keeps the first of several; a proxy before it may have looked at another.
    if (rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1)
      return new Problem('malformed_request', 'there is more than one Host header');
    for (const given of [host, /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]]) {
      if (given === undefined || this.#isAllowed(given)) continue;
      const shown = JSON.stringify(given.slice(0, MAX_SHOWN));
      return new Problem('host_not_allowed', `${shown} is neither an address nor a name of this machine; add it to rest.allowed_hosts`);
    }
    return null;
  }

  #isAllowed(given: string): boolean {
    const { 1: address, 2: name = '' } = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::\d*)?$/.exec(given) ?? [];
    if (address !== undefined) return isIPv6(address);
    const host = name.toLowerCase().replace(/\.$/, '');
    return isIPv4(host) || /^(.+\.)?localhost$/.test(host) || this.#allowed.has(host) || lowerCased(this.#namesOfMachine()).has(host);
  }
}

function lowerCased(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase().replace(/\.$/, '')));
}
