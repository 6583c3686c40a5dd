import { type Socket, SocketAddress } from 'node:net';
import { openLibc } from '../core/platform/libc.ts';
import { OVERFLOW_UID, seesEveryUser } from '../core/platform/privileges.ts';
import { readText } from '../core/platform/shared-read.ts';
import { readSocketTables, SOCKET_TABLES } from '../core/platform/socket-tables.ts';

type Ends = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>;

/** Other folders and another socket in tests. */
interface Places {
  readonly proc?: string;
  readonly etc?: string;
  readonly tables?: string;
}

/**
 * The users at the other ends of connections within this host; null: unknown. Users that this user namespace lacks are one user, nobody, over
 * a Unix socket.
 */
export function connectionUsers({ etc = '/etc', proc = '/proc', tables = SOCKET_TABLES }: Places = {}) {
  const isEveryUserSeen = seesEveryUser(proc);
  const read = (name: string): Promise<string> => readText(`${proc}/self/net/${name}`, 'latin1');
  return async (connections: readonly Ends[]): Promise<(string | null)[]> => {
    const outside = isEveryUserSeen ? '' : await readSocketTables(tables, 'all');
    const owners = await ownersOf(connections, outside || (await read('tcp')) + (await read('tcp6')));
    const isHidden = (uid: number | undefined): boolean => uid === OVERFLOW_UID && !isEveryUserSeen && outside === '';
    const uids = owners.map((uid, n) => (isHidden(uid) ? undefined : (uid ?? peerOf(connections[n] as Ends))));
    const files = await Promise.all([readText(`${etc}/passwd`, 'utf8'), readText(`${etc}/subuid`, 'utf8')]);
    return uids.map((uid) => (uid === undefined ? null : nameOf(uid, ...files)));
  };
}

/** Any user can open tens of thousands of connections; reading their rows must not delay a sample. */
const ROWS_AT_ONCE = 2000;

/** User ids of the sockets at the other ends; undefined: it has closed. */
async function ownersOf(connections: readonly Ends[], tables: string): Promise<(number | undefined)[]> {
  const key = (address = '', port = 0, otherAddress = '', otherPort = 0): string =>
    `${[plain(address), port, plain(otherAddress), otherPort]}`;
  const keys = connections.map(({ localAddress, localPort, remoteAddress, remotePort }) =>
    key(remoteAddress, remotePort, localAddress, localPort),
  );
  const wanted = new Set(keys);
  const ports = new Set(connections.map(({ remotePort }) => remotePort));
  const owners = new Map<string, number>();
  let rows = 0;
  const hex = (port = 0): string => port.toString(16).toUpperCase().padStart(4, '0');
  const served = [...new Set(connections.map(({ localPort }) => hex(localPort)))].join('|');
  // sl, local_address, rem_address, st, tx_queue:rx_queue, tr:tm->when, retrnsmt, uid, timeout, inode (proc(5)); same columns in tcp6.
  const line = new RegExp(`^ *\\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):(${served}) \\S+ \\S+ \\S+ \\S+ +(\\d+) +\\d+ (\\d+) `, 'gm');
  for (const [, address = '', port = '', other = '', otherPort = '', uid, inode] of tables.matchAll(line)) {
    rows += 1;
    if (rows % ROWS_AT_ONCE === 0) await new Promise(setImmediate);
    const [number, otherNumber] = [Number.parseInt(port, 16), Number.parseInt(otherPort, 16)];
    // A socket that its program has closed has no inode, and is shown as root's.
    if (inode === '0' || !ports.has(number)) continue;
    const found = key(addressOf(address), number, addressOf(other), otherNumber);
    if (wanted.has(found)) owners.set(found, Number(uid));
  }
  return keys.map((one) => owners.get(one));
}

/** socket(7) and unix(7); the same on every architecture supported by Node. */
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

/** The user id at the other end of a Unix socket, whose descriptor Node exposes only in the handle; undefined: it is none, or closed. */
function peerOf({ _handle: handle, remotePort }: Ends & { readonly _handle?: { readonly fd?: number } | null }): number | undefined {
  if (handle?.fd === undefined || remotePort !== undefined) return undefined;
  try {
    const { getsockopt } = openLibc({ getsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'buffer'], return: 'i32' } });
    const [credentials, length] = [Buffer.alloc(12), Buffer.from(Uint32Array.of(12).buffer)];
    return getsockopt(handle.fd, SOL_SOCKET, SO_PEERCRED, credentials, length) === 0 ? credentials.readUInt32LE(4) : undefined;
  } catch {
    return undefined;
  }
}

const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)|%.*$/gi, '');

/** The address of a table, whose 32-bit words are little-endian. */
function addressOf(hex: string): string {
  const octets = Buffer.from(hex, 'hex').swap32();
  if (octets.length === 4) return octets.join('.');
  const groups = octets.toString('hex').match(/.{4}/g) ?? [];
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

/** A user's name, or that of the user to whom a subordinate id belongs, with which it can run programs under thousands of ids. */
function nameOf(uid: number, passwd: string, subuid: string): string {
  const fields = (text: string): string[][] => text.split('\n').map((line) => line.split(':'));
  const named = (id: string): string | undefined => fields(passwd).find((entry) => entry[2] === id)?.[0];
  const owner = fields(subuid).find(([, first, count]) => uid >= Number(first) && uid < Number(first) + Number(count))?.[0];
  return named(String(uid)) ?? (owner === undefined ? String(uid) : (named(owner) ?? owner));
}
