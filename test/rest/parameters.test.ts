import t, { type Test } from 'tap';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { type Answer, measured, PATHS, problemOf, recorded, sendRequest, startService } from '../../testkit/service/rest.ts';
import type { RunningService } from '../../testkit/service/service.ts';

const machine = new MachineTree(t, 'vm-no-sensors');
const service: RunningService = await startService(t, { config: { publish_frequency: 50 }, arguments: machine.arguments });
await measured(service);
const contract = await Contract.of(service);

const pathOf = (target: string): string => target.split('?')[0] as string;

async function get(target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const answer = await sendRequest(service, 'GET', target, headers);
  const violations = contract.violations(pathOf(target), answer);
  if (violations.length > 0) throw new Error(`${target}: ${violations.join('; ')}`);
  return answer;
}

/** A 400 that names the parameter, what was found and what is allowed. */
async function refused(t: Test, target: string, parameter: string, found: string, allowed: RegExp): Promise<void> {
  const answer = await get(target);
  t.equal(answer.status, 400, target);
  t.equal(answer.headers['content-type'], 'application/problem+json');
  const problem = problemOf(answer);
  t.match(problem, { type: 'about:blank', status: 400, parameter, allowed });
  t.match(problem.code, /^(invalid|unknown)_parameter$/);
  t.ok(
    problem.detail.includes(parameter) && problem.detail.includes(found) && problem.detail.includes(problem.allowed as string),
    problem.detail,
  );
}

const RANGED = ['/health/history', '/health/aggregate', '/alerts'];

t.test('an unknown parameter is a 400 that lists the known ones, on every path', async (t) => {
  for (const path of PATHS) {
    const { parameters } = contract.operation(path);
    const names = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name);
    for (const name of ['limt', 'Node', 'from ', '__proto__', 'constructor', 'toString', '']) {
      const answer = await get(`${path}?${encodeURIComponent(name)}=1`);
      t.equal(answer.status, 400, `${path} with "${name}"`);
      const problem = problemOf(answer);
      t.match(problem, { code: 'unknown_parameter', parameter: name });
      for (const known of names) t.ok(problem.allowed?.includes(known), `${path} names ${known}`);
      if (names.length === 0) t.equal(problem.allowed, 'no parameters');
    }
  }
});

t.test('a parameter given twice is a 400', async (t) => {
  await refused(t, '/health?node=a&node=a', 'node', 'twice', /once/);
  await refused(t, '/health/history?limit=1&order=asc&limit=1', 'limit', 'twice', /once/);
  await refused(t, '/alerts?resolved=true&%72esolved=true', 'resolved', 'twice', /once/);
  await refused(t, '/events?events=health&events=alert', 'events', 'twice', /once/);
});

t.test('empty parts of a query are ignored', async (t) => {
  for (const target of ['/health?', '/health?&', '/health?&&', '/health/history?&limit=1&'])
    t.equal((await get(target)).status, 200, target);
});

t.test('limit is a whole number from 1 to 10000', async (t) => {
  for (const path of ['/health/history', '/alerts']) {
    for (const limit of ['0', '-1', '10001', '1000000', '1.5', 'abc', '', '1e3', '0x10', 'NaN', 'Infinity', '١', ' 1', '9'.repeat(400)]) {
      await refused(t, `${path}?limit=${encodeURIComponent(limit)}`, 'limit', limit.slice(0, 60), /1 to 10000/);
    }
    for (const limit of ['1', '10000', '1.0', '007']) t.equal((await get(`${path}?limit=${limit}`)).status, 200, `limit ${limit}`);
  }
});

t.test('hours is a number above 0 up to two years', async (t) => {
  for (const path of RANGED) {
    for (const hours of ['0', '-1', '17545', '1e2', 'abc', '', 'NaN']) {
      await refused(t, `${path}?hours=${hours}`, 'hours', hours, /./);
    }
    await refused(t, `${path}?hours=0.0000001`, 'hours', '1e-7', /a longer time/);
    for (const hours of ['0.001', '1', '17544']) t.equal((await get(`${path}?hours=${hours}`)).status, 200, `${path} of ${hours} hours`);
  }
});

t.test('from and to are existing times with a zone, or existing dates', async (t) => {
  const bad = [
    '',
    'yesterday',
    '2026',
    '2026-1-1',
    '2026-02-30',
    '2026-02-30T12:00:00Z',
    '2023-02-29',
    '2100-02-29',
    '2026-04-31T00:00Z',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '2026-01-01T12:00:00',
    '2026-01-01T25:00Z',
    '2026-01-01T12:60Z',
    '2026-01-01T12:00:60Z',
    '2026-01-01T12:00+99:00',
    '2026-01-01 12:00Z',
    '2026-01-01T12:00z',
    '10000-01-01',
    '-0001-01-01',
    '+002026-01-01',
    '0000-01-01T00:00+01:00',
    '9999-12-31T23:59:59-01:00',
    '1760000000',
  ];
  for (const path of RANGED) {
    for (const time of bad) {
      await refused(t, `${path}?from=${encodeURIComponent(time)}`, 'from', time, /ISO 8601/);
      await refused(t, `${path}?to=${encodeURIComponent(time)}`, 'to', time, /ISO 8601/);
    }
  }
  const good = [
    '0000-02-29',
    '2000-02-29',
    '2024-02-29T12:00Z',
    '2026-01-01T12:00:00.123456789Z',
    '2026-01-01T00:00+14:00',
    '2026-01-01T24:00Z',
  ];
  for (const path of RANGED) {
    for (const time of good) t.equal((await get(`${path}?from=${encodeURIComponent(time)}`)).status, 200, `${path} from ${time}`);
  }
});

t.test('a time whose + was sent unescaped, and arrived as a space, is a 400 that shows how to write it', async (t) => {
  for (const path of RANGED) {
    for (const name of ['from', 'to']) {
      await refused(t, `${path}?${name}=2026-01-01T00:00:00+01:00`, name, '2026-01-01T00:00:00 01:00', /\+ must be written %2B/);
      t.equal((await get(`${path}?${name}=2026-01-01T00:00:00%2B01:00`)).status, 200, `${path}: ${name} with %2B`);
    }
  }
});

t.test('the first and the last year are accepted like any other', async (t) => {
  for (const path of RANGED) {
    t.equal((await get(`${path}?from=0000-01-01&to=9999-12-31T23:59:59.999Z`)).status, 200, `${path}: all of time`);
    t.equal((await get(`${path}?to=0000-01-02`)).status, 200, `${path}: hours before the first day`);
    t.equal((await get(`${path}?to=0000-01-02&hours=17544`)).status, 200, `${path}: two years before the second day`);
    t.equal((await get(`${path}?from=9999-12-31&to=9999-12-31T12:00Z`)).status, 200, `${path}: the last day`);
    await refused(t, `${path}?to=0000-01-01`, 'to', '0000-01-01', /later/);
    await refused(t, `${path}?from=9999-12-31`, 'from', '9999-12-31', /before now/);
  }
});

t.test('a range must end after it begins, and be given in one way only', async (t) => {
  for (const path of RANGED) {
    await refused(t, `${path}?from=2026-01-02&to=2026-01-01`, 'from', '2026-01-02', /before to \(2026-01-01\)/);
    await refused(t, `${path}?from=2026-01-01&to=2026-01-01`, 'from', '2026-01-01', /before to/);
    await refused(t, `${path}?from=2026-01-01T01:00%2B01:00&to=2026-01-01T00:00Z`, 'from', '2026-01-01T01:00+01:00', /before to/);
    await refused(t, `${path}?from=2026-01-01&hours=1`, 'hours', '1', /not together with from/);
    t.equal((await get(`${path}?to=2026-01-01&hours=1`)).status, 200, 'hours up to a time');
  }
});

t.test('the error of every other parameter states what it allows', async (t) => {
  await refused(t, '/health?node=', 'node', '', /node in \/status/);
  await refused(t, `/health?node=${'n'.repeat(257)}`, 'node', 'nnn', /node in \/status/);
  for (const step of ['', '0s', '1', 's', '1.5m', '1w', '100000s', '-1s', '1S'])
    await refused(t, `/health/history?step=${step}`, 'step', step, /1 to 99999 .* one of s, m, h, d/);
  for (const value of ['', 'avg', 'MIN']) await refused(t, `/health/history?step=1m&value=${value}`, 'value', value, /mean, min, max/);
  for (const value of ['min', 'max']) await refused(t, `/health/history?value=${value}`, 'value', value, /together with step/);
  t.equal((await get('/health/history?value=mean')).status, 200);
  for (const order of ['', 'up', 'ASC']) await refused(t, `/health/history?order=${order}`, 'order', order, /asc, desc/);
  for (const by of ['', 'week', 'Hour']) await refused(t, `/health/aggregate?by=${by}`, 'by', by, /minute, hour, day/);
  for (const severity of ['', 'INFO', 'warning'])
    await refused(t, `/alerts?severity=${severity}`, 'severity', severity, /WARNING, ERROR, CRITICAL/);
  for (const resolved of ['', '1', 'yes', 'TRUE']) await refused(t, `/alerts?resolved=${resolved}`, 'resolved', resolved, /true or false/);
  await refused(t, '/alerts?changes=maybe', 'changes', 'maybe', /true or false/);
  const metrics = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature', 'health_status'];
  for (const metric of ['', 'cpu', 'CPU_PERCENT', 'cpu percent', 'cpu_percent,temperature', 'disk:', 'disk:media', 'xdisk:/']) {
    for (const listed of [...metrics, 'disk:/'])
      await refused(t, `/alerts?metric=${encodeURIComponent(metric)}`, 'metric', metric, new RegExp(listed));
  }
  for (const metric of [...metrics, 'disk:/', 'disk:/media/usb', 'disk:/media/my%20disk'])
    t.equal((await get(`/alerts?metric=${metric}`)).status, 200, metric);
  for (const events of ['', 'health,', 'health,,alert', 'metrics'])
    await refused(t, `/events?events=${events}`, 'events', events, /health, alert, shutdown/);
  await refused(t, '/health/aggregate?by=minute&hours=17544', 'by', 'minute', /10000 minutes/);
});

t.test('a cursor must be from a Link header; any other text is at most a 400', async (t) => {
  for (const path of ['/health/history', '/alerts']) {
    for (const cursor of ['', '!', 'a b', 'x'.repeat(2201)])
      await refused(t, `${path}?cursor=${encodeURIComponent(cursor)}`, 'cursor', cursor.slice(0, 60), /Link/);
    for (const text of ['', 'abc', '1', '1.5 x', '99999999999999999 x', `1 ${'x'.repeat(601)}`]) {
      const cursor = Buffer.from(text).toString('base64url');
      await refused(t, `${path}?cursor=${cursor}`, 'cursor', cursor.slice(0, 60), /Link/);
    }
    for (const text of ['0 ', '-9999999999999999 x', '9999999999999999 x', '1 \u0000\uffff', `1 '; DROP TABLE episode; --`]) {
      const answer = await get(`${path}?cursor=${Buffer.from(text).toString('base64url')}`);
      t.equal(answer.status, 200, `${path}: a place where nothing is`);
    }
  }
});

t.test('an unknown node is a 404 that names the known ones', async (t) => {
  for (const path of ['/health', '/health/history', '/health/aggregate', '/alerts', '/events']) {
    for (const node of [
      'nobody',
      'health_monito',
      'HEALTH_MONITOR',
      '/health_monitor',
      '\u0000',
      '%',
      "'--",
      'ünïcode',
      '🤖',
      '__proto__',
    ]) {
      const answer = await get(`${path}?node=${encodeURIComponent(node)}`);
      t.equal(answer.status, 404, `${path} of ${JSON.stringify(node)}`);
      t.match(problemOf(answer), { code: 'unknown_node', parameter: 'node', detail: /known nodes: health_monitor/ });
    }
  }
  t.equal((await get('/health?node=health_monitor')).status, 200, 'the known one');
  t.equal((await get('/health?node=health%5Fmonitor')).status, 200, 'in whichever encoding');
});

t.test('a malformed percent-encoding is a 400 in the path and in the query', async (t) => {
  for (const bad of ['%', '%2', '%zz', '%C0%AF', '%ff', '%ED%A0%80']) {
    for (const target of [`/health?node=${bad}`, `/health?${bad}=1`, `/health${bad}`, `/${bad}`, `/main.js${bad}`]) {
      const answer = await sendRequest(service, 'GET', target);
      t.equal(answer.status, 400, target);
      t.equal(problemOf(answer).code, 'malformed_url');
      t.equal(answer.headers['content-type'], 'application/problem+json');
    }
  }
});

t.test('+ and %20 mean a space, %2B means a plus', async (t) => {
  t.match(problemOf(await get('/health?node=a+b')).detail, /"a b"/);
  t.match(problemOf(await get('/health?node=a%20b')).detail, /"a b"/);
  t.match(problemOf(await get('/health?node=a%2Bb')).detail, /"a\+b"/);
});

t.test('a client gets CSV if it prefers CSV by the q-values of Accept', async (t) => {
  await recorded(service, 30);
  const { data } = JSON.parse((await get('/health/history?limit=20')).body) as {
    data: { timestamp: string; memory_percent: number | null; temperature: null }[];
  };
  t.ok(
    data.every(({ temperature }) => temperature === null),
    'unavailable is null, not 0',
  );
  const target = `/health/history?from=${data[0]?.timestamp}&to=${data[10]?.timestamp}`;
  for (const accept of [
    'text/csv',
    'TEXT/CSV',
    'text/csv;q=0.9, application/json;q=0.5',
    'text/csv, */*;q=0.1',
    'text/csv; header=present; q=1',
  ]) {
    const answer = await get(target, { Accept: accept });
    t.match(answer.headers['content-type'], /^text\/csv; charset=utf-8/, accept);
    t.match(answer.headers['vary'], /Accept/);
    const lines = answer.body.split('\r\n');
    t.equal(lines[0], 'cpu_percent,memory_percent,disk_percent,temperature,status,node_name,timestamp');
    t.equal(lines.pop(), '', 'every line has its end');
    t.equal(lines.length, 11);
    const [, memory, , temperature, , node, timestamp] = lines[1]?.split(',') ?? [];
    t.equal(memory, String(data[0]?.memory_percent ?? ''));
    t.equal(temperature, '', 'unavailable is empty');
    t.equal(node, 'health_monitor');
    t.equal(timestamp, data[0]?.timestamp);
  }
  for (const accept of [
    'application/json',
    '*/*',
    'text/*',
    'text/html, */*',
    'text/csv;q=0',
    'text/csv;q=0.5, application/json',
    'text/csv;q=x, application/json',
    '',
    ',;=',
  ]) {
    const answer = await get(target, { Accept: accept });
    t.equal(answer.headers['content-type'], 'application/json', accept);
    t.match(answer.headers['vary'], /Accept/);
  }
  const empty = await get('/health/history?from=2020-01-01&to=2020-01-02', { Accept: 'text/csv' });
  t.equal(empty.body.split('\r\n').length, 2, 'nothing but the header line');
});

t.test('none of these requests failed in the service', async (t) => {
  t.notMatch(service.log, /request failed|Error/);
});
