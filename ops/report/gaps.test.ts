import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import { HOUR_MS, isoUtc, MINUTE_MS } from '../../src/core/time/time.ts';
import { NODE, STORAGE, statusDocument } from '../../testkit/service/status-document.ts';
import type { ServiceRow } from './collected.ts';
import { rowGaps, type StoredSamples, storedGaps } from './gaps.ts';
import type { Period } from './period.ts';
import { type ClockEvent, clockEvents, coverage, placeRows } from './timeline.ts';

const FROM = Date.parse('2026-03-01T00:00:00.000Z');
const HOUR: Period = { fromMs: FROM, toMs: FROM + HOUR_MS };
const BOOTED = 1000;

/** One row per minute from second 30 on, changed by `change`. */
function rowsOf(change: (row: ServiceRow, i: number) => Partial<ServiceRow> | null = () => ({})): ServiceRow[] {
  return Array.from({ length: 60 }, (_, i) => {
    const boot = BOOTED + 30 + 60 * i;
    const row: ServiceRow = {
      node: 'unit_7',
      ms: FROM + 30_000 + i * MINUTE_MS,
      answered: true,
      reason: '',
      readings: { cpu_percent: 1, memory_percent: 1, disk_percent: 1, temperature: null },
      bootId: 'kernel/1',
      bootSeconds: boot,
      monotonicSeconds: boot,
      version: '1',
      started: '2026-02-28T00:00:00.000Z',
      memoryBytes: 1,
      cpuSeconds: 1,
      hertz: 1,
      samples: 1,
      published: 1,
      open: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
    };
    const changed = change(row, i);
    return changed === null ? [] : [{ ...row, ...changed }];
  }).flat();
}

const gapsOf = (rows: ServiceRow[], hasEarlier = true) => {
  const placed = placeRows(rows, FROM);
  return rowGaps(placed, HOUR, hasEarlier, clockEvents(placed));
};

t.test('gaps between rows: suspends explain them, clock steps cause none, a reboot is noted', async (t) => {
  t.match(gapsOf(rowsOf()), { count: 60, covered: 1, gaps: [], longestSeconds: 60, unscannedSeconds: 0 });
  const suspended = rowsOf((row, i) => (i < 10 ? {} : i < 20 ? null : { monotonicSeconds: (row.monotonicSeconds ?? 0) - 600 }));
  t.match(gapsOf(suspended), { longestSeconds: 60, gaps: [{ seconds: 60, excused: 'suspended for 600 s', remark: '' }] });
  const forward = rowsOf((row, i) => (i < 10 ? {} : { ms: row.ms + 5 * MINUTE_MS }));
  t.match(gapsOf(forward), { longestSeconds: 60, gaps: [{ seconds: 60, excused: 'the clock was set forward by 300 s' }] });
  const back = rowsOf((row, i) => (i < 10 ? {} : { ms: row.ms - 5 * MINUTE_MS }));
  t.match(gapsOf(back), { longestSeconds: 330, gaps: [{ from: isoUtc(FROM + 54.5 * MINUTE_MS), seconds: 330 }] }, 'only that at the end');
  const rebooted = rowsOf((row, i) => (i < 10 ? {} : i < 15 ? null : { bootId: 'other/1', bootSeconds: (row.bootSeconds ?? 0) - 1800 }));
  t.match(gapsOf(rebooted), { longestSeconds: 360, gaps: [{ seconds: 360, excused: '', remark: 'the machine was off' }] });
  const late = rowsOf((_, i) => (i < 10 ? null : {}));
  t.match(gapsOf(late), { longestSeconds: 630, unscannedSeconds: 0, covered: 1 });
  t.match(gapsOf(late, false), { longestSeconds: 60, unscannedSeconds: 630, covered: 1 - 630 / 3600 }, 'collecting began then');
});

t.test('a container that is started again has another boot id and the same clock', async (t) => {
  const rows = placeRows(
    rowsOf((row, i) => (i < 10 ? {} : i < 20 ? null : { bootId: 'kernel/2', ms: row.ms + HOUR_MS })),
    FROM,
  );
  t.equal((rows[10]?.at ?? 0) - (rows[9]?.at ?? 0), 660, 'by the boot-time clock, not by the wall clock');
  t.match(coverage(rows, HOUR).gaps, [{ from: 570, to: 1230, kind: 'off' }]);
  const events = clockEvents(rows);
  t.same(
    events.map(({ kind, seconds }) => [kind, seconds]),
    [
      ['off', 0],
      ['step', 3600],
    ],
  );
});

/** A service with these samples, in pages of 100. */
async function read(t: Test, stamps: readonly number[], events: readonly ClockEvent[] = [], more = ''): Promise<StoredSamples> {
  const server = createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    if (pathname === '/status') {
      const status = { nodes: [{ ...NODE, node_name: 'unit_7' }], storage: { ...STORAGE, oldest_sample: isoUtc(FROM - HOUR_MS) } };
      response.end(JSON.stringify(statusDocument(status)));
      return;
    }
    const at = Number(searchParams.get('at') ?? 0);
    if (at + 100 < stamps.length) response.setHeader('Link', `</health/history?at=${at + 100}>; rel="next"`);
    const rows = stamps.slice(at, at + 100).map((ms) => `1,unit_7,OK,${isoUtc(ms)}\r\n`);
    response.end(`cpu_percent,node_name,status,timestamp\r\n${rows.join('')}${more}`);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const rest = new RestClient({ base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: null });
  return storedGaps(rest, 'unit_7', HOUR, { events, nowMs: HOUR.toMs + MINUTE_MS, signal: new AbortController().signal });
}

t.test('finds gaps between stored samples, across all pages', async (t) => {
  const stamps = Array.from({ length: 3600 }, (_, i) => FROM + i * 1000);
  t.match(await read(t, stamps), { problem: null, gaps: { count: 3600, covered: 1, gaps: [], longestSeconds: 1, unscannedSeconds: 0 } });
  const without = stamps.filter((_, i) => i < 1000 || i >= 1600);
  t.match(await read(t, without), { gaps: { longestSeconds: 601, gaps: [{ seconds: 601, excused: '' }] } });
  const event = { at: 1600, row: 1, earliest: FROM + 1570_000, latest: FROM + 1620_000 };
  const suspend: ClockEvent = { ...event, kind: 'suspend', seconds: 590 };
  t.match(await read(t, without, [suspend]), { gaps: { longestSeconds: 11, gaps: [{ seconds: 11, excused: 'suspended for 590 s' }] } });
  const forward: ClockEvent = { ...event, kind: 'step', seconds: 590 };
  t.match(await read(t, without, [forward]), { gaps: { gaps: [{ seconds: 11, excused: 'the clock was set forward by 590 s' }] } });
  const off: ClockEvent = { ...event, kind: 'off', seconds: 0 };
  t.match(await read(t, without, [off]), { gaps: { gaps: [{ seconds: 601, remark: 'the machine was off' }] } });
  const back: ClockEvent = { ...event, kind: 'step', seconds: -400 };
  t.match(
    await read(t, stamps, [back]),
    { gaps: { longestSeconds: 1, unscannedSeconds: 400 } },
    'samples of the time that came twice may hide a gap',
  );
  t.match(await read(t, []), { gaps: { count: 0, longestSeconds: 3600 } });
});

t.test('a response that is truncated or not CSV is a problem, not a gap', async (t) => {
  for (const more of ['1,unit_7,OK,2026-03-01T0', '1,unit_7,OK,yesterday\r\n'])
    t.match(await read(t, [FROM], [], more), { gaps: null, problem: /^no response from the service: .*history/ });
});
