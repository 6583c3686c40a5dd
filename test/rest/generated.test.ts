import { request } from 'node:http';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { type ApiParameter, Contract } from '../../testkit/service/openapi.ts';
import { type Answer, measured, type ProblemDocument, recorded, sendRequest, startService, stillWell } from '../../testkit/service/rest.ts';

/**
 * Requests made from the OpenAPI document alone: what it allows, and what it does not. Each response is compared with the same document.
 */
const machine = new MachineTree(t, 'vm-no-sensors');
const config = { publish_frequency: 50, alerts: { raise_after_seconds: 0 } };
const service = await startService(t, { config, arguments: machine.arguments });
machine.setMemoryPercent(97);
await measured(service);
const { data: alerts } = await service.until<{ data: { alert_id: string }[] }>('/alerts', ({ data }) => data.length > 0);
await recorded(service, 20);
const contract = await Contract.of(service);

interface Given {
  readonly name: string;
  readonly text: string;
  /** Whether the parameter's schema allows it. */
  readonly allowed: boolean;
}

type Schema = Readonly<Record<string, unknown>>;

/** Values that a parameter's schema allows, as they are written in a URL. */
function allowedTexts(schema: Schema): fc.Arbitrary<string> {
  const options = schema['enum'] as readonly string[] | undefined;
  if (options) return fc.constantFrom(...options);
  switch (schema['type']) {
    case 'boolean':
      return fc.constantFrom('true', 'false');
    case 'integer':
      return fc.integer({ min: schema['minimum'] as number, max: schema['maximum'] as number }).map(String);
    case 'number':
      return fc.integer({ min: 1, max: (schema['maximum'] as number) * 10 }).map((tenths) => String(tenths / 10));
    case 'array':
      return fc
        .array(allowedTexts(schema['items'] as Schema), { minLength: (schema['minItems'] as number | undefined) ?? 0, maxLength: 5 })
        .map((items) => items.join(','));
    case 'string':
      return typeof schema['pattern'] === 'string'
        ? fc.stringMatching(new RegExp(schema['pattern']))
        : fc.string({
            minLength: (schema['minLength'] as number | undefined) ?? 0,
            maxLength: Math.min(40, schema['maxLength'] as number),
            unit: 'binary',
          });
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`);
  }
}

/** The value as a client library would parse it. */
function readBack(schema: Schema, text: string): unknown {
  if (schema['type'] === 'integer' || schema['type'] === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (schema['type'] === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return schema['type'] === 'array' ? text.split(',') : text;
}

const SUSPICIOUS = [
  '',
  '0',
  '-1',
  '-0',
  '1e9',
  '1000000',
  '99999999999999999999',
  '1.5',
  'NaN',
  'null',
  'undefined',
  'true ',
  '[]',
  '{}',
  '%',
  '\0',
  '\n',
  "'",
  '"><script>',
  '{{7*7}}',
  '../..',
  '2026-02-30T',
  '🤖',
  'a'.repeat(2000),
];

function refusedTexts(schema: Schema): fc.Arbitrary<string> {
  return fc
    .oneof(fc.constantFrom(...SUSPICIOUS), fc.string({ unit: 'binary', maxLength: 30 }))
    .filter((text) => contract.schemaViolations(schema, readBack(schema, text)).length > 0);
}

/** A query with some parameters of the operation; those that decide whether anything is found are mostly valid. */
function queries(parameters: readonly ApiParameter[], wrong: boolean): fc.Arbitrary<Given[]> {
  const each = parameters.map(({ name, schema }) => {
    const allowed = (
      name === 'node' ? fc.oneof({ weight: 4, arbitrary: fc.constant('health_monitor') }, allowedTexts(schema)) : allowedTexts(schema)
    ).map((text): Given => ({ name, text, allowed: true }));
    const refused = refusedTexts(schema).map((text): Given => ({ name, text, allowed: false }));
    return fc.option(wrong ? fc.oneof({ weight: 2, arbitrary: allowed }, refused) : allowed, { freq: name === 'cursor' ? 1 : 2 });
  });
  const known = new Set(parameters.map(({ name }) => name));
  const unknown = fc.string({ minLength: 1, maxLength: 12 }).filter((name) => !known.has(name));
  const stranger = fc.option(fc.record({ name: unknown, text: fc.string(), allowed: fc.constant(false) }), { freq: wrong ? 3 : 1_000_000 });
  return fc
    .tuple(fc.tuple(...each), wrong ? stranger : fc.constant(null))
    .map(([some, other]) => [...some, other].filter((given) => given !== null));
}

/** As sendRequest(); of an event stream it returns only the beginning. */
function begin(target: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path: target, headers, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      const answer = (): void => resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      if (response.headers['content-type']?.startsWith('text/event-stream')) {
        answer();
        outgoing.destroy();
      } else response.once('end', answer);
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}

/**
 * Parameters with rules beyond their own schema: dates that exist, ranges that do not end before they begin, cursors that were issued,
 * parameters that can be combined.
 */
const FURTHER_RULES = ['from', 'to', 'hours', 'by', 'cursor', 'after', 'value', 'format'];

const seen = new Map<string, number>();

/** The headers of an operation, each with an allowed value. */
function headersOf(path: string): Record<string, string> {
  const headers = contract.operation(path).parameters.filter(({ in: place }) => place === 'header');
  return Object.fromEntries(headers.map(({ name, schema }) => [name, (schema['enum'] as readonly string[])[0] as string]));
}

async function holds(path: string, query: readonly Given[]): Promise<void> {
  const existing = path.replace('{alert_id}', encodeURIComponent(alerts[0]?.alert_id ?? ''));
  const target = `${existing}?${query.map(({ name, text }) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`).join('&')}`;
  if (target.length > 4096) return;
  const answer = await begin(target, headersOf(path));
  const key = `${path} ${answer.status}`;
  seen.set(key, (seen.get(key) ?? 0) + 1);
  const violations = contract.violations(path, answer);
  if (violations.length > 0) throw new Error(`${target}: ${violations.join('; ')}: ${answer.body.slice(0, 300)}`);
  if (answer.status >= 500) throw new Error(`${target}: ${answer.status} ${answer.body}`);
  const problem = answer.status >= 400 ? (JSON.parse(answer.body) as ProblemDocument) : null;
  if (problem && problem.status !== answer.status) throw new Error(`${target}: ${answer.status}, but the problem says ${problem.status}`);
  const refused = query.filter(({ allowed }) => !allowed).map(({ name }) => name);
  if (refused.length > 0) {
    if (answer.status !== 400) throw new Error(`${target}: ${answer.status} although ${refused.join(', ')} is not allowed`);
    const culprits = [...refused, ...query.map(({ name }) => name).filter((name) => FURTHER_RULES.includes(name))];
    if (!culprits.includes(problem?.parameter ?? '')) throw new Error(`${target}: names ${problem?.parameter}, not ${refused.join(', ')}`);
  } else if (problem?.code === 'unknown_node') {
    if (!query.some(({ name, text }) => name === 'node' && text !== 'health_monitor')) throw new Error(`${target}: ${problem.detail}`);
  } else if (problem?.code === 'unknown_report') {
    if (!query.some(({ name }) => name === 'name')) throw new Error(`${target}: ${problem.detail}`);
  } else if (problem?.code === 'cursor_ahead') {
    if (!query.some(({ name }) => name === 'after')) throw new Error(`${target}: ${problem.detail}`);
  } else if (problem && !(answer.status === 400 && FURTHER_RULES.includes(problem.parameter ?? ''))) {
    throw new Error(`${target}: everything is allowed, but ${answer.body}`);
  }
}

const RUNS = runs(60, 600);

for (const [path, { get }] of Object.entries(contract.document.paths)) {
  const parameters = get.parameters.filter(({ in: place }) => place === 'query');
  t.test(`${path}: any request that its document allows gets a documented response`, async (t) => {
    await fc.assert(
      fc.asyncProperty(queries(parameters, false), (query) => holds(path, query)),
      { seed: SEED, numRuns: parameters.length === 0 ? 2 : RUNS },
    );
    t.ok(seen.get(`${path} 200`), `some of it with what was asked for (${seen.get(`${path} 200`)})`);
  });

  t.test(`${path}: any request that its document does not allow is a 400 that names the parameter`, async (t) => {
    await fc.assert(
      fc.asyncProperty(queries(parameters, true), (query) => holds(path, query)),
      { seed: SEED, numRuns: RUNS },
    );
    t.ok(seen.get(`${path} 400`), `${seen.get(`${path} 400`)} were`);
  });
}

t.test('any path gets a page, a document or a problem', async (t) => {
  const statuses = new Set<number>();
  const piece = fc.oneof(
    fc.webSegment(),
    fc.constantFrom('health', 'history', 'alerts', '..', '.', '', '%2e%2e', '%00', '%', 'main.js', 'index', '__proto__'),
  );
  const target = fc.array(piece, { maxLength: 6 }).map((pieces) => `/${pieces.join('/')}`);
  await fc.assert(
    fc.asyncProperty(target, async (path) => {
      const { headers, status } = await sendRequest(service, 'GET', path);
      statuses.add(status);
      if (![200, 400, 404].includes(status)) throw new Error(`${status}`);
      if (status >= 400 && headers['content-type'] !== 'application/problem+json') throw new Error(`${headers['content-type']}`);
    }),
    { seed: SEED, numRuns: runs(100, 1000) },
  );
  t.ok(statuses.has(404) && statuses.has(200), [...statuses].join());
});

t.test('any header value has only its documented effect', async (t) => {
  const value = fc
    .oneof(fc.string({ maxLength: 100 }), fc.constantFrom('*/*', 'text/csv', '*', '"', 'W/"', 'Bearer', ';q=', ',,,', 'bytes=1-0', 'null'))
    .map((text) => text.trim());
  const name = fc.constantFrom(
    'Accept',
    'If-None-Match',
    'Authorization',
    'Last-Event-ID',
    'Origin',
    'Range',
    'If-Modified-Since',
    'Accept-Encoding',
    'Cookie',
    'X-Forwarded-For',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('/health', '/health/history', '/alerts', '/main.js', '/openapi.json'),
      name,
      value,
      async (path, header, text) => {
        const answer = await sendRequest(service, 'GET', path, { [header]: text });
        if (![200, 304].includes(answer.status)) throw new Error(`${path} with ${header}: ${text}: ${answer.status}`);
        if (answer.status === 304 && header !== 'If-None-Match') throw new Error('304');
        if (path !== '/main.js') {
          const violations = contract.violations(path, answer);
          if (violations.length > 0) throw new Error(violations.join('; '));
        }
      },
    ),
    { seed: SEED, numRuns: runs(100, 1000) },
  );
  t.pass('each was answered as documented');
});

t.test('the service is healthy afterwards', async (t) => {
  const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
  t.ok(total > 300, `${total} requests were made from the document`);
  await stillWell(t, service);
});
