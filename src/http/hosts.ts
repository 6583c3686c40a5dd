import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import { Problem } from './problem.ts';

const MAX_SHOWN = 100;

/**
 * Checks the host name of requests against DNS rebinding: a malicious web page can have its own host name resolve to this machine's address
 * and would then read the API as its own origin. The browser still sends that name in the Host header.
 */
export class HostCheck {
  readonly #namesOfMachine: () => readonly string[];
  #allowed: ReadonlySet<string>;

  /** `namesOfMachine` is called for each request, because a machine can get its name after the service started. */
  constructor(namesOfMachine: () => readonly string[], allowed: readonly string[]) {
    this.#namesOfMachine = namesOfMachine;
    this.#allowed = lowerCased(allowed);
  }

  /** Sets the names allowed in addition to IP addresses, localhost and this machine's own names. */
  setAllowed(allowed: readonly string[]): void {
    this.#allowed = lowerCased(allowed);
  }

  /** Why a request is refused; null: it is allowed. The host of an absolute URL, as sent to a proxy, is checked like the header. */
  problemOf({ headers: { host }, httpVersion, rawHeaders, url = '' }: IncomingMessage): Problem | null {
    if (host === undefined && httpVersion === '1.1') return new Problem('malformed_request', 'the Host header is missing');
    // Node keeps the first of several Host headers; a proxy in front of the service may have checked another one.
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
