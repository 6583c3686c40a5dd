import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rosPaths } from '../../../src/core/files/ros-paths.ts';
import { preparedKey } from '../../../src/ros/rclnodejs/prepared.ts';
import { elfHead } from '../../../src/ros/rclnodejs/testing/trees.ts';
import { Appliance, CONFIG, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';

// What a compromised service can do to an administrator who runs the documented commands as root: it owns the data folder, and
// leaves links and programs there. test/system/security/root.test.ts tries more of it, without systemd.

t.setTimeout(900_000);
const skip = containersUnavailable();

const OPS = 'edge-health-ops.service';
const HARNESS = 'edge-health-harness.service';
/** Belongs to root; every login shell runs the files in it that end in .sh. */
const TARGET = '/etc/profile.d';
const SECRET = 'https://hooks.example/T00/secret-of-now';

/** A library that records which user has loaded it, in a file that every user may write to. */
function noting(t: Test, file: string): Buffer {
  const folder = temporaryFolder(t);
  const source = `#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void note(void) { FILE *f = fopen("${file}", "a"); if (f) { fprintf(f, "%d\\n", getuid()); fclose(f); } }
`;
  execFileSync('cc', ['-shared', '-fPIC', '-x', 'c', '-o', join(folder, 'noting.so'), '-'], { input: source });
  return readFileSync(join(folder, 'noting.so'));
}

t.test('commands of root are safe on the data folder of a compromised service', { skip }, async (t) => {
  const config = { ops: { check: { clock: false }, backup: { reserve_megabytes: 10 } } };
  const { machine } = await Appliance.boot(t, { suite: 'bookworm', config });
  /** As the service's user, in its folder. */
  const attack = (script: string): Promise<string> => machine.sh(`cd ${STATE}; ${script}`, { user: 'edge-health' });
  const state = (): Promise<string> =>
    machine.sh(
      `find ${TARGET} -printf '%p %u:%g %m %s %T@\\n' | sort; cat ${TARGET}/*; find /etc /root /usr /srv /opt -xdev -user edge-health`,
    );
  await machine.sh(`mkdir -p ${TARGET}; echo untouched >${TARGET}/sentinel.sh`);
  const before = await state();

  await t.test('ops health_check', async (t) => {
    await attack(`mv ops ops.was; ln -s ${TARGET} ops`);
    t.not((await machine.run(['edge-health', 'ops', 'health_check'])).code, 0);
    t.equal(await state(), before);
    await attack('rm ops; mv ops.was ops');
  });

  await t.test('harness start', async (t) => {
    await attack(`rm -rf harness; ln -s ${TARGET} harness`);
    t.match(await machine.run(['edge-health', 'harness', 'start', '--duration', '1h']), { code: 69, stderr: /permission denied: / });
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'inactive');
    t.equal(await state(), before);
    await attack('rm harness');
  });

  await t.test('ops restore_backup', async (t) => {
    await attack('mkdir -p metrics; echo attack >metrics/attack.sh');
    const made = await machine.run(['edge-health', 'ops', 'backup_logs']);
    t.equal(made.code, 0, made.stdout + made.stderr);
    await attack(`rm -r metrics; ln -s ${TARGET} metrics`);
    const { code, stdout } = await machine.run(['edge-health', 'ops', 'restore_backup', '--yes']);
    t.match([code, stdout], [2, /everything is as it was before/]);
    t.equal(await state(), before);
    for (const unit of [UNIT, OPS]) t.equal(await machine.show(unit, 'ActiveState'), 'active', `root has started ${unit} again`);
    await attack('rm metrics');
  });

  await t.test('ros-setup', async (t) => {
    const note = '/var/tmp/loaded';
    const key = preparedKey('jazzy', rosPaths(null)) as string;
    const place = `${STATE}/ros/${key}`;
    await machine.sh(`touch ${note}; chmod 666 ${note}; mkdir -p /opt/ros/jazzy/lib /opt/ros/jazzy/share/rcl`);
    await machine.sh('cat >/opt/ros/jazzy/lib/librcl.so', { input: elfHead() });
    await machine.write('/opt/ros/jazzy/share/rcl/package.xml', '<package><version>9.2.4</version></package>');
    const asService = (file: string, input: string | Buffer): Promise<string> => machine.sh(`cat >${file}`, { user: 'edge-health', input });
    await attack(
      `mkdir -p ${place}/node_modules/rclnodejs/build/Release ${place}/interfaces/lib; ln -s ${TARGET}/sentinel.sh ros/setup.log`,
    );
    await asService(`${place}/node_modules/rclnodejs/build/Release/rclnodejs.node`, noting(t, note));
    await asService(`${place}/prepared.json`, JSON.stringify({ key, architecture: process.arch, addon: 'compiled', made: '' }));
    const environment = {
      ROS_DISTRO: 'jazzy',
      ROS_VERSION: '2',
      AMENT_PREFIX_PATH: '/opt/ros/jazzy',
      LD_LIBRARY_PATH: '/opt/ros/jazzy/lib',
    };
    const { code, stderr } = await machine.run(['edge-health', 'ros-setup'], { environment });
    t.match([code, stderr], [69, /To prepare for ROS 2 jazzy these are missing/]);
    t.equal(await machine.sh(`cat ${note}`), '', 'nobody has loaded the library');
    t.equal(await state(), before);
    await attack('rm -r ros');
  });

  await t.test('with a service that is not compromised they work', async (t) => {
    const etc = (name: string): string => `ops: {check: {clock: false}, notify: {webhook: {url: "${name}"}}}\n`;
    await machine.sh(`chmod 640 ${CONFIG}; cat >${CONFIG}`, { input: etc('https://hooks.example/old') });
    t.equal((await machine.run(['edge-health', 'ops', 'backup_logs'])).code, 0);
    await machine.sh(`cat >${CONFIG}`, { input: `# now\n${etc(SECRET)}` });
    const restored = await machine.run(['edge-health', 'ops', 'restore_backup', '--yes', '--config-too'], { timeoutSeconds: 200 });
    t.equal(restored.code, 0, restored.stdout + restored.stderr);
    t.match(restored.stdout, /run again, with storage ok and \d+ samples found/);
    t.match(restored.stderr, /\n-# now\n/);
    t.notMatch(restored.stderr, /secret-of-now/);
    t.equal(await machine.read(CONFIG), etc(SECRET));
    t.equal(await machine.sh(`stat -c '%U:%G %a' ${CONFIG}`), 'root:edge-health 640');
    for (const unit of [UNIT, OPS]) t.equal(await machine.show(unit, 'ActiveState'), 'active', unit);
    t.equal(await machine.sh(`find ${STATE} ! -user edge-health -o ! -group edge-health`), '');
    t.match(await machine.run(['edge-health', 'harness', 'start', '--duration', '1h'], { timeoutSeconds: 200 }), { code: 0 });
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'active');
    t.match(await machine.run(['edge-health', 'harness', 'stop'], { timeoutSeconds: 200 }), { code: 0 });
    t.equal(await machine.show(HARNESS, 'ActiveState'), 'inactive');
  });
});
