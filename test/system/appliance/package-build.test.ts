import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { builtPackage, ownArchitecture } from '../../../testkit/container/package.ts';

t.setTimeout(600_000);

const NODE = resolve('node_modules/node/bin/node');
const own = await ownArchitecture();
const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

interface Result {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the build itself, without installing and building what it needs. */
function build(args: readonly string[], folder = '.', environment: NodeJS.ProcessEnv = process.env): Result {
  const script = ['--disable-warning=ExperimentalWarning', 'scripts/deb/main.ts', ...args];
  return spawnSync(NODE, script, { cwd: folder, env: environment, encoding: 'utf8' });
}

t.test('--help lists the options', async (t) => {
  const { status, stdout } = build(['--help']);
  t.equal(status, 0);
  for (const option of ['--arch', '--version', '--out']) t.match(stdout, option);
});

t.test('wrong arguments are reported with the allowed values', async (t) => {
  const wrong: readonly (readonly [args: string[], said: RegExp])[] = [
    [['--arch', 'riscv64'], /--arch is riscv64, allowed is amd64 or arm64/],
    [['--version', 'latest'], /--version is latest; allowed are a digit/],
    [['--colour'], /Unknown option '--colour'; see: npm run deb -- --help/],
  ];
  for (const [args, said] of wrong) {
    const { status, stderr } = build(args);
    t.equal(status, 1);
    t.match(stderr, said);
  }
});

t.test('a missing tool is reported with the package that has it', async (t) => {
  const bin = mkdtempSync(join(tmpdir(), 'edge-health-tools-'));
  t.teardown(() => rmSync(bin, { recursive: true, force: true }));
  for (const name of ['dpkg', 'dpkg-query', 'dpkg-buildpackage', 'dh', 'python3', 'tar', 'xz']) {
    const found = (process.env['PATH'] ?? '')
      .split(delimiter)
      .map((folder) => join(folder, name))
      .find((file) => existsSync(file));
    if (found !== undefined) symlinkSync(found, join(bin, name));
  }
  const { status, stderr } = build([], '.', { ...process.env, PATH: bin });
  t.equal(status, 1);
  t.match(stderr, /missing: .*patchelf/);
  t.match(stderr, /apt-get install --no-install-recommends .*build-essential.* patchelf/);
});

t.test('an existing package that is newer than its sources is not built again', async (t) => {
  const { file } = await builtPackage(own);
  const before = statSync(file).mtimeMs;
  t.equal(spawnSync('sh', ['scripts/deb.sh', '--if-needed'], { encoding: 'utf8' }).status, 0);
  t.equal(statSync(file).mtimeMs, before);
});

t.test('in another folder', async (t) => {
  const { file } = await builtPackage(own);
  const otherFolder = copyOfCheckout(t);

  t.test('the same sources give the same package, whatever was compiled in the installed modules', async (t) => {
    // As Python leaves it after a run of node-gyp.
    const compiled = join(otherFolder, 'node_modules/node-gyp/gyp/pylib/gyp/__pycache__');
    mkdirSync(compiled, { recursive: true });
    writeFileSync(join(compiled, 'other.cpython-311.pyc'), otherFolder);
    const made = spawnSync('sh', ['-c', 'umask 077; exec sh scripts/deb.sh'], { cwd: otherFolder, encoding: 'utf8' });
    t.equal(made.status, 0, made.stderr);
    t.equal(sha256(join(otherFolder, 'dist/edge-health.deb')), sha256(file));
  });

  t.test('a runtime other than the pinned one is refused', async (t) => {
    const pins = join(otherFolder, 'scripts/deb/runtime.json');
    const pinned = readFileSync(pins, 'utf8');
    writeFileSync(pins, pinned.replace(/sha512-\w{8}/g, 'sha512-AAAAAAAA'));
    const changed = build([], otherFolder);
    t.equal(changed.status, 1);
    t.match(changed.stderr, /checksum of .* is sha512-.*, expected sha512-AAAAAAAA.* \(scripts\/deb\/runtime\.json\): remove the file/);
    writeFileSync(pins, pinned.replace(/"version": "[^"]+"/, '"version": "1.2.3"'));
    const old = build([], otherFolder);
    t.equal(old.status, 1);
    t.match(old.stderr, /has the checksums of 1\.2\.3: put those of .* there/);
    writeFileSync(pins, pinned);
  });

  t.test('a changelog of another version is refused', async (t) => {
    const changelog = join(otherFolder, 'debian/changelog');
    writeFileSync(changelog, readFileSync(changelog, 'utf8').replace(/\([^)]+\)/, '(99.0)'));
    const { status, stderr } = build([], otherFolder);
    t.equal(status, 1);
    t.match(stderr, /debian\/changelog is at version 99\.0, package\.json at .*: add an entry/);
  });
});

/** The sources, with links to the installed packages and to what was fetched. */
function copyOfCheckout(t: Test): string {
  // Below build/, so that it is on the file system of the checkout: the links are hard ones, and need it.
  mkdirSync('build', { recursive: true });
  const folder = resolve(mkdtempSync('build/elsewhere-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const sources = execFileSync('ls', ['-A'], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .filter((name) => !['.git', '.tap', 'bench', 'build', 'data', 'dist', 'node_modules', 'test'].includes(name));
  for (const name of sources) cpSync(name, join(folder, name), { recursive: true });
  execFileSync('cp', ['--archive', '--link', 'node_modules', folder]);
  mkdirSync(join(folder, 'build'));
  execFileSync('cp', ['--archive', '--link', 'build/cache', join(folder, 'build')]);
  return folder;
}
