/**
 * The number of runs of a property test or a fuzzer: few in `npm test`, many with EDGE_HEALTH_LONG=1, which
 * `npm run test:system -- fuzz` sets. The seed is fixed so that failures are reproducible; EDGE_HEALTH_SEED=7 tries other values.
 *
 *     fc.assert(property, { numRuns: runs(100, 5000), seed: SEED });
 */
export const SEED = seedFrom(process.env['EDGE_HEALTH_SEED']);

const isLong = process.env['EDGE_HEALTH_LONG'] === '1';

/** The number of runs of this process: `quick`, or `long` with EDGE_HEALTH_LONG=1. */
export function runs(quick: number, long: number): number {
  return isLong ? long : quick;
}

function seedFrom(text: string | undefined): number {
  if (text === undefined || text === '') return 1;
  const seed = Number(text);
  if (!Number.isInteger(seed)) throw new Error(`EDGE_HEALTH_SEED is "${text}"; allowed: an integer`);
  return seed;
}
