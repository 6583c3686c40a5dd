/** Runs in a container's network namespace: connections to a socket handed over by the test go on to a port of the container. */
import { connect, Server } from 'node:net';

if (process.argv[2] === undefined) throw new Error('usage: relay.ts PORT, with a server handed over');
const port = Number(process.argv[2]);

process.on('message', (_message, server) => {
  if (!(server instanceof Server)) return;
  server.on('connection', (near) => {
    const far = connect(port, '127.0.0.1');
    near.pipe(far).pipe(near);
    // Whoever ends ends both, and a refused connection is one that is closed.
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
  });
  process.send?.('listening');
});
process.on('disconnect', () => process.exit());
