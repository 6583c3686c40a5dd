import fc from 'fast-check';
import type { Fault } from './faults.ts';

const SEVERITIES = ['WARNING', 'ERROR', 'CRITICAL'] as const;

/** Any faults at all, within the first `seconds` of a run. Those that take the watcher or the machine away do not overlap. */
export function anyFaults(seconds: number, most = 6): fc.Arbitrary<Fault[]> {
  const at = fc.integer({ min: 1, max: seconds });
  const slots = fc.integer({ min: 1, max: Math.ceil(seconds / 10) });
  const short = fc.integer({ min: 1, max: Math.ceil(seconds / 10) });
  const small: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({ kind: fc.constant('lose' as const), at, slots, place: fc.constantFrom('sample', 'publish', 'deliver') }),
    fc.record({ kind: fc.constantFrom('duplicate' as const, 'reorder' as const), at, slots }),
    fc.record({ kind: fc.constant('mute' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('deaf' as const), way: fc.constantFrom('topic', 'events'), at, seconds: short }),
    fc.record({ kind: fc.constant('gap' as const), of: fc.constant('stored' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('blind' as const), of: fc.constantFrom('stored', 'collected'), at, seconds: short }),
    fc.record({
      kind: fc.constant('alert' as const),
      at,
      seconds: fc.option(short),
      severity: fc.constantFrom(...SEVERITIES),
      silent: fc.boolean(),
    }),
  );
  const large: fc.Arbitrary<Fault> = fc.oneof(
    fc.record({ kind: fc.constantFrom('restart' as const, 'suspend' as const, 'kill' as const, 'reboot' as const), at, seconds: short }),
    fc.record({ kind: fc.constant('stall' as const), at, seconds: fc.integer({ min: 2, max: 100 }), lost: fc.boolean() }),
    fc.record({
      kind: fc.constant('step' as const),
      at,
      seconds: fc.integer({ min: -4000, max: 4000 }).filter((step) => Math.abs(step) > 1),
    }),
  );
  const apart = fc.array(large, { maxLength: 3 }).map((faults) => {
    let free = 0;
    return [...faults]
      .sort((one, other) => one.at - other.at)
      .filter((fault) => {
        if (fault.at < free) return false;
        free = fault.at + ('seconds' in fault ? Math.max(0, fault.kind === 'step' ? 0 : (fault.seconds ?? 0)) : 0) + 200;
        return true;
      });
  });
  return fc.tuple(fc.array(small, { maxLength: most }), apart).map(([few, others]) => [...few, ...others]);
}
