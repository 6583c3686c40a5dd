import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** Octets in use by objects and buffers after a garbage collection. */
export function heapOctets(): number {
  // Buffers are released in the background of one collection, and counted by the next.
  gc();
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
