import { parentPort } from 'node:worker_threads';
import type { Request } from '../protocol.ts';
import '../worker.ts';

// The store's thread, for tests of its death: it dies when asked for the history of the node 'die now', or, asked for that
// of 'die at commit', with the next commit: after it is done, but maybe before anybody has heard of it.

let armed = false;

parentPort?.on('message', ({ operation, body }: Request) => {
  const node = operation === 'history' ? (body as Request<'history'>['body']).node : '';
  if (node === 'die now' || (armed && operation === 'commit')) throw new Error('killed by the test');
  if (node === 'die at commit') armed = true;
});
