import type { IncomingMessage } from 'node:http';
import { isIPv4, type Socket } from 'node:net';

type Ends = Pick<Socket, 'localAddress' | 'remoteAddress'>;

const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** Whether a connection comes from this machine: no other has its addresses, whichever of them the service listens on. */
export function isLocal({ localAddress, remoteAddress }: Ends): boolean {
  if (remoteAddress === undefined) return false;
  const address = withoutMapping(remoteAddress);
  return address === '::1' || address.startsWith('127.') || remoteAddress === localAddress;
}

/** Whether a program of this machine asks for itself, not a proxy for another. */
export function isForThisMachine({ headers, socket }: IncomingMessage): boolean {
  return isLocal(socket) && headers['forwarded'] === undefined && headers['x-forwarded-for'] === undefined;
}

/** What counts as one client: an IPv4 address, or the /64 network of an IPv6 address, all of which one host can use. */
export function clientOf({ remoteAddress = '' }: Ends): string {
  const [address = ''] = withoutMapping(remoteAddress).split('%');
  if (isIPv4(address)) return address;
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

/** One client's part of a maximum, so that no single host keeps all others out; a room of people behind one address needs that much. */
export function shareOf(max: number, least: number): number {
  return Math.min(max, Math.max(least, Math.ceil(max / 2)));
}
