import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { recordOf, type ShutdownRecord } from '../core/shutdown/shutdown.ts';
import { isoUtc } from '../core/time/time.ts';
import { RefusalTally } from './request-limit.ts';

let ids = 0;
function refusal(atSeconds = 0): ShutdownRecord {
  ids += 1;
  const call = { reason: `R${ids}`, requested_by: 'somebody', timeout: 1 };
  const decided = { action: 'dry-run', outcome: 'refused', message: `no ${ids}`, boot_id: null } as const;
  const request_id = String(ids).padStart(9, '0');
  return recordOf(call, { address: null, port: ids, user: null }, { ...decided, request_id, timestamp: isoUtc(atSeconds * 1000) });
}

t.test('the first refusals are recorded individually', async (t) => {
  const tally = new RefusalTally();
  for (let i = 0; i < 60; i += 1) {
    const record = refusal();
    t.equal(tally.add(record, 0), record);
  }
  t.equal(tally.due(), null);
  t.equal(tally.add(refusal(), 0), null, 'then they are aggregated');
  t.ok(tally.add(refusal(), 61), 'until time has passed');
});

t.test('a burst is one record with its count, first and last time, and last refusal', async (t) => {
  const tally = new RefusalTally();
  for (let i = 0; i < 60; i += 1) tally.add(refusal(), 0);
  const first = refusal(1);
  for (const record of [first, refusal(2), refusal(3)]) tally.add(record, 1);
  const due = tally.due();
  t.match(due, { request_id: first.request_id, timestamp: isoUtc(1000), ended: isoUtc(3000), calls: 3, reason: `R${ids}`, port: ids });
  t.match(due?.message, new RegExp(`^3 calls refused in a burst.* no ${ids}$`));
  t.equal(tally.due(), null, 'saved once');
  tally.add(refusal(4), 2);
  t.match(tally.due(), { request_id: first.request_id, calls: 4 }, 'the same record continues');
});

t.test('every call is in exactly one record, and an hour of bursts creates at most one record per minute', async (t) => {
  const steps = fc.array(fc.record({ calls: fc.integer({ min: 0, max: 300 }), seconds: fc.double({ min: 0, max: 900, noNaN: true }) }), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(steps, (list) => {
      const tally = new RefusalTally();
      const saved = new Map<string, number>();
      let now = 0;
      let calls = 0;
      const save = (record: ShutdownRecord | null): void => {
        if (record) saved.set(record.request_id, record.calls);
      };
      for (const step of list) {
        now += step.seconds;
        for (let i = 0; i < step.calls; i += 1) save(tally.add(refusal(now), now));
        calls += step.calls;
        if (step.calls % 2 === 0) save(tally.due());
      }
      save(tally.due());
      t.equal(
        [...saved.values()].reduce((sum, count) => sum + count, 0),
        calls,
      );
      t.ok(saved.size <= 61 + now / 60 + now / 3600 + 1);
    }),
    { numRuns: runs(15, 500), seed: SEED },
  );
});
