import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { RootAnswer, RootRequest, SentFile } from '../client/root-helper.ts';
import { RootHelper } from './root-helper.ts';

const OWNER = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

/** The helper, run as this user, with a temporary configuration folder and a systemctl that only records its arguments. */
function helperIn(t: Test) {
  const folder = temporaryFolder(t);
  const did: string[] = [];
  const shown: string[] = [];
  const helper = new RootHelper({
    owner: OWNER,
    folder,
    systemctl: async (argv) => {
      did.push(argv.join(' '));
      return { code: 0, output: '' };
    },
    show: (text) => shown.push(text),
  });
  const ask = (request: RootRequest): Promise<RootAnswer> => helper.answerLine(JSON.stringify(request));
  return { folder, did, helper, ask, shown };
}

const file = (name: string, text: string, executable = false): SentFile => ({
  name,
  executable,
  base64: Buffer.from(text).toString('base64'),
});
const STAMP = '20260304T050607Z';

t.test('starts and stops units of the product; every other command is refused', async (t) => {
  const { ask, did, helper } = helperIn(t);
  const allowed = [
    ['stop', 'edge-health-ops.service', 'edge-health.service'],
    ['start', 'edge-health.service', 'edge-health-ops.service'],
    ['stop', 'edge-health@sensor_node.service'],
    ['enable', '--now', 'edge-health-harness.service'],
    ['disable', '--now', 'edge-health-harness.service'],
  ];
  for (const argv of allowed) t.equal((await ask({ do: 'systemctl', arguments: argv })).code, 0, argv.join(' '));
  t.same(
    did.splice(0),
    allowed.map((argv) => argv.join(' ')),
  );
  const refused = [
    ['stop', 'ssh.service'],
    ['stop', 'edge-health.service', 'ssh.service'],
    ['start', '../../tmp/edge-health.service'],
    ['link', '/var/lib/edge-health/edge-health.service'],
    ['enable', '/var/lib/edge-health/edge-health.service'],
    ['enable', '--now', '--root=/var/lib/edge-health', 'edge-health.service'],
    ['start', '-M', 'edge-health.service'],
    ['stop', 'edge-health.service\nedge-health-ops.service'],
    ['edit', 'edge-health.service'],
    ['start'],
    [],
  ];
  for (const argv of refused) t.not((await ask({ do: 'systemctl', arguments: argv })).code, 0, JSON.stringify(argv));
  for (const line of ['', '{}', 'null', '{"do":"run","arguments":["id"]}', '{"do":"systemctl","arguments":"stop"}', '[]'])
    t.not((await helper.answerLine(line)).code, 0, line);
  t.same(did, []);
});

t.test('replaces files of the configuration and restores them', async (t) => {
  const { ask, folder, shown } = helperIn(t);
  const path = join(folder, 'edge_health_config.yaml');
  writeFileSync(path, 'node_name: now\n', { mode: 0o640 });
  const files = [file('edge_health_config.yaml', 'node_name: then\n'), file('shutdown.d/10-park', '#!/bin/sh\necho \x1b[2J\n', true)];
  t.same(await ask({ do: 'replace configuration', stamp: STAMP, files }), { code: 0, output: join(folder, `previous-${STAMP}`) });
  t.match(
    shown.join(''),
    /^--- .*edge_health_config\.yaml\n[\s\S]*\n-node_name: now\n\+node_name: then\n[\s\S]*\n\+echo \\x1b\[2J\n/,
    'it was shown',
  );
  t.equal(readFileSync(path, 'utf8'), 'node_name: then\n');
  t.equal(statSync(path).mode & 0o777, 0o640);
  t.equal(statSync(join(folder, 'shutdown.d/10-park')).mode & 0o777, 0o750);
  t.equal(readFileSync(join(folder, `previous-${STAMP}/edge_health_config.yaml`), 'utf8'), 'node_name: now\n');
  t.not((await ask({ do: 'replace configuration', stamp: STAMP, files })).code, 0, 'once');
  t.equal((await ask({ do: 'put configuration back' })).code, 0);
  t.equal(readFileSync(path, 'utf8'), 'node_name: now\n');
  t.same(readdirSync(folder).sort(), ['edge_health_config.yaml', 'shutdown.d']);
  t.same(readdirSync(join(folder, 'shutdown.d')), []);
});

t.test('an invalid configuration is refused and changes nothing', async (t) => {
  const { ask, folder, shown } = helperIn(t);
  const outside = join(temporaryFolder(t), 'sentinel');
  writeFileSync(outside, 'untouched');
  writeFileSync(join(folder, 'edge_health_config.yaml'), 'node_name: now\n');
  const good = file('edge_health_config.yaml', 'node_name: then\n');
  for (const [what, files, stamp] of [
    ['a path upwards', [good, file('../attack', 'x')], STAMP],
    ['an absolute path', [good, file(outside, 'x')], STAMP],
    ['a folder of its own', [good, file('cron.d/attack', 'x')], STAMP],
    ['a hidden file', [good, file('shutdown.d/.attack', 'x')], STAMP],
    ['a configuration with errors', [good, file('sensor_node_config.yaml', 'rest: {prot: 1}\n')], STAMP],
    ['a secret that was left out', [file('edge_health_config.yaml', 'ops: {notify: {webhook: {url: REDACTED}}}\n')], STAMP],
    ['more than a configuration can be', [good, file('shutdown.d/large', 'x'.repeat(16e6))], STAMP],
    ['a stamp that is a path', [good], '../../attack'],
  ] as const) {
    t.not((await ask({ do: 'replace configuration', files, stamp })).code, 0, what);
    t.same(readdirSync(folder), ['edge_health_config.yaml'], what);
    t.equal(readFileSync(join(folder, 'edge_health_config.yaml'), 'utf8'), 'node_name: now\n', what);
  }
  t.same(shown, []);
  symlinkSync(outside, join(folder, 'sensor_node_config.yaml'));
  symlinkSync(outside, join(folder, 'edge_brain_config.yaml.new'));
  const files = [file('sensor_node_config.yaml', ''), file('edge_brain_config.yaml', '')];
  t.equal((await ask({ do: 'replace configuration', files, stamp: STAMP })).code, 0, 'a link gives way');
  t.equal(readFileSync(outside, 'utf8'), 'untouched', 'and is not followed');
});

t.test('after the program is killed, the units are started and the configuration is restored', async (t) => {
  const { did, folder, helper } = helperIn(t);
  const path = join(folder, 'edge_health_config.yaml');
  writeFileSync(path, 'node_name: now\n');
  const program = join(folder, 'program.ts');
  const client = fileURLToPath(new URL('../client/root-helper.ts', import.meta.url));
  const files = [file('edge_health_config.yaml', 'node_name: then\n')];
  writeFileSync(
    program,
    `import { requestFromRoot, changeUnits } from '${client}';
await changeUnits(['stop', 'edge-health-ops.service', 'edge-health.service'], process.env);
const { code } = await requestFromRoot(${JSON.stringify({ do: 'replace configuration', stamp: STAMP, files })}, process.env);
if (process.argv[2] === 'killed') process.kill(process.pid, 'SIGKILL');
process.exitCode = code === 0 ? 7 : 1;
`,
  );
  t.equal(await helper.run(program, ['killed'], process.env), 128 + 9);
  t.same(did.splice(0), ['stop edge-health-ops.service edge-health.service', 'start edge-health.service edge-health-ops.service']);
  t.equal(readFileSync(path, 'utf8'), 'node_name: now\n');
  t.equal(await helper.run(program, [], process.env), 7, 'one that ends by itself has done what it wanted, and its exit code counts');
  t.same(
    did,
    ['stop edge-health-ops.service edge-health.service', 'start edge-health.service edge-health-ops.service'],
    'but units do not stay stopped',
  );
  t.equal(readFileSync(path, 'utf8'), 'node_name: then\n');
});
