import t from 'tap';
import { CONFIG, dropIn, UNIT } from '../../../testkit/container/appliance.ts';
import { Container } from '../../../testkit/container/container.ts';
import type { Finished } from '../../../testkit/container/finish.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { builtPackage, repackaged } from '../../../testkit/container/package.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';

t.setTimeout(600_000);

const STOP = 'edge-health-stop.socket';
const UDP = 'edge-health-udp.socket';
const ROLE = 'edge-health@sensor_node.service';
const POLICY = '/usr/sbin/policy-rc.d';
const UNATTENDED = ['--force-confdef', '--force-confold'];

// Tests the scripts of the package in unusual situations; install.test.ts and upgrade.test.ts test the usual ones.
t.test('the package on a machine with a configuration of its own', { skip: containersUnavailable() }, async (t) => {
  const { file, version } = await builtPackage();
  const folder = temporaryFolder(t);
  const machine = await Container.boot(t, { suite: 'bookworm' });
  await machine.copyIn(await repackaged(file, { version }, folder), '/root/this.deb');
  await machine.copyIn(await repackaged(file, { version: '0.0.1' }, folder), '/root/older.deb');
  const dpkg = async (...args: string[]): Promise<Finished> => {
    const done = await machine.run(['dpkg', ...UNATTENDED, ...args], { timeoutSeconds: 120 });
    t.equal(done.code, 0, `dpkg ${args.join(' ')}\n${done.stdout}${done.stderr}`);
    return done;
  };
  const state = (unit: string): Promise<string> => machine.show(unit, 'ActiveState');
  const starts = async (unit: string): Promise<number> =>
    (await machine.journal(unit, '--output=cat')).split('\n').filter((line) => line.startsWith('Started ')).length;

  await t.test('in an image nothing is started, and an error in the configuration is reported', async (t) => {
    // Without this folder the machine does not count as one that systemd runs.
    const inImage = (command: string): Promise<Finished> =>
      machine.run(['unshare', '--mount', 'sh', '-euc', `mount -t tmpfs none /run/systemd && ${command}`], { timeoutSeconds: 120 });
    const installed = await inImage('dpkg -i /root/this.deb');
    t.equal(installed.code, 0, installed.stderr);
    t.notMatch(installed.stderr, /edge-health: /);
    t.not(await state(UNIT), 'active');
    t.equal(
      await machine.sh(`test -L /etc/systemd/system/multi-user.target.wants/${UNIT} && echo enabled`),
      'enabled',
      'for the first boot',
    );
    await machine.sh(`printf 'rest:\\n  prot: 80\\n' >${CONFIG}`);
    const again = await inImage('dpkg -i --force-confold /root/this.deb');
    t.equal(again.code, 0, again.stderr);
    t.match(again.stderr, /edge-health: the configuration has errors:\n.*edge_health_config\.yaml:2:3:.*prot/);
    await dpkg('--purge', 'edge-health');
    await dpkg('--install', '/root/this.deb');
    t.equal(await state(UNIT), 'active');
    t.equal(await state(STOP), 'active');
    t.equal(await state(UDP), 'active');
    t.equal((await machine.run(['dpkg', '--verify', 'edge-health'])).stdout, '', 'all is as it came');
  });

  await t.test('a disabled service stays off, and one that policy-rc.d forbids is left unchanged', async (t) => {
    await machine.systemctl('disable', '--now', UNIT);
    const { stderr } = await dpkg('--install', '/root/this.deb');
    t.not(await state(UNIT), 'active');
    t.notMatch(stderr, /^edge-health: /m);
    await machine.systemctl('enable', '--now', UNIT);
    const before = await starts(UNIT);
    await machine.write(POLICY, '#!/bin/sh\nexit 101\n', '755');
    await dpkg('--install', '/root/this.deb');
    await machine.sh(`rm ${POLICY}`);
    t.equal(await starts(UNIT), before);
    t.equal(await state(UNIT), 'active');
  });

  await t.test('roles are restarted once by an upgrade, and stopped roles are left alone', async (t) => {
    await machine.systemctl('enable', '--now', ROLE);
    await dpkg('--install', '/root/this.deb');
    t.equal(await state(ROLE), 'active');
    t.equal(await starts(ROLE), 2);
    t.not(await state('edge-health@actuator_node.service'), 'active');
    await machine.write('/etc/edge-health/sensor_node_config.yaml', 'rest: {prot: 80}\n');
    const { stderr } = await dpkg('--install', '/root/this.deb');
    t.match(stderr, /edge-health@sensor_node\.service did not start\..*sensor_node_config\.yaml:1:\d+:.*prot/s);
    t.equal(await state(UNIT), 'active', 'the other goes on');
  });

  await t.test('only root and the service can read the configuration, unless the administrator changes that', async (t) => {
    const etc = '/etc/edge-health';
    const modes = (): Promise<string> => machine.sh(`cd ${etc} && stat -c '%n %U:%G %a' *.yaml`);
    const closed = (name: string): string => `${name}_config.yaml root:edge-health 640`;
    await machine.sh(
      `cd ${etc} && cp edge_health_config.yaml robot_config.yaml && chmod 644 robot_config.yaml sensor_node_config.yaml
chgrp root sensor_node_config.yaml && echo '{rest: {port: 5001}, storage: {path: /var/lib/edge-health/sensor_node}}' >sensor_node_config.yaml && echo '{}' >closed_config.yaml && chmod 600 closed_config.yaml
dpkg-statoverride --update --add root root 0644 ${etc}/edge_brain_config.yaml`,
    );
    const { stderr } = await dpkg('--install', '/root/this.deb');
    t.notMatch(stderr, /can be read by every user/);
    t.same((await modes()).split('\n'), [
      closed('actuator_node'),
      'closed_config.yaml root:root 600',
      'edge_brain_config.yaml root:root 644',
      closed('edge_health'),
      'hardened.yaml root:edge-health 640',
      closed('robot'),
      closed('sensor_node'),
    ]);
    await machine.sh(`dpkg-statoverride --remove ${etc}/edge_brain_config.yaml; rm ${etc}/closed_config.yaml ${etc}/robot_config.yaml`);
    for (const user of ['root', 'nobody']) t.match(await machine.run(['edge-health', 'status'], { user }), { stdout: /Uptime/ }, user);
  });

  await t.test('a downgrade reports what happens to the data', async (t) => {
    const { stderr } = await dpkg('--install', '/root/older.deb');
    t.match(stderr, `edge-health: downgrading from ${version} to 0.0.1.`);
    t.match(stderr, /nothing is deleted/);
    t.equal(await state(UNIT), 'active', stderr);
  });

  await t.test('purge removes what the operator has added', async (t) => {
    await machine.write(dropIn('mine'), '[Service]\nNice=1\n');
    await machine.write('/etc/systemd/system/edge-health@.service.d/mine.conf', '[Service]\nNice=1\n');
    await machine.write('/etc/edge-health/shutdown.d/10-park', '#!/bin/sh\n', '755');
    await machine.systemctl('set-property', UNIT, 'MemoryMax=300M');
    await machine.systemctl('mask', '--now', STOP);
    await machine.sh('touch /dev/shm/fastrtps_1234 && chown edge-health /dev/shm/fastrtps_1234');
    // The database is on a disk of its own: its mount point cannot be removed.
    await machine.sh(`systemctl stop ${UNIT} ${ROLE} && rm -r /var/lib/edge-health/* && mount -t tmpfs none /var/lib/edge-health`);
    await dpkg('--purge', 'edge-health');
    await machine.sh('umount /var/lib/edge-health && rmdir /var/lib/edge-health');
    t.equal(await machine.sh("find / -xdev -path /proc -prune -o -path /root -prune -o -name '*edge[-_]health*' -print"), '');
    t.equal(await machine.sh("find /run /dev/shm -name '*edge-health*' -o -name 'fastrtps*'"), '');
    t.equal(await machine.sh('find /etc /var /run /dev/shm -nouser -o -nogroup'), '', 'nothing belongs to a user that is gone');
    t.equal(await machine.sh("getent passwd edge-health || getent group edge-health || echo 'gone'"), 'gone');
  });
});
