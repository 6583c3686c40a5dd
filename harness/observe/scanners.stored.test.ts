import t from 'tap';
import { isoUtc } from '../../src/core/time/time.ts';
import { storedScanner } from './scanners.ts';
import { refuse, serve } from './testing/server.ts';

const FROM = Date.parse('2026-03-04T05:00:00.000Z');
const HEAD = 'cpu_percent,memory_percent,disk_percent,temperature,status,node_name,timestamp\r\n';
const row = (ms: number, name = 'robot'): string => `1.5,,3,,OK,${name},${isoUtc(ms)}\r\n`;

t.test('an unexpected or incomplete file gives no scan', async (t) => {
  let body = '';
  const { rest } = await serve(t, (_request, response) => void response.end(body));
  const scan = storedScanner({ rest, node: 'robot' });
  for (body of ['{"data":[]}\n', `${HEAD}1,2,3\r\n`, `${HEAD}${row(FROM).slice(0, -5)}`, '', 'x'.repeat(10_000)])
    t.equal(await scan(FROM, FROM + 1000), null, body.slice(-20));
  body = HEAD;
  t.match(await scan(FROM, FROM + 1000), { count: 0 });
  body = `${HEAD}${row(FROM, '"a ""b"", c"')}${row(FROM + 500, 'größe')}`;
  t.match(await scan(FROM, FROM + 1000), { count: 2, first: FROM, last: FROM + 500 });
});

t.test('reads a range page by page', async (t) => {
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
