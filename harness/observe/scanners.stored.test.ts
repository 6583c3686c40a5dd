import { Readable } from 'node:stream';
import fc from 'fast-check';
import t from 'tap';
import { isoUtc } from '../../src/core/time.ts';
import { SEED } from '../../testkit/effort.ts';
import { readStamps, storedScanner } from './scanners.ts';
import { refuse, serve } from './testing/server.ts';

fc.configureGlobal({ seed: SEED });

const FROM = Date.parse('2026-03-04T05:00:00.000Z');
const HEAD = 'cpu_percent,memory_percent,disk_percent,temperature,status,node_name,timestamp\r\n';
const row = (ms: number, name = 'robot'): string => `1.5,,3,,OK,${name},${isoUtc(ms)}\r\n`;

t.test('time stamps out of rows that come in pieces', async (t) => {
  const stamps = Array.from({ length: 30 }, (_, at) => FROM + at * 1000);
  for (const name of ['robot', '"a ""b"", c"', 'größe']) {
    const bytes = Buffer.from(HEAD + stamps.map((ms) => row(ms, name)).join(''));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 30 }), async (cuts) => {
        const found: number[] = [];
        const at = [0, ...cuts, bytes.length].sort((a, b) => a - b);
        await readStamps(Readable.from(at.slice(1).map((to, i) => bytes.subarray(at[i], to))), (ms) => found.push(ms));
        t.same(found, stamps);
      }),
      { numRuns: 20 },
    );
  }
});

t.test('another file, or half of one, is rejected', async (t) => {
  const read = (text: string): Promise<void> => readStamps(Readable.from([Buffer.from(text)]), () => undefined);
  await t.rejects(read('{"data":[]}\n'), /no CSV of health statuses/);
  await t.rejects(read(`${HEAD}1,2,3\r\n`), /no time stamp ends the row "1,2,3"/);
  await t.rejects(read(`${HEAD}${row(FROM).slice(0, -5)}`), /cut off/);
  await t.rejects(read(''), /cut off/);
  await t.rejects(read('x'.repeat(10_000)), /a row without an end/);
  await t.resolves(read(HEAD));
});

t.test('page after page of a range', async (t) => {
  const stamps = [0, 1, 2, 65, 66].map((second) => FROM + second * 1000);
  const { requests, rest } = await serve(t, ({ headers, url }, response) => {
    t.equal(headers.accept, 'text/csv');
    const page = Number(/cursor=(\d)/.exec(url ?? '')?.[1] ?? 0);
    response.writeHead(200, page < 2 ? { Link: `</health/history?cursor=${page + 1}>; rel="next"` } : {});
    response.end(
      HEAD +
        stamps
          .slice(page * 2, page * 2 + 2)
          .map((ms) => row(ms))
          .join(''),
    );
  });
  const found = await storedScanner({ rest, node: 'lab/robot 1' })(FROM, FROM + 3_600_000);
  t.match(found, {
    of: 'stored',
    count: 5,
    first: FROM,
    last: FROM + 66_000,
    longest_seconds: 63,
    gaps: [{ from: FROM + 2000, seconds: 63 }],
  });
  const query = 'node=lab%2Frobot+1&from=2026-03-04T05%3A00%3A00.000Z&to=2026-03-04T06%3A00%3A00.000Z&order=asc&limit=10000';
  t.same(requests, [`/health/history?${query}`, '/health/history?cursor=1', '/health/history?cursor=2']);
  t.match(await storedScanner({ rest, node: 'robot' })(FROM, FROM), { count: 0 }, 'an empty range needs no request');
  t.equal(requests.length, 3);
});

t.test('a store that cannot respond, or an incomplete response, gives no scan', async (t) => {
  let visit = 0;
  const { rest } = await serve(t, (_request, response) => {
    visit += 1;
    if (visit === 1) return refuse(response, 503, 'the store cannot answer');
    response.writeHead(200, visit === 3 ? {} : { Link: '</health/history?cursor=1>; rel="next"' });
    response.write(HEAD + row(FROM), () => response.destroy());
  });
  const scan = storedScanner({ rest, node: 'robot' });
  for (const what of ['503', 'cut off', 'cut off on the last page']) t.equal(await scan(FROM, FROM + 1000), null, what);
});
