import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { bareDebian, SUITES, type Suite } from '../../../testkit/container/images.ts';
import { ROOT } from '../../../testkit/service/service.ts';

// A checkout on a Debian on which only its own git, Node and npm are installed.

t.setTimeout(1_200_000);
const isDebootstrapMissing = spawnSync('debootstrap', ['--version']).error !== undefined;
const skip =
  process.getuid?.() !== 0 ? 'needs root, for a file system of its own' : isDebootstrapMissing && 'needs the Debian package debootstrap';
const CERTIFICATES = process.env['NODE_EXTRA_CA_CERTS'];
const ENVIRONMENT = {
  LC_ALL: 'C.UTF-8',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  npm_config_registry: spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', cwd: '/' }).stdout.trim(),
  ...(CERTIFICATES ? { NODE_EXTRA_CA_CERTS: '/etc/registry-certificates.pem' } : {}),
};
const CHECKOUT = 'edge health';

/** A disposable Debian whose file system is the bare one with changes of its own. Its processes are killed with it. */
class BareDebian {
  readonly #folder: string;
  readonly #namespaces: number;

  private constructor(folder: string, holder: number) {
    this.#folder = folder;
    this.#namespaces = holder;
  }

  static async start(t: Test, suite: Suite): Promise<BareDebian> {
    const lower = await bareDebian(suite);
    // On a disk: an overlay over memory would hold two installations of a quarter gigabyte each.
    const folder = mkdtempSync('/var/tmp/edge-health-test-');
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ['upper', 'work', 'root']) mkdirSync(join(folder, name));
    const mounts = `mount -t overlay overlay -o lowerdir=${lower},upperdir=upper,workdir=work root
      mount -t proc proc root/proc; mount --rbind /dev root/dev; mount -t tmpfs tmpfs root/tmp; chmod 1777 root/tmp
      echo ready; exec cat`;
    const holder = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', 'sh', '-euc', mounts], {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.teardown(async () => {
      holder.stdin.end();
      await once(holder, 'close');
    });
    await once(holder.stdout, 'data');
    // The first process of its process namespace, not unshare itself.
    const inner = spawnSync('pgrep', ['--parent', String(holder.pid)], { encoding: 'utf8' }).stdout.trim();
    return new BareDebian(folder, Number(inner)).#prepare();
  }

  #prepare(): this {
    const root = `/proc/${this.#namespaces}/root${join(this.#folder, 'root')}`;
    copyFileSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'));
    if (CERTIFICATES) copyFileSync(CERTIFICATES, join(root, 'etc/registry-certificates.pem'));
    const files = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, maxBuffer: 1 << 26 });
    this.run('useradd --create-home student');
    for (const home of ['root', 'home/student']) {
      const checkout = join(root, home, CHECKOUT);
      mkdirSync(checkout);
      const pack = `tar --null --files-from=- --ignore-failed-read -c 2>/dev/null | tar -x -C '${checkout}'`;
      const { status, stderr } = spawnSync('sh', ['-c', pack], { cwd: ROOT, input: files.stdout, encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
    }
    writeFileSync(join(root, 'root/config.yaml'), 'rest: { host: 127.0.0.1, port: 0 }\nros: { transport: "off" }\n');
    this.run('chown -R student:student /home/student');
    return this;
  }

  /** The arguments of `spawn` for a shell script in the checkout of a user. */
  command(script: string, user = 'root'): [program: string, args: string[]] {
    const home = user === 'root' ? '/root' : `/home/${user}`;
    const environment = Object.entries({ ...ENVIRONMENT, HOME: home }).map(([name, value]) => `${name}=${value}`);
    const inside = ['chroot', `--userspec=${user}`, join(this.#folder, 'root'), 'env', '-i', ...environment];
    return [
      'nsenter',
      ['--target', String(this.#namespaces), '--mount', '--pid', ...inside, 'sh', '-c', `cd '${home}/${CHECKOUT}' 2>/dev/null; ${script}`],
    ];
  }

  run(script: string, user = 'root'): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(...this.command(script, user), { encoding: 'utf8', maxBuffer: 1 << 26 });
  }
}

/** What npm itself prints before a script runs. */
const withoutHeader = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('> '));

/** Version of Node, and of npm. */
const OWN_NODE: Readonly<Record<Suite, RegExp>> = { bookworm: /^v18\..*\n9\./, trixie: /^v20\..*\n9\./ };

for (const suite of SUITES) {
  t.test(`a bare Debian (${suite}) installs and runs the product`, { skip }, async (t) => {
    const machine = await BareDebian.start(t, suite);
    t.match(machine.run('node --version; npm --version').stdout, OWN_NODE[suite], 'it has its own Node and npm');

    await t.test('a user without root gets the one missing command, and nothing is installed', async (t) => {
      for (const command of ['start', 'test']) {
        const { status, stdout, stderr } = machine.run(`npm ${command}`, 'student');
        t.not(status, 0);
        const printed = withoutHeader(stdout + stderr).filter((line) => !line.startsWith('npm ERR!'));
        t.same(printed, [`npm ${command}: Debian packages are missing. As root: apt-get install -y --no-install-recommends libatomic1`]);
      }
      t.not(machine.run('test -e node_modules', 'student').status, 0);
    });

    await t.test('npm start as root installs everything that is missing, and runs the service', async (t) => {
      const service = spawn(...machine.command('exec npm start -- --config /root/config.yaml'), {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
      t.teardown(() => service.kill());
      let printed = '';
      const url = await new Promise<string>((resolve, reject) => {
        for (const stream of [service.stdout, service.stderr]) {
          stream.setEncoding('utf8').on('data', (text: string) => {
            printed += text;
            const found = /dashboard: (http:\S+)\//.exec(printed)?.[1];
            if (found) resolve(found);
          });
        }
        service.once('exit', () => reject(new Error(printed)));
      });
      t.equal((await fetch(`${url}/status`)).status, 200, url);
      t.match(printed, 'installing the Debian packages libatomic1');
      t.notMatch(printed, /EBADENGINE|npm WARN|npm warn|npm ERR|deprecated/);
      t.ok(printed.split('\n').length < 60, printed);
      // As Ctrl-C does: to the whole process group.
      process.kill(-(service.pid as number), 'SIGINT');
      await once(service, 'close');
      t.match(printed, /SIGINT/, 'Ctrl-C ends it');
    });

    await t.test('npm test runs for an ordinary user', async (t) => {
      const { status, stdout, stderr } = machine.run(
        'npm test -- src/core/alerts/alert.test.ts src/store/store.full-disk.test.ts',
        'student',
      );
      t.equal(status, 0, stdout + stderr);
      t.match(stdout, /^\d+ passed, 0 failed(, \d+ skipped)?\n$/m);
      t.notMatch(stdout + stderr, /EBADENGINE|npm WARN|npm warn|npm ERR/);
    });

    await t.test('npm run deb as root installs everything that is missing, and builds the package', async (t) => {
      const { status, stdout, stderr } = machine.run('npm run deb');
      t.equal(status, 0, stdout + stderr);
      t.notMatch(stdout + stderr, /EBADENGINE|npm WARN|npm warn|npm ERR|[Dd]eprecat/);
      // Debian's npm leaves out rclnodejs, which requires a newer Node.
      const listed = machine.run('dpkg-deb --contents dist/edge-health.deb').stdout;
      for (const name of ['rclnodejs', 'sd-notify']) t.match(listed, `/usr/lib/edge-health/node_modules/${name}/package.json`);
      t.equal(machine.run('cat package-lock.json').stdout, readFileSync(join(ROOT, 'package-lock.json'), 'utf8'), 'npm left it unchanged');
    });
  });
}
