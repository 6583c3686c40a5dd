import { parentPort } from 'node:worker_threads';
import type { Request } from '../protocol.ts';
import '../worker.ts';

// The store's thread, for tests of its death: it dies when asked for the history of the node 'die now', or, asked for that
// of 'die at commit', with the next commit: after it is done, but maybe before anybody has heard of it. Asked for that of 'hang' it
// stands still for HANG_MS, as when the kernel does not come back from the disk.

/** Longer than a store waits until it says that its disk hangs. */
const HANG_MS = 6000;

let armed = false;

parentPort?.on('message', ({ operation, body }: Request) => {
  const node = operation === 'history' ? (body as Request<'history'>['body']).node : '';
  if (node === 'die now' || (armed && operation === 'commit')) throw new Error('killed by the test');
  if (node === 'hang') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HANG_MS);
  if (node === 'die at commit') armed = true;
});
