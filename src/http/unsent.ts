import { readFile } from 'node:fs';
import type { Socket } from 'node:net';

/** Of the kernel's tables of TCP connections: what was handed to it, and the other end has not taken yet. By `connectionKey`, in bytes. */
export type Unsent = ReadonlyMap<string, number>;

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

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

/** Parses /proc/net/tcp or tcp6 (proc(5)): the connections to a port of this machine for which something waits. */
export function parseUnsent(text: string, port: number): [key: string, bytes: number][] {
  const ours = port.toString(16).toUpperCase().padStart(4, '0');
  return text.split('\n').flatMap((line): [string, number][] => {
    const row = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):/.exec(line);
    if (!row || row[1] !== ours) return [];
    return [[`${addressOfTable(row[2] ?? '')}:${Number.parseInt(row[3] ?? '', 16)}`, Number.parseInt(row[4] ?? '', 16)]];
  });
}

/** What waits in the kernel for the connections to a port. Where it does not tell, nothing. */
export async function readUnsent(port: number): Promise<Unsent> {
  const texts = TABLES.map(
    (file) => new Promise<string>((resolve) => readFile(file, 'latin1', (error, text) => resolve(error ? '' : text))),
  );
  return new Map((await Promise.all(texts)).flatMap((text) => parseUnsent(text, port)));
}
