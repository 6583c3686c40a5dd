import type { AddressInfo } from 'node:net';
import type { StatusDocument } from '../http/api/schema.ts';
import type { OpenSocket } from '../system/open-sockets.ts';

type Port = StatusDocument['ports'][number];

/** DDSI-RTPS 2.2, 9.6.1: port parameters of a domain; samples use the odd ports. */
const FIRST_PORT = 7400;
const PORTS_PER_DOMAIN = 250;

/** Ports of this process that are reachable from outside, and their purpose. `domainId` null: not on the ROS 2 graph. */
export function servicePorts(rest: AddressInfo | null, sockets: readonly OpenSocket[], domainId: number | null): Port[] {
  const tcp: Port[] = rest === null ? [] : [{ protocol: 'tcp', address: rest.address, port: rest.port, purpose: 'REST API and dashboard' }];
  const others = sockets.map((socket): Port => {
    if (socket.protocol === 'unix')
      return { protocol: 'unix', address: socket.path, port: null, purpose: 'requests of this machine, such as edge-health nodes forget' };
    return { ...socket, purpose: purposeOf(domainId === null ? null : socket.port - FIRST_PORT - PORTS_PER_DOMAIN * domainId) };
  });
  return [...tcp, ...others.sort((a, b) => (a.port ?? Infinity) - (b.port ?? Infinity))];
}

/** Purpose of a UDP port by its offset within the domain's range. */
function purposeOf(offset: number | null): string {
  if (offset === null || offset < 0 || offset >= PORTS_PER_DOMAIN) return "ROS 2, sending from a port of the kernel's choice";
  return `ROS 2 ${offset % 2 === 0 ? 'discovery' : 'samples and services'}${offset < 2 ? ', multicast' : ''}`;
}
