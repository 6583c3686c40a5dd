import { LIMITS } from '../limits.ts';

/** Octets allowed and datagrams sent, per address. */
interface Account {
  /** Octets that may still be sent. */
  octets: number;
  /** Datagrams sent since a participant was last proven at the address. */
  datagrams: number;
  sentSeconds: number;
}

/** IPv4 and UDP headers. */
const HEADER_OCTETS = 28;
/** Pauses double without a response, so that the few datagrams cover the start of a slow participant. */
const FIRST_PAUSE_SECONDS = 0.1;
const LAST_PAUSE_SECONDS = 3;

/** Pause between the n-th datagram and the next one. */
export function pauseSeconds(n: number): number {
  return Math.min(FIRST_PAUSE_SECONDS * 2 ** (n - 1), LAST_PAUSE_SECONDS);
}

/**
 * The anti-amplification limit, like that of QUIC (RFC 9000, 8.1): to an address without a proven participant at most
 * `LIMITS.unprovenFactor` times the octets are sent that were received from participants claiming it, and a few datagrams in total. The
 * limit is per address, since an attacker can invent any number of participants at the address of a victim.
 */
export class AmplificationLimit {
  readonly #accounts = new Map<string, Account>();

  /** Credits octets that were received from this address, up to `LIMITS.unprovenOctets`. */
  receive(address: string, octets: number): void {
    const account = this.#account(address);
    account.octets = Math.min(account.octets + LIMITS.unprovenFactor * octets, LIMITS.unprovenOctets);
  }

  /** Counts a datagram to this address; false: it must not be sent. `isUrgent`: without a pause. */
  spend(address: string, octets: number, isUrgent: boolean, nowSeconds: number): boolean {
    const account = this.#account(address);
    if (nowSeconds - account.sentSeconds > LIMITS.unprovenSeconds) account.datagrams = 0;
    const { datagrams, sentSeconds } = account;
    if (datagrams >= LIMITS.unprovenDatagrams) return false;
    if (!isUrgent && datagrams > 0 && nowSeconds < sentSeconds + pauseSeconds(datagrams)) return false;
    if (!this.spendAtProven(address, octets)) return false;
    account.datagrams += 1;
    account.sentSeconds = nowSeconds;
    return true;
  }

  /** The same for an address with another, proven participant: only the octets are limited. */
  spendAtProven(address: string, octets: number): boolean {
    const account = this.#account(address);
    if (account.octets < octets + HEADER_OCTETS) return false;
    account.octets -= octets + HEADER_OCTETS;
    return true;
  }

  /** Resets the count of datagrams, because a participant at this address was proven. */
  restart(address: string): void {
    this.#account(address).datagrams = 0;
  }

  #account(address: string): Account {
    const known = this.#accounts.get(address);
    if (known) return known;
    // The oldest account is dropped. Filling the table takes an attacker more datagrams than the dropped account allows again.
    if (this.#accounts.size >= LIMITS.unprovenAddresses) this.#accounts.delete(this.#accounts.keys().next().value as string);
    const account = { octets: 0, datagrams: 0, sentSeconds: Number.NEGATIVE_INFINITY };
    this.#accounts.set(address, account);
    return account;
  }
}
