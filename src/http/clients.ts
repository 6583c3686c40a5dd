import type { IncomingMessage } from 'node:http';
import { isIPv4, type Socket } from 'node:net';

type Ends = Pick<Socket, 'localAddress' | 'remoteAddress'>;

const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** Whether a connection comes from this machine: from a loopback address, or from the same address that it was made to. */
export function isLocal({ localAddress, remoteAddress }: Ends): boolean {
  if (remoteAddress === undefined) return false;
  const address = withoutMapping(remoteAddress);
  return address === '::1' || address.startsWith('127.') || remoteAddress === localAddress;
}

/** Whether the client is a program on this machine, and not a proxy that forwards a request. */
export function isForThisMachine({ headers, socket }: IncomingMessage): boolean {
  return isLocal(socket) && headers['forwarded'] === undefined && headers['x-forwarded-for'] === undefined;
}

/** The key by which connections are counted per client: an IPv4 address, or the /64 network of an IPv6 address, which one host can use. */
export function clientOf({ remoteAddress = '' }: Ends): string {
  const [address = ''] = withoutMapping(remoteAddress).split('%');
  if (isIPv4(address)) return address;
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

/** The maximum for a single client, so that no host blocks all others. It is half, because many users can share one NAT address. */
export function shareOf(max: number, least: number): number {
  return Math.min(max, Math.max(least, Math.ceil(max / 2)));
}
