import { availableParallelism } from 'node:os';
import t from 'tap';
import { stringify } from 'yaml';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Appliance, CONFIG, dropIn, UNIT } from '../../../testkit/container/appliance.ts';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';

t.setTimeout(600_000);
const skip = containersUnavailable();

const FIELDS = ['cpu_percent', 'memory_percent', 'disk_percent', 'temperature', 'status', 'node_name', 'timestamp'];
/** What `systemctl status` shows. */
const STATUS_LINE =
  /Status: "(OK|WARNING|CRITICAL): CPU \d+ %, memory \d+ %, disk \d+ %, temperature (unavailable|[\d.]+ °C); (no|\d+) open alerts?; ROS 2: embedded/;
const ENABLED = '/etc/systemd/system/multi-user.target.wants/edge-health.service';
/** What installing and removing any package changes: records and caches of dpkg, apt and the linker, logs, and temporary files. */
const ANY_PACKAGE = /^\/(dev|proc|run|sys|tmp|var\/(cache|lib\/(apt|dpkg|systemd\/catalog)|log|tmp))(\/|$)/;

/** Every file, folder and link, every user and group. */
async function inventory(machine: Container): Promise<string[]> {
  const files = await machine.sh('find / -xdev -path /proc -prune -o -print');
  const people = await machine.sh('cut -d : -f 1 /etc/passwd | sed s/^/user:/; cut -d : -f 1 /etc/group | sed s/^/group:/');
  return [...files.split('\n').filter((path) => !ANY_PACKAGE.test(path)), ...people.split('\n')].sort();
}

async function install(machine: Container, file: string): Promise<{ code: number | null; output: string }> {
  await machine.copyIn(file, '/root/edge-health.deb');
  const { code, stdout, stderr } = await machine.run(['sh', '-c', 'cd /root && apt-get install -y ./edge-health.deb'], {
    environment: { DEBIAN_FRONTEND: 'noninteractive' },
    timeoutSeconds: 300,
  });
  await machine.sh('rm /root/edge-health.deb');
  return { code, output: stdout + stderr };
}

for (const suite of SUITES) {
  t.test(`on ${suite}`, { skip }, async (t) => {
    const deb = (await builtPackage()).file;
    const machine = await Container.boot(t, { suite, disk: { path: '/srv', megabytes: 64 } });
    const appliance = new Appliance(machine);
    const before = await inventory(machine);
    let samples: number[] = [];

    await t.test('apt installs it, and it runs', async (t) => {
      const { code, output } = await install(machine, deb);
      t.equal(code, 0, 'apt is content');
      t.notMatch(output, /edge-health: /, 'and has nothing to complain of');
      const status = await machine.run(['systemctl', 'status', UNIT]);
      t.equal(status.code, 0);
      t.match(status.stdout, /Loaded: .*enabled/);
      t.match(status.stdout, /Active: active \(running\)/);
      t.match(status.stdout, STATUS_LINE, 'the status line shows the four values');
      t.same(await appliance.restarts(), 0, 'at its first start');

      const health = JSON.parse(await machine.sh('curl -fsS localhost:5000/health')) as Record<string, unknown>;
      t.same(Object.keys(health), FIELDS, 'curl gets the seven fields');
      const page = await machine.http('/');
      t.match(page.headers.get('content-type'), /^text\/html/);
      const html = await page.text();
      t.match(html, /<title>/, 'the dashboard is there');
      const script = /src="\/?([^"]+\.js)"/.exec(html)?.[1];
      t.equal((await machine.http(`/${script}`)).status, 200, 'and its program');
      t.match(
        await machine.sh('edge-health --version || edge-health version'),
        (await builtPackage()).version,
        'the command is on the path',
      );
    });

    await t.test('the four metrics follow the machine', async (t) => {
      // A virtual machine has no temperature sensor: it gets a sysfs with the one of a Raspberry Pi. Its disk is a small one.
      const sensor = '/srv/sys/class/thermal/thermal_zone0';
      await machine.write(`${sensor}/type`, 'cpu-thermal\n');
      await machine.write(`${sensor}/temp`, '45000\n');
      await machine.write(CONFIG, stringify({ disk: { paths: ['/srv'] } }));
      const start = '/usr/lib/edge-health/bin/with-ros2 /usr/bin/edge-health run --sys /srv/sys';
      await machine.write(dropIn('sensor'), `[Service]\nExecStart=\nExecStart=${start}\n`);
      await machine.systemctl('daemon-reload');
      await machine.systemctl('restart', UNIT);
      const calm = await appliance.measures();
      t.equal(calm.temperature, 45);
      t.type(calm.memory_percent, 'number');
      t.type(calm.cpu_percent, 'number');

      await machine.sh('head -c 30M /dev/zero > /srv/ballast');
      await machine.write(`${sensor}/temp`, '61500\n');
      // A tenth of the memory of the machine, held by a file system.
      await machine.sh(`mkdir /root/memory && mount -t tmpfs -o size=20% tmpfs /root/memory
        head -c "$(awk '/^MemTotal/ { printf "%d", $2 * 1024 / 10 }' /proc/meminfo)" /dev/zero > /root/memory/ballast`);
      // Until every value is seen: other programs of this machine use its memory and CPU as well.
      const loop = `for core in $(seq ${availableParallelism()}); do while :; do :; done & done; wait`;
      await machine.run(['systemd-run', '--quiet', '--unit=load', 'sh', '-c', loop]);
      const risen = (health: HealthStatus): boolean =>
        (health.cpu_percent ?? 0) >= 95 &&
        (health.disk_percent ?? 0) >= (calm.disk_percent ?? 100) + 40 &&
        (health.memory_percent ?? 0) >= (calm.memory_percent ?? 100) + 5 &&
        health.temperature === 61.5;
      await machine.untilJson<HealthStatus>('/health', risen);
      t.pass('all four rise');
      await machine.systemctl('stop', 'load');

      await machine.sh('rm /srv/ballast; umount /root/memory; rmdir /root/memory');
      await machine.write(`${sensor}/temp`, '44000\n');
      await machine.untilJson<HealthStatus>(
        '/health',
        ({ temperature, disk_percent, cpu_percent }) => temperature === 44 && (disk_percent ?? 100) < 10 && cpu_percent !== null,
      );
      t.pass('and the temperature and the disk are as before');
      await machine.until(async () => (await appliance.history()).length >= 5, 120);
      samples = await appliance.history();
    });

    await t.test('remove keeps configuration and data, and a new installation uses them', async (t) => {
      const { code, stderr } = await machine.run(['apt-get', 'remove', '-y', 'edge-health']);
      t.equal(code, 0, stderr);
      t.not((await machine.run(['systemctl', 'is-active', UNIT])).code, 0, 'the service is gone');
      t.equal((await machine.run(['sh', '-c', 'test -e /usr/bin/edge-health -o -e /usr/lib/edge-health'])).code, 1, 'and its programs');
      t.match(await machine.read(CONFIG), '/srv', 'the configuration is there');
      await appliance.storeIsWhole(t);

      t.equal((await install(machine, deb)).code, 0);
      const again = await appliance.measures();
      t.equal(again.temperature, 44, 'it runs with the configuration of before');
      const history = await appliance.history();
      t.same(history.slice(0, samples.length), samples, 'and with the history of before');
    });

    await t.test('purge leaves nothing behind', async (t) => {
      await machine.sh('systemctl enable --now edge-health@sensor_node', { timeoutSeconds: 300 });
      await machine.sh('rm -r /srv/sys');
      const { code, stdout, stderr } = await machine.run(['apt-get', 'purge', '-y', 'edge-health']);
      t.equal(code, 0, stdout + stderr);
      const after = await inventory(machine);
      t.same(
        after.filter((entry) => !before.includes(entry)),
        [],
        'no file, link, user or group more than before it was installed',
      );
      t.same(
        before.filter((entry) => !after.includes(entry)),
        [],
        'and none less',
      );
      t.equal(
        await machine.sh('ls -d /run/edge-health* /var/lib/systemd/deb-systemd-helper-enabled/*edge-health* 2>/dev/null || true'),
        '',
      );
      t.equal(await machine.sh("systemctl list-units --all --plain --no-legend 'edge-health*'"), '', 'systemd knows none of its units');
      t.equal(await machine.sh('pgrep -f "[e]dge-health" || true'), '', 'nothing of it runs');
      t.notOk(before.includes(ENABLED));
    });
  });
}

for (const suite of SUITES) {
  t.test(`on ${suite} without network, D-Bus and polkit`, { skip }, async (t) => {
    const deb = (await builtPackage()).file;
    const machine = await Container.boot(t, { suite });
    await machine.sh('apt-get purge -y dbus-daemon polkitd');
    await machine.reboot();
    const { code, output } = await install(machine, deb);
    t.equal(code, 0, output);
    t.match(output, /^edge-health: without polkit, .*: apt-get install polkitd/m);
    await new Appliance(machine).measures();
    const { shutdown } = await machine.json<StatusDocument>('/status');
    t.match(shutdown.problem, /install systemd, dbus and polkitd/);
    // Their exit codes depend on the load of the machine.
    t.match((await machine.run(['edge-health', 'status'])).stdout, /Shutdown +not possible: .*polkitd/);
    const check = await machine.run(['edge-health', 'ops', 'health_check', '--all', '--dry-run']);
    t.match(check.stdout, /NOTE +safe shutdown: would be refused: .*polkitd/);
  });
}
