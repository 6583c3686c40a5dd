/** Runs in the network namespace of a container: relays connections to a socket from the test to a port of the container. */
import { connect, Server } from 'node:net';

if (process.argv[2] === undefined) throw new Error('usage: relay.ts PORT, with a server socket sent over IPC');
const port = Number(process.argv[2]);

process.on('message', (_message, server) => {
  if (!(server instanceof Server)) return;
  server.on('connection', (near) => {
    const far = connect(port, '127.0.0.1');
    near.pipe(far).pipe(near);
    // The end of either connection ends both; a refused connection counts as closed.
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
  });
  process.send?.('listening');
});
process.on('disconnect', () => process.exit());
