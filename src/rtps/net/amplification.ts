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

  /** Octets that one datagram to this address may have; 0: none until another one is received. */
  allowance(address: string, nowSeconds: number): number {
    const account = this.#account(address);
    if (nowSeconds - account.sentSeconds > LIMITS.unprovenSeconds) account.datagrams = 0;
    return account.datagrams < LIMITS.unprovenDatagrams ? this.allowanceAtProven(address) : 0;
  }

  /** The same for an address with another, proven participant: only the octets are limited. */
  allowanceAtProven(address: string): number {
    return Math.max(0, this.#account(address).octets - HEADER_OCTETS);
  }

  /** Whether the next datagram to this address must wait, unless it is urgent. */
  isPausing(address: string, nowSeconds: number): boolean {
    const { datagrams, sentSeconds } = this.#account(address);
    return datagrams > 0 && nowSeconds < sentSeconds + pauseSeconds(datagrams);
  }

  /** Counts a datagram that is sent to this address; `isAtProven`: only its octets. */
  spend(address: string, octets: number, isAtProven: boolean, nowSeconds: number): void {
    const account = this.#account(address);
    account.octets -= octets + HEADER_OCTETS;
    if (isAtProven) return;
    account.datagrams += 1;
    account.sentSeconds = nowSeconds;
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
