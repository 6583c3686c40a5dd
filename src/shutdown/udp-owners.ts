import { OVERFLOW_UID, seesEveryUser } from '../core/platform/privileges.ts';
import { readText, shareReads } from '../core/platform/shared-read.ts';
import { readSocketTables } from '../core/platform/socket-tables.ts';

/** A UDP socket in the kernel's table. */
export interface UdpSocket {
  readonly port: number;
  readonly uid: number;
  /** Whether it receives only from one sender, such as a name server. */
  readonly isConnected: boolean;
  /** Identifies the socket among all sockets of the machine. */
  readonly inode: number;
}

export interface UdpOwnersOptions {
  /** /proc; another folder in tests. */
  readonly proc?: string;
  /** Socket that returns the table with all users; null: there is none. */
  readonly tableSocket: string | null;
}

/** Minimum time between two reads for any number of callers, because systemd starts a process for each connection. */
const PAUSE_MS = { own: 20, users: 250 } as const;
/** The kernel reuses inode numbers of sockets after four billion others. */
const KNOWN_FOR_MS = 60_000;

/** sl, local_address, rem_address, st, tx_queue:rx_queue, tr:tm->when, retrnsmt, uid, timeout, inode (proc(5)); same columns in udp6. */
const LINE = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) \S+ \S+ \S+ \S+ +(\d+) +\d+ (\d+) /gm;

/**
 * Parses the concatenated tables of IPv4 and IPv6. The local addresses of the sockets are ignored, because a socket may send from any
 * address of the machine (IP_PKTINFO).
 */
export function parseUdpTables(tables: string): UdpSocket[] {
  return [...tables.matchAll(LINE)].map(([, port = '', remotePort, uid, inode]) => ({
    port: Number.parseInt(port, 16),
    uid: Number(uid),
    isConnected: remotePort !== '0000',
    inode: Number(inode),
  }));
}

/** Determines the users of the UDP sockets of this machine. */
export class UdpOwners {
  readonly #seesEveryUser: boolean;
  /** The sockets with the user ids of this user namespace, by port. */
  readonly #own: () => Promise<ReadonlyMap<number, readonly UdpSocket[]>>;
  /** Reads the table with all users again. */
  readonly #readUsers: () => Promise<void>;
  /** User ids of that table by inode; both are constant for a socket. */
  #users: ReadonlyMap<number, number> = new Map();
  #usersReadMs = Number.NEGATIVE_INFINITY;

  constructor({ proc = '/proc', tableSocket }: UdpOwnersOptions) {
    this.#seesEveryUser = seesEveryUser(proc);
    const table = (name: string): Promise<string> => readText(`${proc}/self/net/${name}`, 'latin1');
    this.#own = shareReads(
      async () => Map.groupBy(parseUdpTables((await table('udp')) + (await table('udp6'))), ({ port }) => port),
      PAUSE_MS.own,
    );
    this.#readUsers = shareReads(async () => {
      const text = tableSocket === null ? '' : await readSocketTables(tableSocket, 'udp');
      this.#users = new Map(parseUdpTables(text).map(({ inode, uid }) => [inode, uid]));
      this.#usersReadMs = performance.now();
    }, PAUSE_MS.users);
  }

  /**
   * The ids of the users who have a socket on one of these ports. Null: one of the ports has no socket that a DDS participant could use, or
   * its user is unknown.
   */
  async usersOf(ports: readonly number[]): Promise<readonly number[] | null> {
    const own = await this.#own();
    if (!ports.every((port) => own.get(port)?.some(({ isConnected }) => !isConnected))) return null;
    const sockets = ports.flatMap((port) => own.get(port) ?? []);
    if (this.#seesEveryUser || sockets.every(({ uid }) => uid !== OVERFLOW_UID)) return unique(sockets.map(({ uid }) => uid));
    const isKnown = performance.now() - this.#usersReadMs < KNOWN_FOR_MS && sockets.every(({ inode }) => this.#users.has(inode));
    if (!isKnown) await this.#readUsers();
    const users = sockets.map(({ inode }) => this.#users.get(inode));
    return users.every((uid) => uid !== undefined) ? unique(users) : null;
  }
}

function unique(numbers: readonly number[]): readonly number[] {
  return [...new Set(numbers)];
}
