import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';

// The commands of docs/install/apt-repository.md create a repository on a web server of this machine, and apt reads it.

const missing = ['apt-ftparchive', 'gpg', 'gpg-agent'].filter((program) => spawnSync(program, ['--version']).error);
const skip = missing.length > 0 && `needs ${missing.join(', ')}`;
const [createKey = '', publish = '', configure = '', allowUpgrades = ''] = [
  ...readFileSync(join(ROOT, 'docs/install/apt-repository.md'), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```/gm),
].map(([, commands = '']) => commands);

interface Finished {
  readonly code: number;
  readonly output: string;
}

t.test('the documented repository serves both architectures and upgrades, and apt refuses a changed one', { skip }, async (t) => {
  // gpg-agent has its socket in GNUPGHOME, whose path may have at most 108 bytes.
  const home = temporaryFolder(t);
  const repository = join(home, 'edge-health-repository');
  const environment = { PATH: process.env['PATH'], HOME: home, GNUPGHOME: join(home, '.gnupg'), LC_ALL: 'C.UTF-8' };
  mkdirSync(environment.GNUPGHOME, { mode: 0o700 });
  t.teardown(() => spawnSync('gpgconf', ['--kill', 'gpg-agent'], { env: environment }));

  // Asynchronous, because apt reads from this process.
  async function run(script: string): Promise<Finished> {
    const shell = spawn('sh', ['-euc', script], { cwd: home, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    const [code] = (await once(shell, 'close')) as [number];
    return { code, output };
  }
  async function succeed(script: string): Promise<string> {
    const { code, output } = await run(script);
    if (code !== 0) throw new Error(`${script}\n${output}`);
    return output;
  }
  async function addPackage(version: string, architecture: string): Promise<void> {
    const tree = join(home, 'tree');
    mkdirSync(join(tree, 'DEBIAN'), { recursive: true });
    const fields = { Package: 'edge-health', Version: version, Architecture: architecture, Maintainer: 'a <a@b.c>', Description: 'd' };
    const control = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
    writeFileSync(join(tree, 'DEBIAN/control'), control.join(''));
    await succeed(`dpkg-deb --root-owner-group --build tree edge-health_${version}_${architecture}.deb`);
  }

  const server = createServer((request, response) => {
    try {
      response.end(readFileSync(join(repository, decodeURI(request.url ?? ''))));
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });

  /** apt with folders of its own, as on a machine of this architecture. */
  const machine = join(home, 'machine');
  const apt = (architecture: string): string => {
    const folders = ['Dir', 'Dir::State', 'Dir::Cache', 'Dir::Etc'].map((name) => {
      const folder = join(machine, architecture, name.slice(5));
      for (const inside of ['lists/partial', 'archives/partial']) mkdirSync(join(folder, inside), { recursive: true });
      return `-o ${name}=${folder}`;
    });
    writeFileSync(join(machine, architecture, 'State/status'), '');
    const sources = `Dir::Etc::SourceParts=${machine}/etc/apt/sources.list.d`;
    const status = `Dir::State::status=${machine}/${architecture}/State/status`;
    const architectures = [`APT::Architecture=${architecture}`, `APT::Architectures=${architecture}`];
    return ['apt-get', ...folders, ...[sources, status, ...architectures, 'APT::Sandbox::User='].map((option) => `-o ${option}`)].join(' ');
  };

  await succeed(createKey.replace(/^sudo apt-get .*\n/, ''));
  for (const architecture of ['amd64', 'arm64']) await addPackage('1.0.0', architecture);
  await succeed(publish);
  const { port } = server.address() as AddressInfo;
  const steps = configure
    .replace(/^sudo apt-get .*\n/gm, '')
    .replaceAll('sudo ', '')
    .replaceAll('/etc/apt', `${machine}/etc/apt`)
    .replace('http://packages.example:8000', `http://127.0.0.1:${port}`);
  mkdirSync(join(machine, 'etc/apt/sources.list.d'), { recursive: true });
  copyFileSync(join(repository, 'edge-health.gpg'), join(home, 'edge-health.gpg'));
  await succeed(steps);

  for (const architecture of ['amd64', 'arm64']) {
    await succeed(`${apt(architecture)} update --error-on=any`);
    t.match(
      await succeed(`${apt(architecture)} install --simulate edge-health`),
      new RegExp(`^Inst edge-health \\(1\\.0\\.0 .*\\[${architecture}\\]`, 'm'),
    );
    await succeed(
      `${apt(architecture)} download edge-health && cmp edge-health_1.0.0_${architecture}.deb ${repository}/edge-health_1.0.0_${architecture}.deb`,
    );
  }

  await addPackage('1.0.1', 'amd64');
  await succeed(publish);
  await succeed(`${apt('amd64')} update --error-on=any`);
  t.match(await succeed(`${apt('amd64')} install --simulate edge-health`), /^Inst edge-health \(1\.0\.1 /m);
  t.match(await succeed(`${apt('amd64')} install --simulate edge-health=1.0.0`), /^Inst edge-health \(1\.0\.0 /m);
  const [, origin = 'none'] = /"origin=([^"]+)"/.exec(allowUpgrades) ?? [];
  t.match(await succeed(apt('amd64').replace('apt-get', 'apt-cache policy')), `o=${origin},`);

  rmSync(join(home, 'edge-health_1.0.1_amd64.deb'));
  appendFileSync(join(repository, 'edge-health_1.0.1_amd64.deb'), 'x');
  t.match(await run(`${apt('amd64')} download edge-health=1.0.1`), { code: 100, output: /Hash Sum mismatch|unexpected size/ });
  rmSync(join(repository, 'InRelease'));
  t.match(await run(`${apt('amd64')} update`), { code: 100, output: /is (?:not|no longer) signed/ });
});
