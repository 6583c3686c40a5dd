import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { configPath, dataPath, loadConfig } from './load.ts';
import { DEFAULT_CONFIG } from './schema.ts';

const folder = temporaryFolder(t);

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function found(path: string): string {
  const loaded = loadConfig(path);
  if (loaded.ok) return 'a configuration';
  return loaded.errors.map((error) => error.found).join('; ');
}

t.test('a configuration file is read', async (t) => {
  t.same(loadConfig(file('empty.yaml', '')), { ok: true, config: DEFAULT_CONFIG });
  t.same(loadConfig(file('named.yaml', 'node_name: arm\n')), { ok: true, config: { ...DEFAULT_CONFIG, node_name: 'arm' } });
  t.same(loadConfig(file('windows.yaml', '\uFEFFnode_name: arm\r\n')), { ok: true, config: { ...DEFAULT_CONFIG, node_name: 'arm' } });
});

t.test('a file that cannot be read results in an error with its name and the reason', async (t) => {
  const missing = join(folder, 'missing.yaml');
  t.same(loadConfig(missing), {
    ok: false,
    errors: [{ file: missing, line: 0, column: 0, key: '', found: 'no such file', allowed: 'a readable YAML file', hint: null }],
  });
  t.equal(found(folder), 'a folder, not a file');
  t.match(found(join(file('plain.yaml', ''), 'below.yaml')), /ENOTDIR/);
  t.equal(found('/dev/zero'), 'not a file');
  const pipe = join(folder, 'pipe.yaml');
  execFileSync('mkfifo', [pipe]);
  t.equal(found(pipe), 'not a file', 'without a writer');
});

t.test('a file of more than 64 kB is refused, also if its size is not known before it is read', async (t) => {
  t.equal(found(file('large.yaml', Buffer.alloc(250_000, '#'))), '250000 bytes; the limit is 65536 bytes (64 kB)');
  t.match(found('/proc/kallsyms'), /^more than 65536 bytes; the limit is/, 'as for one that grows');
});

t.test('a file that is not text results in an error', async (t) => {
  t.equal(found(file('zeros.yaml', Buffer.alloc(100))), 'a binary file');
  t.equal(
    found(file('latin1.yaml', Buffer.from('storage: {path: /daten/\xfcber}\n', 'latin1'))),
    'not UTF-8',
    'else the path would be another one',
  );
  t.equal(found(file('utf16.yaml', Buffer.from('\uFEFFnode_name: arm\n', 'utf16le'))), 'not UTF-8');
  t.equal(found(file('utf8.yaml', 'storage: {path: /daten/über}\n')), 'a configuration');
});

t.test('the file is that of the option, otherwise of the environment, otherwise the existing one', async (t) => {
  const environment = { EDGE_HEALTH_CONFIG: '/from/environment.yaml' };
  t.equal(configPath('/named.yaml', environment, '/checkout.yaml'), '/named.yaml');
  t.equal(
    configPath(null, environment, '/checkout.yaml'),
    '/from/environment.yaml',
    'even if it does not exist, so that the error names it',
  );
  const installed = '/etc/edge-health/edge_health_config.yaml';
  const checkout = file('checkout.yaml', 'node_name: arm\n');
  const missing = join(folder, 'missing');
  const existing = existsSync(installed) ? installed : checkout;
  t.equal(configPath(null, {}, checkout, missing), existing);
  t.equal(configPath(null, { EDGE_HEALTH_CONFIG: '' }, checkout, missing), existing);
  t.equal(configPath(null, {}, missing, missing), installed, 'outside of a checkout the error names the file of the package');
});

t.test('the environment file of the units also applies to commands, after the environment', async (t) => {
  const from = (text: string, environment: NodeJS.ProcessEnv = {}): string =>
    configPath(null, environment, '/checkout.yaml', file('default', text));
  t.equal(
    from('EDGE_HEALTH_ROS=auto\nEDGE_HEALTH_CONFIG=/etc/edge-health/edge_brain_config.yaml\n'),
    '/etc/edge-health/edge_brain_config.yaml',
  );
  t.equal(from('EDGE_HEALTH_CONFIG="/with space.yaml" \n'), '/with space.yaml');
  t.equal(from("EDGE_HEALTH_CONFIG='/a.yaml'\nEDGE_HEALTH_CONFIG=/b.yaml\n"), '/b.yaml', 'the last assignment applies, as in systemd');
  t.equal(from('EDGE_HEALTH_CONFIG=/a.yaml\n', { EDGE_HEALTH_CONFIG: '/own.yaml' }), '/own.yaml');
  const usual = configPath(null, {}, '/checkout.yaml', join(folder, 'missing'));
  for (const text of ['#EDGE_HEALTH_CONFIG=/a.yaml\n', 'EDGE_HEALTH_CONFIG=\n', 'MY_EDGE_HEALTH_CONFIG=/a.yaml\n'])
    t.equal(from(text), usual, text.trim());
});

t.test('the data folder is the same for the units and for commands in any working directory', async (t) => {
  const checkout = { folder: '/home/me/edge-health', dataFolder: '/home/me/edge-health/data' };
  const pack = { folder: '/var/lib/edge-health', dataFolder: '/var/lib/edge-health' };
  const unit = { STATE_DIRECTORY: '/var/lib/edge-health' };
  const of = (path: string | null, file: string, environment: NodeJS.ProcessEnv, installed: typeof pack): string =>
    dataPath({ ...DEFAULT_CONFIG, storage: { ...DEFAULT_CONFIG.storage, path } }, file, environment, installed);
  for (const [path, file, installed, expected] of [
    [null, '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health'],
    ['data/x', '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health/data/x'],
    ['/srv/x', '/etc/edge-health/x.yaml', pack, '/srv/x'],
    ['data/x', '/srv/x.yaml', pack, '/var/lib/edge-health/data/x'],
  ] as const) {
    t.equal(of(path, file, unit, installed), expected, `${path} of ${file} for a unit`);
    t.equal(of(path, file, {}, installed), expected, `${path} of ${file} for a command`);
  }
  t.equal(of('data/x', '/etc/edge-health/x.yaml', {}, checkout), '/var/lib/edge-health/data/x');
  t.equal(of('data/x', '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data/x');
  t.equal(of(null, '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data');
  t.equal(of('data/x', '/home/me/x.yaml', { STATE_DIRECTORY: '/run/me:/b' }, checkout), '/run/me/data/x');
});
