import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, rootFilesystem, SUITES } from '../../../testkit/container/images.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
const skip = containersUnavailable();

/** A socket unit whose service responds over HTTP with one word. */
const GREETER = {
  '/etc/systemd/system/greeter.socket': '[Socket]\nListenStream=127.0.0.1:5000\nAccept=yes\n',
  '/etc/systemd/system/greeter@.service':
    '[Service]\nStandardInput=socket\nExecStart=printf "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\nhello"\n',
};

for (const suite of SUITES) {
  t.test(`a machine of ${suite} boots, runs programs, reboots and powers off`, { skip }, async (t) => {
    const machine = await Container.boot(t, { suite });
    t.equal(await machine.systemctl('is-system-running'), 'running', 'systemd has started everything, and nothing failed');
    t.equal(await machine.sh('cat /proc/1/comm; hostname').then((text) => text.split('\n')[0]), 'systemd', 'it is process 1');
    t.match(await machine.read('/etc/os-release'), `VERSION_CODENAME=${suite}`);

    t.match(await machine.run(['sh', '-c', 'echo out; echo err >&2; exit 7']), { code: 7, stdout: 'out\n', stderr: 'err\n' });
    t.match(await machine.run(['tr', 'a-z', 'A-Z'], { input: 'text' }), { code: 0, stdout: 'TEXT' });
    t.equal(await machine.sh('id -un; id -Gn', { user: 'nobody' }), 'nobody\nnogroup');
    t.match(await machine.run(['sleep', '777'], { timeoutSeconds: 0.3 }), { code: null }, 'what takes too long is killed');
    t.equal((await machine.run(['pgrep', '-f', 'sleep 777'])).code, 1, 'and gone');

    await t.test('limits of a unit are enforced', async (t) => {
      const eater = ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=100M', 'count=1'];
      t.equal((await machine.run(['systemd-run', '-q', '--wait', '-p', 'MemoryMax=300M', ...eater])).code, 0);
      t.not((await machine.run(['systemd-run', '-q', '--wait', '-p', 'MemoryMax=30M', '-p', 'MemorySwapMax=0', ...eater])).code, 0);
    });

    for (const [path, text] of Object.entries(GREETER)) await machine.write(path, text);
    await machine.systemctl('daemon-reload');
    await machine.systemctl('start', 'greeter.socket');
    t.equal(await (await machine.http('/')).text(), 'hello', 'a port of it can be reached from here');
    await machine.systemctl('stop', 'greeter.socket');
    await t.rejects(machine.http('/'), 'where nobody listens nobody answers');

    const bootId = await machine.read('/proc/sys/kernel/random/boot_id');
    await machine.write('/root/kept', 'on the disk');
    await machine.write('/run/gone', 'in memory');
    await machine.reboot();
    t.equal(machine.starts, 2);
    t.equal(await machine.read('/root/kept'), 'on the disk');
    t.equal((await machine.run(['test', '-e', '/run/gone'])).code, 1);
    t.not(await machine.read('/proc/sys/kernel/random/boot_id'), bootId, 'another boot');
    await machine.systemctl('start', 'greeter.socket');
    t.equal(await (await machine.http('/')).text(), 'hello', 'the port is still reached after the reboot');

    t.equal(await machine.waitForEnd(0.2), null, 'it is up');
    await machine.run(['systemctl', '--no-block', 'poweroff']);
    t.equal(await machine.waitForEnd(30), 'powered off', 'its end is seen from here');
    t.notOk(machine.isUp);
    t.equal(await machine.read('/root/kept'), 'on the disk', 'its files can still be read');
  });
}

t.test('a power cut loses what its disk was not given to write', { skip }, async (t) => {
  const machine = await Container.boot(t, { suite: 'bookworm', disk: { path: '/srv', megabytes: 16 } });
  await machine.sh('echo safe > /srv/synced; sync /srv/synced; sync -f /srv; echo lost > /srv/hurried');
  t.equal(await machine.sh('cat /srv/hurried'), 'lost');
  await machine.cutPower();
  t.equal(await machine.waitForEnd(1), 'killed');
  const copy = mkdtempSync(join(tmpdir(), 'edge-health-test-'));
  t.teardown(() => rmSync(copy, { recursive: true }));
  await machine.copyOut('/srv', copy);
  t.equal(readFileSync(join(copy, 'synced'), 'utf8'), 'safe\n');
  t.notOk(existsSync(join(copy, 'hurried')));
  await machine.bootAgain();
  t.equal(await machine.sh('cat /srv/synced; ls /srv'), 'safe\nlost+found\nsynced', 'it boots with what was left');
});

t.test('nothing of a machine remains, even if the test is killed', { skip }, async (t) => {
  await rootFilesystem('bookworm');
  const script = `
    import t from 'tap';
    import { Container } from ${JSON.stringify(join(ROOT, 'testkit/container/container.ts'))};
    t.test('one', async (t) => {
      const machine = await Container.boot(t, { suite: 'bookworm', disk: { path: '/srv', megabytes: 8 } });
      console.error(JSON.stringify({ pid1: machine.pid1, folder: machine.folder }));
      if (process.argv[2] === 'fail') throw new Error('as asked');
      await new Promise((later) => setTimeout(later, 60_000));
    });`;
  const folder = mkdtempSync(join(import.meta.dirname, '.killed-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { writeFileSync } = await import('node:fs');
  writeFileSync(join(folder, 'one.ts'), script);
  for (const how of ['fail', 'SIGKILL', 'SIGTERM'] as const) {
    const child = spawn(process.execPath, [join(folder, 'one.ts'), how], { stdio: ['ignore', 'ignore', 'pipe'] });
    const [line] = (await once(createInterface({ input: child.stderr }), 'line')) as [string];
    const machine = JSON.parse(line) as { pid1: number; folder: string };
    const closed = once(child, 'close');
    if (how !== 'fail') {
      t.ok(existsSync(machine.folder), `${how}: it is there before`);
      child.kill(how);
    }
    await closed;
    const name = machine.folder.split('/').at(-1) as string;
    const left = (): string[] => [
      ...[`/proc/${machine.pid1}`, machine.folder].filter(existsSync),
      ...spawnSync('find', ['/sys/fs/cgroup', '-name', name], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean),
      ...spawnSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter((file) => file.includes(name)),
      ...readFileSync('/proc/self/mounts', 'utf8')
        .split('\n')
        .filter((mount) => mount.includes(name)),
    ];
    await until(`${how}: no process, folder, control group, disk or mount of it is left`, () => left().length === 0, { describe: left });
  }
});
