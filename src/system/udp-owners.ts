import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { readText, shared } from './shared-read.ts';

/**
 * Lists the UDP sockets of this machine with their users for a service in a user namespace, which sees most users as nobody: systemd starts
 * `cat` for each connection to this socket (edge-health-udp.socket), which belongs to the service's user alone.
 */
export const UDP_TABLE_SOCKET = '/run/edge-health-udp.sock';

/** A UDP socket, as the kernel lists it. */
export interface UdpSocket {
  readonly port: number;
  readonly uid: number;
  /** It receives from one sender alone, such as a name server. */
  readonly isConnected: boolean;
  /** Its number among all sockets of the machine. */
  readonly inode: number;
}

export interface UdpOwnersOptions {
  /** /proc of this process; another one in tests. */
  readonly proc?: string;
  /** Where the table with all users is read; null: nowhere. */
  readonly tableSocket: string | null;
}

/** A user that has no number in this user namespace; also the number of nobody (/proc/sys/kernel/overflowuid). */
const OVERFLOW_UID = 65_534;
const EVERY_USER = /^\s*0\s+0\s+4294967295\s*$/;
/** What is not answered by then cannot be told: the caller's answer is due within a second. */
const ANSWER_MS = 700;
const MAX_TABLE_CHARACTERS = 16 * 1024 * 1024;
/** Reading begins so often at most, however many callers there are: systemd starts a process for each connection. */
const PAUSE_MS = { own: 20, users: 250 } as const;
/** Numbers of sockets are given again, after four billion others. */
const KNOWN_FOR_MS = 60_000;

/** sl, local_address, rem_address, st, tx_queue:rx_queue, tr:tm->when, retrnsmt, uid, timeout, inode (proc(5)); udp6 has the same columns. */
const LINE = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) \S+ \S+ \S+ \S+ +(\d+) +\d+ (\d+) /gm;

/**
 * Reads the tables of IPv4 and IPv6, one behind the other. The addresses that sockets are bound to are left aside: a socket may send from any
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

/** Finds out which users the UDP sockets of this machine's network belong to. */
export class UdpOwners {
  readonly #seesEveryUser: boolean;
  /** The sockets as this process sees them, by their ports. */
  readonly #own: () => Promise<ReadonlyMap<number, readonly UdpSocket[]>>;
  /** Reads the table with all users anew. */
  readonly #readUsers: () => Promise<void>;
  /** The users of that table, by the numbers of the sockets: a socket keeps both as long as it is there. */
  #users: ReadonlyMap<number, number> = new Map();
  #usersReadMs = Number.NEGATIVE_INFINITY;

  constructor({ proc = '/proc', tableSocket }: UdpOwnersOptions) {
    this.#seesEveryUser = EVERY_USER.test(readFileSync(`${proc}/self/uid_map`, 'utf8'));
    const table = (name: string): Promise<string> => readText(`${proc}/self/net/${name}`, 'latin1');
    this.#own = shared(
      async () => Map.groupBy(parseUdpTables((await table('udp')) + (await table('udp6'))), ({ port }) => port),
      PAUSE_MS.own,
    );
    this.#readUsers = shared(async () => {
      const sockets = tableSocket === null ? [] : parseUdpTables(await readSocket(tableSocket));
      this.#users = new Map(sockets.map(({ inode, uid }) => [inode, uid]));
      this.#usersReadMs = performance.now();
    }, PAUSE_MS.users);
  }

  /**
   * The numbers of the users who have a socket on one of these ports; null: on one of them there is none that a participant can have, or its
   * user cannot be told.
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

/** What comes until the other side closes; empty: it is not there, or not done in time. */
function readSocket(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(path).setEncoding('latin1');
    let text = '';
    const timer = setTimeout(() => socket.destroy(), ANSWER_MS);
    let isWhole = false;
    socket.on('data', (part) => {
      text += part;
      if (text.length > MAX_TABLE_CHARACTERS) socket.destroy();
    });
    socket.once('end', () => {
      isWhole = true;
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(isWhole ? text : '');
    });
  });
}
