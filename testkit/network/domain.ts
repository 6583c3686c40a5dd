/**
 * DDS domains on the loopback interface of this machine, each used by one test at a time: participants of the same domain discover each
 * other, and their port numbers depend on the other participants.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ports } from '../../src/rtps/wire/protocol.ts';
import type { Teardown } from '../folder.ts';

/** Their ports (7400 + 250 × domain) are below 32768, the start of the kernel's ephemeral port range. */
const DOMAINS = Array.from({ length: 41 }, (_, i) => 60 + i);
const POLL_MS = 100;

/** Reserves a domain until the end of the test, across all test runs and ROS 2 systems on the machine. Waits while all are in use. */
export async function reserveDomain(t: Teardown, domains: readonly number[] = DOMAINS): Promise<number> {
  // Runs that start at the same time try different domains first.
  const first = process.pid % domains.length;
  for (;;) {
    for (const domain of [...domains.slice(first), ...domains.slice(0, first)]) {
      const release = await lock(`edge-health-test-domain-${domain}`);
      if (release && (await hasNoParticipants(domain))) {
        t.teardown(release);
        return domain;
      }
      release?.();
    }
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

/** Participants of any program, such as a robot's on this machine, share the port of the multicast group. */
async function hasNoParticipants(domain: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port: ports.metaMulticast(domain), exclusive: true });
    await once(socket, 'listening');
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  } finally {
    socket.close();
  }
}

/**
 * Binds an abstract Unix socket, whose name is unique in a network namespace and is released with the process.
 * Returns null if it is in use.
 */
async function lock(name: string): Promise<(() => void) | null> {
  const server = createServer();
  try {
    server.listen({ path: `\0${name}` });
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
  server.unref();
  return () => server.close();
}
