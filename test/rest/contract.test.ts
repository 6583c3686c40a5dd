import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { startInProcess } from '../../testkit/service/remote-nodes.ts';
import {
  measured,
  PATHS,
  problemOf,
  recorded,
  type StatusDocument,
  sendRequest,
  startService,
  stillWell,
} from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

const FIELDS = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature', 'status', 'node_name', 'timestamp'];

const machine = new MachineTree(t, 'vm-no-sensors');
machine.setMemoryPercent(25);
const config = { publish_frequency: 20, alerts: { raise_after_seconds: 0 } };
const service = await startService(t, { config, arguments: machine.arguments });
await measured(service);
const contract = await Contract.of(service);

/** One sample in a thousand seconds, so that what is current stays current. */
const still = await startService(t, { config: { publish_frequency: 0.001 } });
await measured(still);

t.test('history and statistics match the measured values', async (t) => {
  await recorded(service, 30);
  type History = { data: { timestamp: string; memory_percent: number | null }[]; count: number };
  const { data } = await service.json<History>('/health/history');
  // A reading that is late on a busy machine is unavailable, but never another value.
  const readings = data.map(({ memory_percent }) => memory_percent).filter((percent) => percent !== null);
  t.ok(readings.length > 0);
  for (const percent of readings) t.equal(percent, 25);
  const [from, to] = [data[5]?.timestamp as string, data.at(-1)?.timestamp as string];
  const inside = data.filter(({ timestamp }) => timestamp >= from && timestamp < to);
  const part = await service.json<History>(`/health/history?from=${from}&to=${to}`);
  t.same(part.data, inside, 'from is inclusive, to exclusive');
  const newest = await service.json<History>(`/health/history?from=${from}&to=${to}&order=desc`);
  t.same(newest.data, part.data.toReversed(), 'newest first on request');
  type Aggregate = {
    samples_received: number;
    metrics: { memory_percent: { min: number; max: number; mean: number; p50: number }; temperature: { mean: null } };
  };
  const aggregate = await service.json<Aggregate>(`/health/aggregate?from=${from}&to=${to}`);
  t.equal(aggregate.samples_received, inside.length);
  t.match(aggregate.metrics.memory_percent, { min: 25, max: 25, mean: 25 });
  t.ok(Math.abs(aggregate.metrics.memory_percent.p50 - 25) <= 0.1, 'p50 is true to 0.1');
  t.equal(aggregate.metrics.temperature.mean, null, 'what was never measured has no mean');
});

t.test('every body conforms to /openapi.json', async (t) => {
  machine.setMemoryPercent(97);
  await service.until<{ count: number }>('/alerts', ({ count }) => count > 0);
  await service.until<StatusDocument>('/status', ({ host, publish }) => host !== null && publish.measured_hertz !== null);

  t.equal(contract.document.openapi, '3.1.0');
  t.same(Object.keys(contract.document.paths), PATHS, 'it describes every path, and no other');
  for (const path of [
    '/health',
    '/health/history',
    '/health/history?step=1s',
    '/health/history?from=2020-01-01&to=2020-01-02',
    '/health/aggregate',
    '/health/aggregate?hours=1&by=minute',
    '/health/aggregate?from=0000-01-01&to=9999-12-31',
    '/alerts',
    '/alerts?changes=true',
    '/status',
    '/metrics',
    '/openapi.json',
  ]) {
    const answer = await sendRequest(service, 'GET', path);
    t.equal(answer.status, 200, path);
    t.same(contract.violations(path.split('?')[0] as string, answer), [], `${path} keeps to the document`);
  }

  const events = await EventReader.open(service.url);
  t.equal(events.status, 200);
  await events.untilCount(3);
  events.close();
  const schema = { $ref: '#/components/schemas/HealthStatus' };
  for (const status of events.health()) t.same(contract.schemaViolations(schema, status), []);
});

t.test('the document is not merely permissive: violations are reported', async (t) => {
  const status = await measured(service);
  const schema = { $ref: '#/components/schemas/HealthStatus' };
  t.same(contract.schemaViolations(schema, status), []);
  t.not(contract.schemaViolations(schema, { ...status, extra: 1 }).length, 0, 'one field more');
  t.not(contract.schemaViolations(schema, { ...status, cpu_percent: '1' }).length, 0, 'text for a number');
  t.not(contract.schemaViolations(schema, { ...status, timestamp: 'yesterday' }).length, 0, 'no time');
  t.not(contract.schemaViolations(schema, { ...status, status: 'FINE' }).length, 0, 'no such status');
  t.same(contract.violations('/health', { status: 418, headers: {}, body: '' }), ['status 418 is not documented']);
});

t.test('bodies have exactly the fields of the specification', async (t) => {
  machine.setMemoryPercent(97);
  const health = await measured(service);
  t.same(Object.keys(health), FIELDS, '/health has the seven fields, in order');
  t.equal(health.node_name, 'health_monitor');
  t.match(health.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.equal(health.temperature, null, 'a metric that cannot be read is null, not 0');
  const alerts = await service.until<{ data: object[]; count: number }>('/alerts', ({ count }) => count > 0);
  t.same(Object.keys(alerts), ['data', 'count']);
  t.equal(alerts.count, alerts.data.length);
  t.same(Object.keys(alerts.data[0] as object), ['alert_id', 'severity', 'metric', 'value', 'threshold', 'timestamp', 'resolved']);
  const history = await service.json<{ data: object[]; count: number }>('/health/history');
  t.same(Object.keys(history), ['data', 'count']);
  t.equal(history.count, history.data.length);
  t.same(Object.keys(history.data[0] as object), FIELDS);
});

t.test('/health is a 503 with Retry-After before the first sample', async (t) => {
  // The service without its sampler: the test defines when the first sample is taken.
  const starting = await startInProcess(t, temporaryFolder(t));
  const response = await fetch(`${starting.url}/health`);
  const answer = { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
  t.equal(answer.status, 503);
  t.equal(problemOf(answer).code, 'no_sample_yet');
  t.equal(answer.headers['retry-after'], '1');
  t.same(contract.violations('/health', answer), []);
  starting.measure();
  t.equal((await fetch(`${starting.url}/health`)).status, 200);
});

t.test('HEAD responds as GET does, without a body', async (t) => {
  const before = (await still.json<{ timestamp: string }>('/health')).timestamp;
  const range = 'from=2020-01-01&to=2020-01-02';
  const targets = [
    '/health',
    `/health/history?${range}`,
    `/health/aggregate?${range}`,
    '/alerts',
    '/openapi.json',
    '/health?node=nobody',
    '/health?x=1',
    '/nowhere',
    '/',
  ];
  for (const path of targets) {
    const get = await sendRequest(still, 'GET', path);
    const head = await sendRequest(still, 'HEAD', path);
    // Of the connection, not of the response.
    const comparable = ({ date: _1, connection: _2, 'transfer-encoding': _3, ...headers }: typeof get.headers) => headers;
    t.equal(head.status, get.status, path);
    t.not(get.body, '', `${path} has a body`);
    t.equal(head.body, '', `HEAD ${path} has none`);
    t.same(comparable(head.headers), comparable(get.headers), `${path}: the same headers`);
  }
  t.equal((await still.json<{ timestamp: string }>('/health')).timestamp, before, 'both saw the same sample');
  for (const path of ['/status', '/metrics', '/events']) {
    const head = await sendRequest(still, 'HEAD', path);
    t.equal(head.status, 200, path);
    t.equal(head.body, '');
  }
});

t.test('every other method is a 405 that lists the allowed ones, on every path', async (t) => {
  for (const path of [...PATHS, '/', '/nowhere']) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE']) {
      const answer = await sendRequest(service, method, path);
      t.equal(answer.status, 405, `${method} ${path}`);
      t.equal(answer.headers['allow'], 'GET, HEAD');
      t.equal(problemOf(answer).code, 'method_not_allowed');
      if (path in contract.document.paths) t.same(contract.violations(path, answer), []);
    }
  }
  const withBody = await service.get('/health', { method: 'POST', body: 'x'.repeat(100_000) });
  t.equal(withBody.status, 405, 'with a body as well');
});

t.test('ETag and If-None-Match: a body that the client has is not sent again', async (t) => {
  for (const path of ['/health', '/openapi.json']) {
    const first = await sendRequest(still, 'GET', path);
    const tag = first.headers['etag'] as string;
    t.match(tag, /^"[^"]+"$/, `${path} has an ETag`);
    t.equal(first.headers['cache-control'], 'no-cache', 'to be asked about each time');
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      for (const method of ['GET', 'HEAD']) {
        const again = await sendRequest(still, method, path, { 'If-None-Match': known });
        t.equal(again.status, 304, `${method} ${path} with ${known}`);
        t.equal(again.headers['etag'], tag);
        t.equal(again.body, '');
        t.same(contract.violations(path, again), []);
      }
    }
    const other = await sendRequest(still, 'GET', path, { 'If-None-Match': '"other"' });
    t.equal(other.status, 200);
    t.equal(other.body, first.body);
  }
});

t.test('the ETag of /health changes with every sample', async (t) => {
  const tags = new Map<string, string>();
  await until('four samples were seen', async () => {
    const { headers, body } = await sendRequest(service, 'GET', '/health');
    const tag = headers['etag'] as string;
    t.equal(tags.get(tag) ?? body, body, 'one tag, one body');
    tags.set(tag, body);
    return tags.size >= 4;
  });
  t.equal(new Set(tags.values()).size, tags.size, 'and one body, one tag');
});

t.test('no changing response is cached', async (t) => {
  for (const path of [...PATHS, '/nowhere', '/health?x=1']) {
    const { headers } = await sendRequest(service, 'HEAD', path);
    t.match(headers['cache-control'], /^no-(cache|store)$/, path);
  }
});

t.test('unknown paths are problem documents that list the existing paths', async (t) => {
  for (const path of [
    '/nowhere',
    '/Health',
    '/health/histor',
    '/health/history/x',
    '//health',
    '/api/v1/health',
    '/%68ealth',
    '/nothing.js',
  ]) {
    const answer = await sendRequest(service, 'GET', path);
    t.equal(answer.status, 404, path);
    t.equal(answer.headers['content-type'], 'application/problem+json');
    const problem = problemOf(answer);
    t.equal(problem.code, 'not_found');
    for (const known of PATHS) t.match(problem.detail, known);
  }
});

t.test('the service is healthy afterwards', async (t) => stillWell(t, service));
