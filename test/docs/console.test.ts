/** Runs the commands of the console blocks in the documentation on a real service, and compares the shape of the output. */
import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { recorded, startIn } from '../../testkit/service/rest.ts';
import { ROOT } from '../../testkit/service/service.ts';

interface Command {
  readonly page: string;
  readonly line: string;
  readonly output: string;
}

/** The commands of the blocks, each with the output below it. */
const COMMANDS: readonly Command[] = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT })].flatMap((page) => {
  const blocks = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```console\n([\s\S]*?)^```/gm)];
  return blocks.flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => ({ page, line: part.split('\n')[0] ?? '', output: part.split('\n').slice(1).join('\n').trim() })),
  );
});
/** These need root or systemd: test/system/appliance/documentation.test.ts runs them. */
const SYSTEM = /^(?:sudo apt install|(?:sudo )?systemctl|sudo edge-health nodes forget)\b/;

const machine = new MachineTree(t, 'vm-no-sensors');
machine.setMemoryPercent(97);
const folder = temporaryFolder(t);
/** Takes the place of the configuration of an appliance. */
const CONFIG = join(folder, 'edge_health_config.yaml');
writeFileSync(CONFIG, readFileSync(join(ROOT, 'config/edge_health_config.yaml')));
const service = await startIn(t, folder, {
  config: { publish_frequency: 20, alerts: { raise_after_seconds: 0 } },
  arguments: machine.arguments,
});
await recorded(service, 30);
const { data: alerts } = await service.until<{ data: { alert_id: string }[] }>('/alerts', ({ data }) => data.length > 0);

/** An ellipsis in the documented value: the real one may have more members. */
const ELLIPSIS = '…';

/** Where a real value has another shape than the documented one; null: it has none. Null stands for any unavailable value. */
function difference(documented: unknown, real: unknown, at = ''): string | null {
  if (documented === null || real === null) return null;
  if (Array.isArray(documented))
    return Array.isArray(real) ? difference(documented[0] ?? null, real[0] ?? null, `${at}[0]`) : `${at} is no list`;
  if (typeof documented !== 'object') return typeof documented === typeof real ? null : `${at} is a ${typeof real}`;
  const [shown, found] = [documented as Record<string, unknown>, real as Record<string, unknown>];
  const isWhole = !(ELLIPSIS in shown);
  for (const name of Object.keys(shown)) {
    if (name === ELLIPSIS) continue;
    if (!(name in found)) return `${at}.${name} is missing`;
    const inside = difference(shown[name], found[name], `${at}.${name}`);
    if (inside !== null) return inside;
  }
  const more = isWhole ? Object.keys(found).filter((name) => !(name in shown)) : [];
  return more.length === 0 ? null : `${at} also has ${more.join(', ')}`;
}

const parsed = (text: string): unknown => JSON.parse(text.replaceAll(/,…/g, `,"${ELLIPSIS}":0`));

async function curl(line: string): Promise<{ readonly type: string; readonly body: string }> {
  const [, documented = ''] = /'?localhost:5000([^'\s]*)'?/.exec(line) ?? [];
  const url = documented.replace(/(?<=\/alerts\/).*/, alerts[0]?.alert_id ?? '');
  const accept = /-H 'Accept: ([^']+)'/.exec(line)?.[1] ?? '*/*';
  const ending = new AbortController();
  const response = await fetch(`${service.url}${url}`, { headers: { accept }, signal: ending.signal });
  const type = response.headers.get('content-type') ?? '';
  if (!type.startsWith('text/event-stream')) return { type, body: await response.text() };
  let body = '';
  for await (const part of response.body as ReadableStream<Uint8Array>) {
    body += new TextDecoder().decode(part);
    if (/^data: .*\n/m.test(body)) break;
  }
  ending.abort();
  return { type, body };
}

function run(line: string): Promise<string> {
  const [, command = ''] = /^(?:sudo )?edge-health (.*)$/.exec(line) ?? [];
  const [name = '', ...rest] = command.split(' ');
  const argv = [name, ...rest, ...(name === 'check-config' ? [CONFIG] : ['--url', service.url])];
  return new Promise((resolve) => {
    execFile(join(ROOT, 'bin/edge-health'), argv, (_error, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
}

/** The words of a line that do not change from run to run: those before the first number or value. */
const labelOf = (line: string): string => /^\s*([A-Za-z][A-Za-z ]*?)(?=\s{2}|\s*$|:|\s+[\d(])/.exec(line)?.[1]?.trim() ?? '';
const STATUS_LINE = /^(?:OK|WARNING|ERROR|CRITICAL|UNKNOWN)\b/;

t.test('the commands of console blocks return what the documentation shows', async (t) => {
  t.ok(COMMANDS.length > 10, `${COMMANDS.length} commands`);
  for (const { line, output, page } of COMMANDS.filter(({ line }) => !SYSTEM.test(line))) {
    const where = `${page}: ${line}`;
    if (line.startsWith('curl ')) {
      const { body, type } = await curl(line);
      if (type.includes('json')) {
        const problem = difference(parsed(output), JSON.parse(body));
        t.equal(problem, null, where);
      } else if (type.startsWith('text/event-stream')) {
        const names = (text: string): string[] => [...text.matchAll(/^(retry|id|event|data):/gm)].map(([, name]) => name as string);
        t.same(names(body).slice(0, 4), names(output).slice(0, 4), where);
      } else t.match(type, /^text\/(?:csv|plain; version=0\.0\.4)/, where);
      continue;
    }
    if (!/^(?:sudo )?edge-health /.test(line)) {
      t.fail(`${where}: the test does not know how to run it`);
      continue;
    }
    const real = await run(line);
    const lines = real.split('\n');
    for (const shown of output.split('\n').filter((text) => text.trim() !== '' && text !== ELLIPSIS)) {
      if (STATUS_LINE.test(shown)) t.match(lines[0], STATUS_LINE, where);
      else if (STATUS_LINE.test(shown.trim())) t.match(real, /^\s+(?:WARNING|ERROR|CRITICAL) +\w+ \S+ \(threshold \S+\) at \S+Z$/m, where);
      else if (/^\/etc\//.test(shown)) t.match(real, shown.slice(shown.lastIndexOf('/') + 1), where);
      else if (/open alerts/i.test(shown)) t.match(real, /open alerts/i, where);
      else {
        const label = labelOf(shown);
        if (label !== '' && !/_|\//.test(shown.trim().split(' ')[0] ?? '')) t.match(real, label, `${where}: ${shown}`);
      }
    }
  }
});

t.test('the metrics page lists the metrics that the service exports', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/reference/metrics.md'), 'utf8');
  const documented = new Set(
    [...page.matchAll(/^\|.*$/gm)].flatMap(([row]) => [...row.matchAll(/`(edge_health_\w+)`/g)].map(([, name]) => name)),
  );
  const { body } = await curl('curl localhost:5000/metrics');
  const exported = [...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  t.ok(exported.length > 30, `${exported.length} metrics`);
  for (const name of exported) if (!documented.has(name)) t.fail(`docs/reference/metrics.md lacks ${name}`);
});
