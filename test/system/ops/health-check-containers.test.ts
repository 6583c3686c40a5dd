import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type CheckResult, checkAt, NOWHERE, provide, provideRecorded, type Site, siteAt } from '../../../testkit/ops/health-site.ts';
import { isAlive } from '../../../testkit/service/safe-shutdown.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

const IMAGE = 'localhost/edge-health-test';
/** Uses only the kernel of the host, and limits that every host permits. */
const BARE = ['--network', 'none', '--cgroups=disabled', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1000:1000'];

function place(t: Test): Site {
  const site = siteAt(t, NOWHERE);
  mkdirSync(site.dataFolder);
  provideRecorded(site, 'systemctl', 'systemctl-not-installed.txt');
  return site;
}

/** A podman with its own storage, in its own mount namespace without control groups, which some machines do not permit. */
class Podman {
  readonly #site: Site;

  private constructor(site: Site) {
    this.#site = site;
  }

  static async start(t: Test, site: Site): Promise<Podman> {
    const script =
      'mount --make-rprivate / && { umount -l /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup; } && echo ready && exec sleep 600';
    const holder = spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(holder.stdout, 'data');
    const storage = join(site.folder, 'storage.conf');
    writeFileSync(storage, `[storage]\ndriver = "vfs"\ngraphroot = "${site.folder}/graph"\nrunroot = "${site.folder}/run"\n`);
    const podman = new Podman(site);
    provide(
      site,
      'podman',
      `export CONTAINERS_STORAGE_CONF='${storage}'
exec nsenter --target ${holder.pid} --mount /usr/bin/podman --runtime crun --cgroup-manager=cgroupfs --events-backend=none "$@"`,
    );
    t.teardown(async () => {
      podman.command('rm', '--all', '--force', '--time', '0');
      // Monitors of removed containers continue to write into the folder, which is removed next.
      await until("its containers' monitors have ended", () => !isAlive(`${site.folder}/graph`));
      holder.kill('SIGKILL');
    });
    const files = join(site.folder, 'rootfs/bin');
    mkdirSync(files, { recursive: true });
    copyFileSync('/bin/busybox', join(files, 'busybox'));
    for (const name of ['sh', 'sleep']) symlinkSync('busybox', join(files, name));
    const archive = join(site.folder, 'rootfs.tar');
    spawnSync('tar', ['-C', join(site.folder, 'rootfs'), '-cf', archive, '.']);
    const imported = podman.command('import', archive, IMAGE);
    if (imported.status !== 0) throw new Error(imported.stderr);
    return podman;
  }

  command(...args: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
    return spawnSync(join(this.#site.programs, 'podman'), args, { encoding: 'utf8' });
  }

  run(name: string, options: readonly string[], ...command: readonly string[]): void {
    const { status, stderr } = this.command('run', '--detach', '--name', name, ...BARE, ...options, IMAGE, ...command);
    if (status !== 0) throw new Error(stderr);
  }
}

function podmanUnavailable(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, for a podman of its own';
  const missing = ['podman', 'crun', 'busybox', 'nsenter'].filter((program) => spawnSync(program, ['--help']).error);
  return missing.length > 0 && `needs ${missing.join(', ')}`;
}

const healthy = ['--health-cmd', '/bin/sh -c "exit 0"', '--health-interval', 'disable'];
const sick = ['--health-cmd', '/bin/sh -c "exit 1"', '--health-interval', 'disable', '--health-retries', '1'];
const SLEEP = ['/bin/sleep', '600'];

t.test('containers of a real podman are judged', { skip: podmanUnavailable() }, async (t) => {
  const site = place(t);
  const podman = await Podman.start(t, site);
  podman.run('plain', [], ...SLEEP);
  podman.run('healthy', healthy, ...SLEEP);
  podman.run('starting', healthy, ...SLEEP);
  podman.run('sick', sick, ...SLEEP);
  podman.run('killed', [], ...SLEEP);
  // It ends when this file appears, and is restarted.
  podman.run(
    'crashing',
    ['--restart', 'on-failure:9', '--volume', `${site.folder}:/shared`],
    '/bin/sh',
    '-c',
    'while [ ! -e /shared/crash ]; do sleep 0.05; done; /bin/busybox rm /shared/crash; exit 3',
  );
  podman.command('healthcheck', 'run', 'healthy');
  podman.command('healthcheck', 'run', 'sick');
  podman.command('kill', 'killed');

  const names = ['plain', 'healthy', 'starting', 'sick', 'killed', 'crashing', 'gone'];
  const check = async (): Promise<(name: string) => CheckResult | undefined> => {
    const { of } = await checkAt(site, { check: { containers: names } });
    return (name) => of(`container ${name}`);
  };
  provide(site, 'docker', 'echo "permission denied while trying to connect to the Docker daemon socket" >&2; exit 1');
  const first = await check();
  t.match(first('plain'), { status: 'OK', message: 'runs in podman', measured: { engine: 'podman', state: 'running', health: null } });
  t.match(first('healthy'), { status: 'OK', message: 'runs in podman, healthy' });
  t.match(first('starting'), { status: 'OK', message: 'runs in podman, starting' });
  t.match(first('sick'), { status: 'CRITICAL', message: /^unhealthy: its health check failed 1 times/, remedy: /^podman logs/ });
  t.match(first('killed'), {
    status: 'CRITICAL',
    message: 'not running: exited, exit code 137 (SIGKILL)',
    remedy: /podman start killed/,
  });
  t.match(first('crashing'), { status: 'OK', measured: { restarts: 0 } });
  t.match(first('gone'), { status: 'UNKNOWN', remedy: /SupplementaryGroups=docker/ }, 'docker, which is not accessible, might have it');

  writeFileSync(join(site.folder, 'crash'), '');
  await until('it was restarted', () => podman.command('inspect', 'crashing').stdout.includes('"RestartCount": 1'));
  const second = await check();
  t.match(second('crashing'), { status: 'WARNING', message: 'restarted once since the last check', measured: { restarts: 1 } });
  t.match((await check())('crashing'), { status: 'OK', message: 'runs in podman, restarts so far: 1' }, 'reported once');

  podman.command('start', 'killed');
  podman.command('stop', '--time', '0', 'plain');
  const third = await check();
  t.match(third('killed'), { status: 'OK' });
  t.match(third('plain'), { status: 'CRITICAL', message: /^not running: exited/ });
});

const hasDocker = spawnSync('docker', ['--version']).status === 0;

t.test(
  "containers of docker's client are judged, with an engine that responds according to its API",
  { skip: !hasDocker && 'needs the docker client' },
  async (t) => {
    const site = place(t);
    const fixtures: Readonly<Record<string, string>> = { navigation: 'running', mapping: 'out-of-memory', bridge: 'restarting' };
    const engine = createServer((request, response) => {
      response.setHeader('Api-Version', '1.44');
      response.setHeader('Content-Type', 'application/json');
      const name = /\/containers\/([^/]+)\/json$/.exec(request.url ?? '')?.[1];
      if (name === undefined) return response.end('OK');
      const fixture = fixtures[name];
      if (fixture === undefined) return response.writeHead(404).end(JSON.stringify({ message: `No such container: ${name}` }));
      const [container] = JSON.parse(readFileSync(`${ROOT}/testkit/fixtures/health-check/docker-${fixture}.json`, 'utf8')) as unknown[];
      return response.end(JSON.stringify(container));
    });
    const socket = join(site.folder, 'docker.sock');
    engine.listen(socket);
    await once(engine, 'listening');
    t.teardown(() => engine.close());
    provide(site, 'podman', 'echo "Error: inspecting object: no such container" >&2; echo "[]"; exit 125');
    const docker = spawnSync('sh', ['-c', 'command -v docker'], { encoding: 'utf8' }).stdout.trim();
    provide(site, 'docker', `DOCKER_HOST='unix://${socket}' HOME='${site.folder}' exec ${docker} "$@"`);
    const checked = await checkAt(site, { check: { containers: ['navigation', 'mapping', 'bridge', 'gone'] } });
    t.match(checked.of('container navigation'), { status: 'OK', message: 'runs in docker, healthy, restarts so far: 2' });
    t.match(checked.of('container mapping'), { status: 'CRITICAL', message: /killed: out of memory/ });
    t.match(checked.of('container bridge'), { status: 'CRITICAL', message: /restart loop \(17 restarts/ });
    t.match(checked.of('container gone'), { status: 'CRITICAL', message: 'no such container in docker or podman' });
    engine.close();
    engine.closeAllConnections();
    const down = await checkAt(site, { check: { containers: ['navigation'] } });
    t.match(down.of('container navigation'), {
      status: 'CRITICAL',
      message: /Cannot connect to the Docker daemon/,
      remedy: /systemctl start docker/,
    });
  },
);
