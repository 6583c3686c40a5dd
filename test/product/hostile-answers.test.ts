import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { temporaryFolder } from '../../testkit/folder.ts';
import { startService } from '../../testkit/service/rest.ts';
import { ROOT } from '../../testkit/service/service.ts';

// What commands print about a remote service, whose responses may contain anything: no text controls the terminal or forges a line.

const HOSTILE = '\u202e\x1b]0;x\x07\x1b[2J\r\n<0>forged\n\u2028\u00a0\ufeff';
/** Words that the commands interpret, and times. */
const KEPT = /^([A-Z]+|[a-z_-]+|\d{4}-\d\d-\d\dT.*)$/;

function poisoned(value: unknown): unknown {
  if (typeof value === 'string') return KEPT.test(value) ? value : `${value}${HOSTILE}`;
  if (Array.isArray(value)) return value.map(poisoned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poisoned(inner)]));
}

const service = await startService(t);
const status = await service.until<{ nodes: object[] }>('/status', ({ nodes }) => nodes.length > 0);
const health = await service.json('/health');
const alert = {
  ...{ alert_id: `robot${HOSTILE}/cpu_percent/1`, severity: 'CRITICAL', metric: `cpu_percent${HOSTILE}`, value: 95, threshold: 90 },
  ...{ timestamp: '2026-03-04T05:06:07.089Z', resolved: false },
};
const remote = { ...status.nodes[0], local: false, node_name: `robot${HOSTILE}` };
const answers: Readonly<Record<string, unknown>> = {
  '/status': poisoned({ ...status, nodes: [...status.nodes, remote] }),
  '/health': poisoned(health),
  '/alerts': { data: [alert], count: 1 },
};
const server = createServer(({ url = '' }, response) => {
  const answer = answers[url.split('?')[0] as string];
  response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer ?? { detail: `gone${HOSTILE}` }));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
t.teardown(() => server.close());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

function printed(...argv: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(join(ROOT, 'bin/edge-health'), argv, (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }));
  });
}

const lines = (text: string): string[] => text.split('\n').slice(0, -1);

t.test('status, nodes and the checks of operations print no control characters', async (t) => {
  const file = join(temporaryFolder(t), 'config.yaml');
  writeFileSync(file, stringify({ storage: { path: join(temporaryFolder(t), 'data') }, ops: { check: { nodes: ['robot'] } } }));
  const commands = [
    ['status', '--url', url],
    ['nodes', '--url', url],
    ['ops', 'health_check', '--config', file, '--url', url],
    ['ops', 'collect_metrics', '--config', file, '--url', url, '--dry-run'],
  ];
  for (const command of commands) {
    for (const json of [[], ['--json']]) {
      const { stderr, stdout } = await printed(...command, ...json);
      const all = [...lines(stdout), ...lines(stderr)];
      const name = [...command.slice(0, 2), ...json].join(' ');
      t.ok(all.length > 0, name);
      t.same(
        all.filter((line) => /\p{C}|(?! )\p{Z}/u.test(line)),
        [],
        `${name}: every character is seen`,
      );
      t.same(
        all.filter((line) => /^<\d>|^forged/.test(line)),
        [],
        `${name}: no line is forged`,
      );
      if (json.length > 0) t.type(JSON.parse(stdout), 'object', `${name}: is JSON`);
    }
  }
  t.match((await printed('nodes', '--url', url)).stdout, /robot\\u\{202e\}\\x1b\]0;x/);
});

/** Bodies that another program may send. */
const FOREIGN: readonly unknown[] = [
  null,
  {},
  { status: 'OK' },
  { ...status, nodes: [{ local: true }] },
  { ...status, status: 'up' },
  { ...status, storage: null },
];

t.test('JSON of another program is refused in one line', async (t) => {
  const file = join(temporaryFolder(t), 'config.yaml');
  const data = join(temporaryFolder(t), 'data');
  writeFileSync(file, stringify({ storage: { path: data } }));
  let body: unknown;
  const other = createServer((_, response) => response.end(JSON.stringify(body))).listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.teardown(() => other.close());
  const at = ['--url', `http://127.0.0.1:${(other.address() as AddressInfo).port}`];
  const refused = /\/(status|health|alerts)\S* is not a response of edge-health: \S+( content)? is missing or wrong/;
  for (body of FOREIGN) {
    const [found, json, nodes, check, ...jobs] = await Promise.all([
      printed('status', ...at),
      printed('status', '--json', ...at),
      printed('nodes', ...at),
      printed('ops', 'health_check', '--config', file, ...at),
      ...['collect_metrics', 'collect_alerts'].map((job) => printed('ops', job, '--config', file, ...at, '--dry-run')),
    ]);
    const shown = JSON.stringify(body).slice(0, 60);
    t.match(found, { code: 3, stdout: '' }, shown);
    t.equal(lines(found.stderr).length, 1, found.stderr);
    t.match(found.stderr, refused);
    t.match(JSON.parse(json.stdout), { reachable: false, error: refused });
    t.match(nodes, { code: 69, stdout: '', stderr: refused }, shown);
    t.match(check.stdout, /no response \(.* is not a response of edge-health/);
    for (const { stderr, stdout } of jobs) {
      t.match(stdout, /is not a response of edge-health/);
      t.notMatch(stderr + stdout, /^\s+at /m);
    }
  }
});

t.test('errors of a configuration print no control characters', async (t) => {
  const file = join(temporaryFolder(t), 'config.yaml');
  writeFileSync(file, `node_name: "\\u202e\\e[2J"\n"\\u202e\\e[2J\\n<0>key": 1\n`);
  const { stderr, stdout } = await printed('check-config', file);
  t.match(lines(stderr).length, 2);
  t.same(
    lines(stderr + stdout).filter((line) => /\p{C}/u.test(line)),
    [],
  );
});
