import { close, open, read } from 'node:fs';
import type { Socket } from 'node:net';

/** Of the kernel's tables of TCP connections: what was handed to it, and the other end has not taken yet. By `connectionKey`, in bytes. */
export type Unsent = ReadonlyMap<string, number>;

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const READ_BYTES = 16 * 1024;

/** The address's 16 octets in hexadecimal; an IPv4 address as one that is mapped into IPv6. */
function addressKey(address: string): string {
  const [plain = ''] = address.split('%');
  const dotted = /^(?:.*:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  if (dotted) return `${'0'.repeat(20)}ffff${dotted.slice(1).map(octet).join('')}`;
  const [front = '', back] = plain.split('::');
  const groups = (text: string | undefined): string[] => (text ? text.split(':').map((group) => group.padStart(4, '0')) : []);
  const [head, tail] = [groups(front), groups(back)];
  return [...head, ...Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0000'), ...tail].join('').toLowerCase();
}

const octet = (value: string): string => Number(value).toString(16).padStart(2, '0');

/** What a connection is called among those to one port of this machine: the other end's address and port. */
export function connectionKey({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${addressKey(remoteAddress ?? '')}:${remotePort}`;
}

/** The kernel writes each 32 bits of an address as a number of this machine, little endian on all that we run on. */
function addressOfTable(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const address = words
    .map((word) => (word.match(/../g) ?? []).reverse().join(''))
    .join('')
    .toLowerCase();
  return words.length === 1 ? `${'0'.repeat(20)}ffff${address}` : address;
}

/**
 * Parses rows of /proc/net/tcp or tcp6 (proc(5)): the connections to a port of this machine, with what waits for each. Those in TIME_WAIT
 * (06), for which nothing can wait, are passed over: there may be a hundred thousand.
 */
export function parseUnsent(text: string, port: number): [key: string, bytes: number][] {
  const ours = port.toString(16).toUpperCase().padStart(4, '0');
  const row = new RegExp(`: [0-9A-F]+:${ours} ([0-9A-F]+):([0-9A-F]{4}) (?!06)[0-9A-F]{2} ([0-9A-F]{8}):`, 'g');
  return [...text.matchAll(row)].map(([, address = '', remotePort = '', bytes = '']) => [
    `${addressOfTable(address)}:${Number.parseInt(remotePort, 16)}`,
    Number.parseInt(bytes, 16),
  ]);
}

/** What waits in the kernel for the connections to a port. Where it does not tell, nothing. */
export async function readUnsent(port: number, tables: readonly string[] = TABLES): Promise<Unsent> {
  const unsent = new Map<string, number>();
  for (const table of tables) {
    for await (const rows of rowsOf(table)) {
      for (const [key, bytes] of parseUnsent(rows, port)) unsent.set(key, bytes);
    }
  }
  return unsent;
}

/**
 * A table in pieces of whole rows: after a flood of connections it has 25 MB for a minute. The kernel gives a page at a time, some in a
 * moment and some, with the connections all of the other family, only after milliseconds: so a thread of the pool waits for each.
 */
async function* rowsOf(table: string): AsyncGenerator<string> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  const file = await new Promise<number | null>((resolve) => open(table, 'r', (error, opened) => resolve(error ? null : opened)));
  if (file === null) return;
  const more = (): Promise<number> =>
    new Promise((resolve) => read(file, buffer, 0, READ_BYTES, null, (error, length) => resolve(error ? 0 : length)));
  try {
    let text = '';
    for (let length = await more(); length > 0; length = await more()) {
      text += buffer.toString('latin1', 0, length);
      const end = text.lastIndexOf('\n') + 1;
      yield text.slice(0, end);
      text = text.slice(end);
    }
    yield text;
  } finally {
    close(file);
  }
}
