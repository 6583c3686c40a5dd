import { type IncomingMessage, request } from 'node:http';
import t, { type Test } from 'tap';
import type { HistoryPage, HistoryQuery } from '../../src/core/ports.ts';
import { HOUR_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { startInProcess, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { problemOf, sendRequest } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const ROWS = 35_000;
/** Long lines: the kernel buffers some megabytes for a reader before anything waits in the service. */
const NODE = '機'.repeat(255);
const CSV = { Accept: 'text/csv' };

const clocks = new TestClocks();
clocks.wallMs = Math.floor(Date.now() / HOUR_MS - 11) * HOUR_MS;
const remoteNodes = await startInProcess(t, temporaryFolder(t), clocks, { localNode: NODE });
const stamps: string[] = [];
await remoteNodes.run(ROWS, () => stamps.push(remoteNodes.measure().timestamp));
const service = remoteNodes as unknown as RunningService;
const contract = new Contract(await remoteNodes.json('/openapi.json'));

/** What the store is requested: pages, how many of them at once, and the longest one. */
const pages = { asked: 0, atOnce: 0, most: 0, longest: 0 };
const history = remoteNodes.store.history.bind(remoteNodes.store);
/** From this page on the store fails. */
let failsFrom = Number.POSITIVE_INFINITY;
remoteNodes.store.history = async (query: HistoryQuery): Promise<HistoryPage> => {
  pages.asked += 1;
  pages.atOnce += 1;
  pages.most = Math.max(pages.most, pages.atOnce);
  pages.longest = Math.max(pages.longest, query.limit);
  try {
    if (pages.asked >= failsFrom) throw new Error('the disk is gone');
    return await history(query);
  } finally {
    pages.atOnce -= 1;
  }
};
t.beforeEach(() => {
  Object.assign(pages, { asked: 0, atOnce: 0, most: 0, longest: 0 });
  failsFrom = Number.POSITIVE_INFINITY;
});

const stampsOf = (csv: string): string[] => {
  const lines = csv.split('\r\n');
  if (!lines[0]?.startsWith('cpu_percent,') || lines.at(-1) !== '') throw new Error('not a whole CSV file');
  return lines.slice(1, -1).map((line) => line.slice(line.lastIndexOf(',') + 1));
};

/** Without t.same: it takes seconds for so many. */
const sameStamps = (t: Test, found: readonly string[], wanted: readonly string[], what: string): void => {
  t.equal(found.length, wanted.length, what);
  t.equal(
    found.findIndex((stamp, i) => stamp !== wanted[i]),
    -1,
    `${what}: in order`,
  );
};

/** A download of which nothing has been read yet. */
const begin = (path: string): Promise<IncomingMessage> => {
  const { hostname, port } = new URL(remoteNodes.url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, headers: CSV, agent: false }, resolve).once('error', reject).end();
  });
};

/** Serves other requests until the download requests no page during twenty of them. */
const untilNoPageIsAsked = async (): Promise<void> => {
  for (let asked = -1; asked !== pages.asked; ) {
    asked = pages.asked;
    for (let n = 0; n < 20; n += 1) await remoteNodes.json('/health/aggregate?hours=1');
  }
};

t.test('CSV is the whole range in order, whatever its length, requested from the store page by page', async (t) => {
  for (const order of ['asc', 'desc']) {
    const answer = await sendRequest(service, 'GET', `/health/history?hours=24&order=${order}`, CSV);
    t.same(contract.violations('/health/history', answer), []);
    t.equal(answer.headers['link'], undefined, 'there is no further page');
    t.equal(answer.headers['truncated'], 'false');
    sameStamps(t, stampsOf(answer.body), order === 'asc' ? stamps : stamps.toReversed(), `every sample, ${order}`);
    t.equal(pages.most, 1, 'one page at a time');
    t.ok(pages.longest <= 10_000 && pages.asked > 3, `${pages.asked} pages of at most ${pages.longest}`);
  }
  const averages = await sendRequest(service, 'GET', '/health/history?hours=24&step=1s', CSV);
  t.equal(stampsOf(averages.body).length, ROWS, 'averages as well');
});

t.test('a slow reader delays nothing and fills no memory, and gets everything', async (t) => {
  const download = await begin('/health/history?hours=24');
  await untilNoPageIsAsked();
  const unread = pages.asked;
  t.ok(unread * pages.longest < ROWS, `${unread} pages of ${pages.longest} were asked`);
  download.setEncoding('utf8');
  let body = '';
  for await (const text of download) body += text;
  sameStamps(t, stampsOf(body), stamps, 'every sample');
  t.equal(pages.most, 1, 'one page at a time');
});

t.test('a client that disconnects ends the reading', async (t) => {
  const download = await begin('/health/history?hours=24');
  const { connections } = remoteNodes.rest.counts();
  download.destroy();
  await until('the connection is gone', () => remoteNodes.rest.counts().connections < connections);
  await untilNoPageIsAsked();
  t.ok(pages.asked * pages.longest < ROWS, `${pages.asked} pages of ${pages.longest} were asked`);
});

t.test('a failing store is a 503 before the first row, and cuts the connection after it', async (t) => {
  failsFrom = 1;
  const refused = await sendRequest(service, 'GET', '/health/history?hours=24', CSV);
  t.equal(refused.status, 503);
  t.match(problemOf(refused), { code: 'storage_unavailable', detail: /the disk is gone/ });
  failsFrom = pages.asked + 3;
  await t.rejects(sendRequest(service, 'GET', '/health/history?hours=24', CSV), { code: 'ECONNRESET' }, 'not a clean end');
});

t.test('HEAD returns only headers, and requests one page at most', async (t) => {
  const answer = await sendRequest(service, 'HEAD', '/health/history?hours=24', CSV);
  t.equal(answer.status, 200);
  t.match(answer.headers['content-type'], /^text\/csv/);
  t.equal(answer.body, '');
  t.ok(pages.asked <= 1);
});

t.test('with a limit CSV is one page, as JSON always is; both show whether there is more', async (t) => {
  const page = async (query: string, headers: Readonly<Record<string, string>> = {}): Promise<{ rows: number; truncated: unknown }> => {
    const answer = await sendRequest(service, 'GET', `/health/history?${query}`, headers);
    t.same(contract.violations('/health/history', answer), []);
    t.equal(answer.headers['link'] !== undefined, answer.headers['truncated'] === 'true', 'and where the rest is');
    const isCsv = answer.headers['content-type']?.startsWith('text/csv');
    return { rows: isCsv ? stampsOf(answer.body).length : JSON.parse(answer.body).count, truncated: answer.headers['truncated'] };
  };
  t.same(await page('hours=24&limit=5', CSV), { rows: 5, truncated: 'true' });
  t.same(await page('hours=24&limit=10000', CSV), { rows: 10_000, truncated: 'true' });
  t.same(await page(`from=${stamps.at(-5)}&to=${stamps.at(-1)}&limit=4`, CSV), { rows: 4, truncated: 'false' });
  t.same(await page('hours=24'), { rows: 10_000, truncated: 'true' });
  t.same(await page('hours=24&limit=7'), { rows: 7, truncated: 'true' });
  t.same(await page('hours=24&step=1h'), { rows: 10, truncated: 'false' });
});

t.test('the range is fixed when the download begins', async (t) => {
  const download = await begin('/health/history?hours=24');
  clocks.wallMs = Date.now() + 1;
  remoteNodes.measure();
  download.setEncoding('utf8');
  let body = '';
  for await (const text of download) body += text;
  t.equal(stampsOf(body).length, ROWS, 'without what was measured meanwhile');
});
