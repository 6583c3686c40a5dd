import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { ARCHITECTURES, type Architecture } from '../../../scripts/deb/architectures.ts';
import { downloadPackages } from '../../../scripts/deb/libraries.ts';
import { builtPackage } from '../../../testkit/container/package.ts';
import { unpack } from './support/package-content.ts';

// The package of arm64, run by qemu's emulation of its user space with the libraries of a Debian of that architecture. What the
// program starts itself (the inventory, hooks) is not run: that takes binfmt_misc, which is the machine's to set up.

t.setTimeout(600_000);

const QEMU = 'qemu-aarch64-static';
const LIBRARIES = 'build/cache/emulated-arm64';
/** The package's dependencies, with theirs. */
const PACKAGES = [
  'libc6',
  'libcap2',
  'libgcc-s1',
  'libgcrypt20',
  'libgpg-error0',
  'liblz4-1',
  'liblzma5',
  'libstdc++6',
  'libsystemd0',
  'libzstd1',
];
/** As bin/edge-health passes them, which is a shell script and would start the program itself. */
const NODE_OPTIONS = [
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--optimize-for-size',
  '--no-opt',
  '--no-maglev',
  '--no-short-builtin-calls',
  '--external-memory-accounted-in-global-limit',
  '--max-old-space-size=1024',
];

function skipReason(): string | false {
  if (process.arch === 'arm64') return 'runs by itself here';
  return spawnSync(QEMU, ['--version']).error ? `needs ${QEMU} (Debian package qemu-user-static)` : false;
}

/** The libraries of the other architecture, unpacked once. */
function libraries(): string {
  const done = join(LIBRARIES, '.unpacked');
  if (!existsSync(done)) {
    rmSync(LIBRARIES, { recursive: true, force: true });
    mkdirSync(LIBRARIES, { recursive: true });
    const arm64 = ARCHITECTURES.find(({ debian }) => debian === 'arm64') as Architecture;
    for (const file of downloadPackages(arm64, PACKAGES, resolve(`${LIBRARIES}-apt`))) execFileSync('dpkg-deb', ['-x', file, LIBRARIES]);
    writeFileSync(done, '');
  }
  return LIBRARIES;
}

t.test('arm64', { skip: skipReason() }, async (t) => {
  const { file, version } = await builtPackage('arm64');
  const program = join(unpack(t, file), 'usr/lib/edge-health');
  const prefix = ['-L', libraries(), join(program, 'runtime/bin/node'), ...NODE_OPTIONS];
  const emulated = (...args: string[]): string => execFileSync(QEMU, [...prefix, ...args], { encoding: 'utf8' });
  const main = join(program, 'dist/main.cjs');

  t.test('the runtime, the program and the addon of sd-notify run', async (t) => {
    t.equal(emulated('-p', 'process.arch'), 'arm64\n');
    t.match(emulated(main, 'version'), `edge-health ${version} `);
    const keys = emulated('-p', `Object.keys(require(${JSON.stringify(join(program, 'node_modules/sd-notify'))})).includes('ready')`);
    t.equal(keys, 'true\n');
  });

  t.test('the service measures, stores, responds, and shuts down cleanly', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'edge-health-arm64-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const config = join(folder, 'config.yaml');
    writeFileSync(
      config,
      `rest: { host: 127.0.0.1, port: 0 }
storage: { path: ${JSON.stringify(join(folder, 'data'))} }
ros: { transport: embedded, discovery_range: LOCALHOST, domain_id: 87, observe: never }
safe_shutdown: { action: dry-run }
`,
    );
    const service = spawn(QEMU, [...prefix, main, 'run', '--config', config], { stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = once(service, 'exit');
    t.teardown(() => service.kill('SIGKILL'));
    const url = await addressOf(t, service);
    const health = await everythingMeasured(url);
    t.type(health['memory_percent'], 'number');
    t.type(health['disk_percent'], 'number');
    t.equal(health['node_name'], 'health_monitor');
    const status = (await (await fetch(`${url}status`)).json()) as { version: string; ros: { transport: string } };
    t.match(status, { version, ros: { transport: 'embedded' } });
    service.kill('SIGTERM');
    t.same(await ended, [0, null]);
    t.ok(existsSync(join(folder, 'data/edge-health.db')));
  });
});

/** The first status with every reading of this machine; under emulation the first samples may not wait long enough for the disk. */
async function everythingMeasured(url: string): Promise<Record<string, unknown>> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const answer = await fetch(`${url}health`);
    const health = (await answer.json()) as Record<string, unknown>;
    if ((answer.ok && health['cpu_percent'] !== null && health['disk_percent'] !== null) || Date.now() > deadline) return health;
    await new Promise((later) => setTimeout(later, 200));
  }
}

/** The address at which the service reports that it listens; fails the test if the service ends before. */
async function addressOf(t: Test, service: ChildProcess): Promise<string> {
  let said = '';
  service.stderr?.setEncoding('utf8');
  return new Promise((found, failed) => {
    service.stderr?.on('data', (text: string) => {
      said += text;
      const url = /dashboard: (http:\S+)/.exec(said)?.[1];
      if (url) found(url);
    });
    service.on('exit', () => failed(new Error(`the service ended:\n${said}`)));
    t.teardown(() => service.stderr?.destroy());
  });
}
