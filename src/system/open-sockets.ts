import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A UDP port or a listening Unix socket of this process. */
export type OpenSocket =
  | { readonly protocol: 'udp'; readonly address: string; readonly port: number }
  | { readonly protocol: 'unix'; readonly path: string };

/** `__SO_ACCEPTCON` of the kernel: the socket is listening. */
const LISTENING = 0x10000;

/**
 * The sockets of this process, including those of its libraries, to which others can send. TCP is not included, because the kernel's table
 * can have 100,000 rows. `folder`: the process in procfs. If procfs does not show the sockets, the list is empty.
 */
export function openSockets(folder = '/proc/self'): OpenSocket[] {
  const own = ownInodes(folder);
  const rows = (table: string): string[][] =>
    lines(`${folder}/net/${table}`)
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const udp = ['udp', 'udp6'].flatMap(rows).filter((row) => own.has(row[9] ?? ''));
  const unix = rows('unix').filter((row) => own.has(row[6] ?? '') && row[7] !== undefined && Number.parseInt(row[3] ?? '', 16) & LISTENING);
  return [
    ...udp.map(([, local = '']): OpenSocket => {
      const [address = '', port = ''] = local.split(':');
      return { protocol: 'udp', address: addressOf(address), port: Number.parseInt(port, 16) };
    }),
    ...unix.map((row): OpenSocket => ({ protocol: 'unix', path: row.slice(7).join(' ') })),
  ];
}

/** Inodes of the descriptors that are sockets. */
function ownInodes(folder: string): Set<string> {
  const inodes = new Set<string>();
  for (const name of list(`${folder}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/fd/${name}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // The descriptor was closed meanwhile.
    }
  }
  return inodes;
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function lines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** The kernel prints each 32 bits of an address as a number in the machine's byte order, little endian on all supported machines. */
function addressOf(hex: string): string {
  const octets = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).reverse());
  if (octets.length === 4) return octets.map((octet) => Number.parseInt(octet, 16)).join('.');
  if (/^0*$/.test(hex)) return '::';
  return octets.join('').toLowerCase().match(/.{4}/g)?.join(':') ?? '';
}
