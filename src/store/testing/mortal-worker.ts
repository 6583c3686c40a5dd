import { existsSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { Request } from '../protocol.ts';
import '../worker.ts';

// The store's thread, for tests of its death and of a disk that does not answer. What it does is asked for as the node of a history:
// 'die now'; 'die at commit', with the next commit, after it is done but maybe before its answer is received; 'hang until FILE', standing
// still until there is such a file, as when the kernel does not come back from the disk.

const HANG = 'hang until ';

let armed = false;

parentPort?.on('message', ({ operation, body }: Request) => {
  const node = operation === 'history' ? (body as Request<'history'>['body']).node : '';
  if (node === 'die now' || (armed && operation === 'commit')) throw new Error('killed by the test');
  if (node.startsWith(HANG)) while (!existsSync(node.slice(HANG.length))) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  if (node === 'die at commit') armed = true;
});
