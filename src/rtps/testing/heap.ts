import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** Octets that are in use by objects and buffers, after what can be collected has been. */
export function heapOctets(): number {
  // Buffers are given back in the background of one collection, and counted by the next.
  gc();
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
