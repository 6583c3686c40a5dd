import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ROOT } from '../../testkit/service/service.ts';

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly name?: string; readonly run?: string }[] }>>;
}

const workflow = parse(readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8')) as Workflow;
const steps = workflow.jobs['packages']?.steps ?? [];
const script = (name: string): string => steps.find((step) => step.name === name)?.run ?? '';

/** Builds nothing: creates files with the names that the build gives them on amd64. */
const NPM = `#!/bin/sh
[ "$1 $2 $3 $4 $6" = "run deb -- --arch --out" ] || exit 64
mkdir -p "$7"
echo "package for $5" > "$7/edge-health_1.2.3_$5.deb"
[ "$5" != amd64 ] || cp "$7/edge-health_1.2.3_$5.deb" "$7/edge-health.deb"
`;
/** Writes its arguments. */
const GH = '#!/bin/sh\nprintf "%s\\n" "$@" > gh-arguments\n';

/** Runs a step as GitHub does, with stand-ins for npm and gh. */
function runner(t: Test, tag: string): { folder: string; run: (name: string) => { status: number | null; stdout: string } } {
  const folder = temporaryFolder(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), NPM, { mode: 0o755 });
  writeFileSync(join(bin, 'gh'), GH, { mode: 0o755 });
  writeFileSync(join(folder, 'package.json'), '{ "version": "1.2.3" }');
  const env = { PATH: `${bin}:${process.env['PATH']}`, GITHUB_REF_NAME: tag, GITHUB_REPOSITORY: 'owner/edge-health' };
  return { folder, run: (name) => spawnSync('sh', ['-e', '-c', script(name)], { cwd: folder, env, encoding: 'utf8' }) };
}

t.test('a release has the packages of both architectures and their checksums', async (t) => {
  const { folder, run } = runner(t, 'v1.2.3');
  t.equal(run('Build').status, 0);
  const assets = ['SHA256SUMS', 'edge-health_1.2.3_amd64.deb', 'edge-health_1.2.3_arm64.deb'];
  t.same(readdirSync(join(folder, 'release')).sort(), assets);
  const checked = spawnSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: join(folder, 'release'), encoding: 'utf8' });
  t.equal(checked.stdout, 'edge-health_1.2.3_amd64.deb: OK\nedge-health_1.2.3_arm64.deb: OK\n');
  t.equal(run('Release').status, 0);
  const given = readFileSync(join(folder, 'gh-arguments'), 'utf8').split('\n');
  t.same(given.slice(0, 3), ['release', 'create', 'v1.2.3']);
  for (const asset of assets) t.ok(given.includes(`release/${asset}`), asset);
});

t.test('a tag that is not the version of package.json is refused before anything is built', async (t) => {
  const { folder, run } = runner(t, 'v1.2.4');
  const { status, stdout } = run('Build');
  t.equal(status, 1);
  t.equal(stdout, 'the tag is v1.2.4, package.json has version 1.2.3\n');
  t.notOk(readdirSync(folder).includes('release'));
});
