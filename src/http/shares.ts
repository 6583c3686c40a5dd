import { isIPv4, type Socket } from 'node:net';
import { isLocal, withoutMapping } from './context.ts';

/** Whose connection it is: an address or network, a user of this host (`user NAME`), or null: this host, with a user not known (yet). */
export type Client = string | null;

/** Local and remote end of a connection. */
export type Ends = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>;

/** Names of the users at the other ends of connections within this host; null: unknown. */
export type FindUsers = (connections: readonly Ends[]) => Promise<readonly (string | null)[]>;

/** Knows the client of each open connection. */
export interface Clients {
  clientOf(socket: Socket): Client;
  /** Determines the users of connections of this host. Takes up to a second, so it is called only where they make a difference. */
  lookUpUsers(): Promise<void>;
}

const USER = 'user ';
export const userClient = (name: string | null): Client => name && USER + name;

const isOfThisHost = (client: Client): boolean => client === null || client.startsWith(USER);

/**
 * The client of a connection as far as its addresses show it: an IPv4 address, a link-local IPv6 address with its interface (all hosts of a
 * link share fe80::/64), the /64 network of another IPv6 address, which one host can use, or this host.
 */
export function clientByAddress(ends: Ends): Client {
  if (isLocal(ends)) return null;
  const { remoteAddress = '' } = ends;
  const address = withoutMapping(remoteAddress);
  if (isIPv4(address) || /^fe[89ab]/i.test(address)) return address;
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

interface Limits {
  readonly max: number;
  /** Lower limit of the number for one client. */
  readonly leastShare: number;
  /** For this host beyond the maximum, so that remote clients cannot block local programs. */
  readonly reserved: number;
  /** Each user of this host may have this many whatever others have, so that no user can block the others. */
  readonly perUser: number;
}

/** Counts what each client has of something limited, and decides whether it may have one more. */
export class Shares {
  readonly #limits: Limits;
  readonly #counts = new Map<Client, number>();
  #total = 0;
  #ofThisHost = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  add(client: Client, change: 1 | -1 = 1): void {
    const count = this.#countOf(client) + change;
    if (count > 0) this.#counts.set(client, count);
    else this.#counts.delete(client);
    this.#total += change;
    if (isOfThisHost(client)) this.#ofThisHost += change;
  }

  /**
   * The maximum for a client, so that none blocks all others: half, because many users can share one NAT address, and for a user of this host
   * what is reserved for it as well.
   */
  shareOf(client: Client): number {
    const { leastShare, max, reserved } = this.#limits;
    const share = Math.min(max, Math.max(leastShare, Math.ceil(max / 2)));
    return isOfThisHost(client) ? share + reserved : share;
  }

  /** Whether what a client has may not be taken from it for another client. */
  isReserved(client: Client): boolean {
    const { perUser, reserved } = this.#limits;
    return isOfThisHost(client) && (this.#ofThisHost <= reserved || this.#countOf(client) <= perUser);
  }

  /** Whether the user of a client of this host must be known to decide, because one of its users may have too many. */
  needsUser(client: Client): boolean {
    return client === null && (this.#ofThisHost >= this.shareOf(null) || this.#isFullFor(null));
  }

  /** The limit that one more for a client would exceed: its share, or the maximum of all; null: none. */
  excessOf(client: Client): 'share' | 'max' | null {
    const count = this.#countOf(client) + 1;
    if (count > this.shareOf(client)) return 'share';
    const isGuaranteed = isOfThisHost(client) && count <= this.#limits.perUser;
    return !isGuaranteed && this.#isFullFor(client) ? 'max' : null;
  }

  #isFullFor(client: Client): boolean {
    const { max, reserved } = this.#limits;
    const ofThisHost = this.#ofThisHost + (isOfThisHost(client) ? 1 : 0);
    return this.#total + 1 - Math.min(ofThisHost, reserved) > max;
  }

  #countOf(client: Client): number {
    return this.#counts.get(client) ?? 0;
  }
}
