import { LIMITS } from './limits.ts';

/** What an address has paid for, and what was sent there for it. */
interface Account {
  /** Octets that may be sent. */
  octets: number;
  /** Datagrams that were sent since a participant there was last proven. */
  datagrams: number;
  sentSeconds: number;
}

/** IPv4 and UDP headers, which whoever is sent to receives as well. */
const HEADER_OCTETS = 28;
/** An address that does not answer is sent to less and less often, so that its datagrams reach over the start of a slow participant. */
const FIRST_PAUSE_SECONDS = 0.1;
const LAST_PAUSE_SECONDS = 3;

/** Between the n-th datagram and the next one. */
export function pauseSeconds(n: number): number {
  return Math.min(FIRST_PAUSE_SECONDS * 2 ** (n - 1), LAST_PAUSE_SECONDS);
}

/**
 * The anti-amplification limit, as QUIC has it (RFC 9000, 8.1): an address at which no participant is proven is sent at most
 * `LIMITS.unprovenFactor` times the octets that came in the name of a participant there, and a few datagrams in all. It is kept for each
 * address, since anybody can invent any number of participants at the address of a victim.
 */
export class AmplificationLimit {
  readonly #accounts = new Map<string, Account>();

  /** Octets came from this address, or named it. Not many are saved up for later. */
  receive(address: string, octets: number): void {
    const account = this.#account(address);
    account.octets = Math.min(account.octets + LIMITS.unprovenFactor * octets, LIMITS.unprovenOctets);
  }

  /**
   * Counts a datagram to this address; false: it must not be sent. `isHeard`: datagrams came from there, not only in its name; so those who
   * only name an address cannot use up what its owner will need. `isUrgent`: not to be put off.
   */
  spend(address: string, octets: number, isHeard: boolean, isUrgent: boolean, nowSeconds: number): boolean {
    const account = this.#account(address);
    if (nowSeconds - account.sentSeconds > LIMITS.unprovenSeconds) account.datagrams = 0;
    const { datagrams, sentSeconds } = account;
    if (datagrams >= (isHeard ? LIMITS.unprovenDatagrams : LIMITS.unheardDatagrams)) return false;
    if (!isUrgent && datagrams > 0 && nowSeconds < sentSeconds + pauseSeconds(datagrams)) return false;
    if (!this.spendAtProven(address, octets)) return false;
    account.datagrams += 1;
    account.sentSeconds = nowSeconds;
    return true;
  }

  /** The same for an address at which another participant is proven: only the octets are counted. */
  spendAtProven(address: string, octets: number): boolean {
    const account = this.#account(address);
    if (account.octets < octets + HEADER_OCTETS) return false;
    account.octets -= octets + HEADER_OCTETS;
    return true;
  }

  /** A participant at this address is proven: its datagrams were welcome. */
  restart(address: string): void {
    this.#account(address).datagrams = 0;
  }

  #account(address: string): Account {
    const known = this.#accounts.get(address);
    if (known) return known;
    // The one that was named first: to make an address forgotten takes more than is won by it.
    if (this.#accounts.size >= LIMITS.unprovenAddresses) this.#accounts.delete(this.#accounts.keys().next().value as string);
    const account = { octets: 0, datagrams: 0, sentSeconds: Number.NEGATIVE_INFINITY };
    this.#accounts.set(address, account);
    return account;
  }
}
