import { existsSync, writeFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { Reply, Request } from '../thread/protocol.ts';

// The store's thread for tests of its crash and of a disk that does not respond. Commands arrive as the node of a history query: 'crash
// now'; 'crash at commit', at the next commit, after it is done but possibly before its answer is received; 'hang until FILE', which blocks
// until the file exists, like a kernel call on a hanging disk; 'pause copy until FILE', the same after the first step of the next copy of
// the database, once FILE.paused exists.

const HANG = 'hang until ';
const PAUSE = 'pause copy until ';

let armed = false;
let continueCopy: string | null = null;

function standStillUntil(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

const port = parentPort;
if (!port) throw new Error('this program is a thread of a test');
const post = port.postMessage.bind(port);
port.postMessage = (reply: Reply): void => {
  post(reply);
  if (!('progress' in reply) || continueCopy === null) return;
  const file = continueCopy;
  continueCopy = null;
  writeFileSync(`${file}.paused`, '');
  standStillUntil(file);
};

await import('../thread/worker.ts');

port.on('message', ({ operation, body }: Request) => {
  const node = operation === 'history' ? (body as Request<'history'>['body']).node : '';
  if (node === 'crash now' || (armed && operation === 'commit')) throw new Error('crash requested by the test');
  if (node.startsWith(HANG)) standStillUntil(node.slice(HANG.length));
  if (node.startsWith(PAUSE)) continueCopy = node.slice(PAUSE.length);
  if (node === 'crash at commit') armed = true;
});
