/**
 * DDS domains on the loopback interface of this machine, each used by one test at a time: participants of the same domain find each
 * other, and take port numbers that depend on who else is there.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Teardown } from '../folder.ts';

/** Their ports (7400 + 250 × domain) end below 32768, where the kernel's choice for sockets without a port begins. */
const DOMAINS = Array.from({ length: 41 }, (_, i) => 60 + i);
const POLL_MS = 100;

/** Reserves one of these domains until the end of the test, also against other test runs; waits while all of them are in use. */
export async function reserveDomain(t: Teardown, domains: readonly number[] = DOMAINS): Promise<number> {
  // Runs that start at the same time begin at different ones.
  const first = process.pid % domains.length;
  for (;;) {
    for (const domain of [...domains.slice(first), ...domains.slice(0, first)]) {
      const release = await lock(`edge-health-test-domain-${domain}`);
      if (!release) continue;
      t.teardown(release);
      return domain;
    }
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}

/** An abstract Unix socket: there is one of a name in a network namespace, and it is gone with its process. Null: it is taken. */
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
