import { networkInterfaces } from 'node:os';

/** Link-local: usable only with the name of an interface. */
const LINK_LOCAL = /^fe[89ab]/i;

/**
 * An address by which programs of this machine reach a server that listens on `host`. For all addresses (null, `::`, which includes IPv4, or
 * `0.0.0.0`) it is one that an interface has, loopback and IPv4 first: either address family can be switched off, also on `lo` alone.
 */
export function localAddress(host: string | null, interfaces = networkInterfaces): string {
  if (host !== null && host !== '::' && host !== '0.0.0.0') return host;
  const own = ownAddresses(interfaces).filter(
    ({ address, family }) => family === 'IPv4' || (host !== '0.0.0.0' && !LINK_LOCAL.test(address)),
  );
  const rank = ({ family, internal }: (typeof own)[number]): number => (internal ? 0 : 2) + (family === 'IPv4' ? 0 : 1);
  return own.sort((a, b) => rank(a) - rank(b))[0]?.address ?? '127.0.0.1';
}

/** Whether this machine has no network: no interface but loopback is up, or has a link. False where this cannot be determined. */
export function isOffline(interfaces = networkInterfaces): boolean {
  const own = ownAddresses(interfaces);
  return own.length > 0 && own.every(({ internal }) => internal);
}

/** Empty where a sandbox forbids the netlink sockets that list them. */
function ownAddresses(interfaces: typeof networkInterfaces): NonNullable<ReturnType<typeof networkInterfaces>[string]> {
  try {
    return Object.values(interfaces()).flatMap((addresses) => addresses ?? []);
  } catch {
    return [];
  }
}
