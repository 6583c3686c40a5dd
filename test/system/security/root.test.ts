import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { rosPaths } from '../../../src/core/files/ros-paths.ts';
import { preparedKey } from '../../../src/ros/rclnodejs/prepared.ts';
import { elfHead } from '../../../src/ros/rclnodejs/testing/trees.ts';
import { type Finished, InstalledCopy } from '../../../testkit/machine/installed-copy.ts';

// Commands that root runs on an installed package whose service is compromised: its user owns the data folder, and leaves links and
// programs there.

t.setTimeout(300_000);
const skip = process.getuid?.() === 0 ? false : 'needs root';
const STATE = '/var/lib/edge-health';
const ETC = '/etc/edge-health';
const CONFIG = `${ETC}/edge_health_config.yaml`;
/** Belongs to root; every login shell runs the files in it that end in .sh. */
const TARGET = '/etc/profile.d';
const SECRET = 'https://hooks.example/T00/secret-of-now';
/** No service listens on this port. */
const SETTINGS = { rest: { host: '127.0.0.1', port: 1 }, ops: { backup: { reserve_megabytes: 0, journal_hours: 0 } } };

class Site {
  readonly copy: InstalledCopy;
  #before = '';

  private constructor(copy: InstalledCopy) {
    this.copy = copy;
  }

  static async make(t: Test): Promise<Site> {
    const site = new Site(await InstalledCopy.make(t));
    site.copy.sh(`mkdir -p ${TARGET}; echo untouched >${TARGET}/sentinel.sh`);
    site.configure(SETTINGS);
    return site;
  }

  /** As the scripts of the package leave it. */
  configure(settings: object): void {
    this.copy.sh(`cat >${CONFIG}; chgrp edge-health ${CONFIG}; chmod 640 ${CONFIG}`, { input: stringify(settings) });
    this.#before = this.copy.changes(STATE);
  }

  /** As the service's user, in its folder. */
  attack(script: string, input = ''): string {
    return this.copy.sh(`cd ${STATE}; ${script}`, { user: 'edge-health', input });
  }

  edgeHealth(...argv: string[]): Finished {
    return this.copy.run(['timeout', '30', 'edge-health', ...argv]);
  }

  /** Checks that nothing was created, changed or given away outside of the service's folder. */
  unharmed(t: Test, what: string): void {
    const now = this.copy.changes(STATE);
    t.equal(now, this.#before, what);
    this.#before = now;
  }

  /** The arguments of each systemctl call that changes something, after the id of the user who called it. */
  calls(): string[] {
    const lines = this.copy.sh('cat /run/systemctl.log; : >/run/systemctl.log').split('\n');
    return lines.filter((line) => line !== '' && !line.includes(' show '));
  }
}

t.test('links to a folder of root are not followed', { skip }, async (t) => {
  const site = await Site.make(t);
  for (const [link, ...argv] of [
    ['ops', 'ops', 'health_check'],
    ['logs', 'ops', 'health_check'],
    ['metrics', 'ops', 'collect_metrics'],
    ['alerts', 'ops', 'collect_alerts'],
    ['backups', 'ops', 'backup_logs'],
    ['reports', 'harness', 'run', '--duration', '1s', '--transport', 'off'],
    ['run', 'harness', 'report', `${STATE}/run`],
    ['harness', 'harness', 'start', '--duration', '1h'],
    ['harness', 'harness', 'stop'],
    ['edge-health.db', 'run'],
  ] as const) {
    site.attack(`ln -s ${TARGET} ${link}`);
    const { code, stderr, stdout } = site.edgeHealth(...argv);
    site.unharmed(t, `${link}: ${argv.join(' ')}: ${code} ${stdout}${stderr}`);
    site.attack('rm -rf ./*');
  }
  t.same(
    site.calls().filter((call) => !/^0 (?:enable|disable) --now edge-health-harness\.service$/.test(call)),
    [],
    'root only had its unit started and stopped',
  );
});

t.test('a data folder without an attacker works as it should', { skip }, async (t) => {
  const site = await Site.make(t);
  t.match(site.edgeHealth('harness', 'start', '--duration', '1h'), { code: 0, stdout: /edge-health-harness\.service observes/ });
  t.same(site.calls(), ['0 enable --now edge-health-harness.service']);
  t.match(site.attack('cat harness/current.json'), /"duration": "1h"/);
  t.match(site.edgeHealth('harness', 'stop'), { code: 0, stdout: /stopped/ });
  t.same(site.calls(), ['0 disable --now edge-health-harness.service']);
  for (const name of ['health_check', 'collect_metrics', 'list']) t.notMatch(site.edgeHealth('ops', name).stderr, /\S/, name);
  t.equal(site.copy.sh(`find ${STATE} ! -user edge-health -o ! -group edge-health`), '');
  site.unharmed(t, 'and nothing is left in other places');
  const other = site.copy.run(['edge-health', 'harness', 'start'], { user: 'nobody' });
  t.match(other, { code: 69, stderr: /this needs root; run: sudo edge-health harness start/ });
});

t.test('restore_backup of root', { skip }, async (t) => {
  const site = await Site.make(t);
  site.attack('mkdir metrics; echo attack >metrics/attack.sh');
  site.configure({ ...SETTINGS, node_name: 'then', ops: { ...SETTINGS.ops, notify: { webhook: { url: 'https://hooks.example/old' } } } });
  t.equal(site.edgeHealth('ops', 'backup_logs').code, 2, 'a backup, without a database');
  site.configure({ ...SETTINGS, node_name: 'now', ops: { ...SETTINGS.ops, notify: { webhook: { url: SECRET } } } });

  await t.test('follows no link', async (t) => {
    for (const link of ['metrics', 'restore.partial', 'ops', 'lock']) {
      site.attack(`rm -rf metrics ops; ln -sfT ${TARGET} ${link}`);
      const { code, stdout, stderr } = site.edgeHealth('ops', 'restore_backup', '--yes', '--overwrite');
      site.unharmed(t, `${link}: ${code} ${stdout}${stderr}`);
      site.attack(`rm -f ${link}`);
    }
  });

  await t.test('refuses an archive with members other than plain files', async (t) => {
    const before = site.attack('find . ! -path "./ops*" ! -path ./lock | sort');
    const compress = 'process.stdout.write(zlib.zstdCompressSync(fs.readFileSync(0)))';
    for (const [what, make, options] of [
      ['a symbolic link', `ln -s ${TARGET} metrics/a`, ''],
      ['a hard link', 'echo x >metrics/a; ln metrics/a metrics/b', ''],
      ['a pipe', 'mkfifo metrics/a', ''],
      ['a folder', 'mkdir metrics/a', ''],
      ['a path upwards', 'echo x >metrics/a', '--transform s,metrics,metrics/../../../../etc,'],
      ['an absolute path', 'echo x >metrics/a', `-P --transform s,metrics,${TARGET},`],
    ] as const) {
      const archive = 'backups/edge-health_20990101T000000Z.tar.zst';
      site.attack(
        `d=$(mktemp -d); cd $d; mkdir metrics; ${make}
tar ${options} -cf a.tar metrics/*; /usr/lib/edge-health/runtime/bin/node -e '${compress}' <a.tar >${STATE}/${archive}; rm -r $d`,
      );
      const { code, stdout } = site.edgeHealth('ops', 'restore_backup', `${STATE}/${archive}`, '--yes', '--config-too');
      t.match([code, stdout], [2, /not a regular file|which backups do not have/], what);
      site.unharmed(t, what);
      site.attack(`rm ${archive}`);
      t.equal(site.attack('find . ! -path "./ops*" ! -path ./lock | sort'), before, `${what}: nothing was changed`);
    }
  });

  await t.test('restores the configuration only on request, and shows it first', async (t) => {
    const without = site.edgeHealth('ops', 'restore_backup', '--yes');
    t.match(without, { code: 0, stdout: /the configuration stays as it is/ }, without.stderr);
    site.unharmed(t, 'it stayed');
    const shown = site.edgeHealth('ops', 'restore_backup', '--config-too');
    t.match(
      shown.stdout,
      /--- \/etc\/edge-health\/edge_health_config\.yaml\n[\s\S]*-node_name: now\n[\s\S]*\+node_name: then\n[\s\S]*add --yes/,
    );
    t.notMatch(shown.stdout, /secret-of-now/);
    site.unharmed(t, 'it was only shown');
    const { code, stderr, stdout } = site.edgeHealth('ops', 'restore_backup', '--yes', '--config-too');
    t.equal(code, 0, stdout + stderr);
    t.match(stderr, /\+node_name: then/, 'root shows what it writes');
    const [previous = ''] = /\/etc\/edge-health\/previous-\S+/.exec(stdout) ?? [];
    t.match(site.copy.sh(`cat ${CONFIG}`), new RegExp(`url: "${SECRET}"\n[sS]*node_name: then`), 'with the secret of now');
    t.match(site.copy.sh(`cat ${previous}/edge_health_config.yaml`), /node_name: now/, 'that of now is kept');
    t.equal(
      site.copy.sh(`stat -c '%U:%G %a' ${CONFIG} ${previous} ${previous}/edge_health_config.yaml`),
      'root:edge-health 640\nroot:root 750\nroot:edge-health 640',
    );
  });
});

t.test('native code is loaded from a folder of root, and probed as the service user', { skip }, async (t) => {
  const site = await Site.make(t);
  const environment = { ROS_DISTRO: 'jazzy', ROS_VERSION: '2', AMENT_PREFIX_PATH: '/opt/ros/jazzy', LD_LIBRARY_PATH: '/opt/ros/jazzy/lib' };
  site.copy.sh('mkdir -p /opt/ros/jazzy/lib /opt/ros/jazzy/share/rcl; base64 -d >/opt/ros/jazzy/lib/librcl.so', {
    input: elfHead().toString('base64'),
  });
  site.copy.sh('cat >/opt/ros/jazzy/share/rcl/package.xml', { input: '<package><version>9.2.4</version></package>' });
  // In place of the program that loads the addon.
  site.copy.sh('cat >/usr/lib/edge-health/dist/ros-probe.cjs', {
    input: `require('node:fs').writeFileSync('/tmp/tried', process.getuid() + ' ' + process.argv[2]); console.log('{"ok":true}')`,
  });
  const key = preparedKey('jazzy', rosPaths(null)) as string;
  const manifest = JSON.stringify({ key, architecture: process.arch, addon: 'compiled', made: '' });
  const plant = (root: string, user: string): string =>
    site.copy.sh(
      `mkdir -p ${root}/${key}/interfaces/lib ${root}/${key}/node_modules/rclnodejs/build/Release; cd ${root}/${key}
touch node_modules/rclnodejs/build/Release/rclnodejs.node; cat >prepared.json`,
      { user, input: manifest },
    );
  const setup = (): Finished => site.copy.run(['timeout', '60', 'edge-health', 'ros-setup'], { environment });
  const tried = (): string => site.copy.sh('cat /tmp/tried 2>/dev/null || true; rm -f /tmp/tried');

  plant(`${STATE}/ros`, 'edge-health');
  const ofService = setup();
  t.equal(tried(), '', 'what the service has in its folder is not even tried');
  t.notMatch(ofService.stdout + ofService.stderr, `${STATE}/ros`);

  site.copy.sh('install -d -o edge-health -g edge-health /var/lib/edge-health-ros');
  plant('/var/lib/edge-health-ros', 'edge-health');
  t.match(setup(), { code: 1, stderr: /^\/var\/lib\/edge-health-ros belongs to user \d+; remove it\n$/ });
  t.equal(tried(), '');

  site.copy.sh('rm -r /var/lib/edge-health-ros');
  plant('/var/lib/edge-health-ros', 'root');
  const prepared = setup();
  t.match(prepared, { code: 0, stdout: /ROS 2 jazzy is already prepared: \/var\/lib\/edge-health-ros\// }, prepared.stderr);
  t.equal(tried().split(' ')[0], site.copy.sh('id -u edge-health'));
  t.match(site.copy.run(['edge-health', 'ros-setup', '--data', STATE], { environment }), {
    code: 64,
    stderr: /--data can only be used in a checkout/,
  });
});

/** Programs that root's commands and their shell scripts call. */
const CALLED = 'readlink dirname id sh cat systemctl diff journalctl docker podman env node make cmake c++ cc python3 timedatectl getent';
const EVIL = '/home/mallory';
/** What `sudo -E`, `su` or a root shell passes on; the dynamic linker reads LD_* before any program could ignore it, and sudo removes it. */
const HOSTILE = {
  PATH: `${EVIL}/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  HOME: EVIL,
  TMPDIR: `${EVIL}/tmp`,
  NODE_OPTIONS: `--require=${EVIL}/note.cjs`,
  NODE_PATH: `${EVIL}/node_modules`,
  NODE_COMPILE_CACHE: `${EVIL}/tmp`,
  NODE_REDIRECT_WARNINGS: `${EVIL}/tmp/warnings`,
  NODE_V8_COVERAGE: `${EVIL}/tmp/coverage`,
  OPENSSL_CONF: `${EVIL}/openssl.cnf`,
  BASH_ENV: `${EVIL}/note.sh`,
  ENV: `${EVIL}/note.sh`,
  PYTHONHOME: EVIL,
  PYTHONSTARTUP: `${EVIL}/note.py`,
  PYTHONUSERBASE: EVIL,
  CXX: `${EVIL}/bin/c++`,
  CMAKE_CXX_COMPILER_LAUNCHER: `${EVIL}/bin/env`,
  XDG_CONFIG_HOME: EVIL,
  XDG_RUNTIME_DIR: EVIL,
  SUDO_UID: '1000',
  RUNTIME_DIRECTORY: `${EVIL}/tmp`,
  STATE_DIRECTORY: `${EVIL}/tmp`,
  NOTIFY_SOCKET: `${EVIL}/tmp/notify`,
  EVIL_LINES: "x\nexport NODE_OPTIONS='--require=/x'\nexport A;B='y'",
};

t.test('commands of root run no code of the user whose environment they have', { skip }, async (t) => {
  const site = await Site.make(t);
  // Each file in the folder of the other user notes who has run it.
  site.copy.sh(`
    mkdir -p ${EVIL}/bin ${EVIL}/tmp ${EVIL}/ros/share
    printf '#!/bin/sh\\necho "$0 $*" >>${EVIL}/log\\nexit 1\\n' >${EVIL}/bin/program
    chmod 755 ${EVIL}/bin/program
    for name in ${CALLED}; do ln -s program ${EVIL}/bin/$name; done
    echo "require('node:fs').appendFileSync('${EVIL}/log', 'NODE_OPTIONS ' + process.argv.join(' ') + '\\\\n')" >${EVIL}/note.cjs
    echo 'echo "sourced by $0" >>${EVIL}/log' >${EVIL}/note.sh
    touch ${EVIL}/log
    chown -R nobody ${EVIL}; chmod 777 ${EVIL}/log ${EVIL}/tmp
    mkdir -p /opt/ros/jazzy/lib /opt/ros/jazzy/share/rcl`);
  site.copy.sh('base64 -d >/opt/ros/jazzy/lib/librcl.so', { input: elfHead().toString('base64') });
  site.copy.sh('cat >/opt/ros/jazzy/share/rcl/package.xml', { input: '<package><version>9.2.4</version></package>' });
  site.edgeHealth('ops', 'backup_logs');
  const ros = { ROS_DISTRO: 'jazzy', ROS_VERSION: '2', AMENT_PREFIX_PATH: '/opt/ros/jazzy', LD_LIBRARY_PATH: '/opt/ros/jazzy/lib' };
  const run = (environment: Record<string, string>, ...argv: string[]): Finished =>
    site.copy.run(['timeout', '30', 'edge-health', ...argv], { environment: { ...HOSTILE, ...environment } });
  for (const argv of [
    ['version'],
    ['help'],
    ['check-config'],
    ['status'],
    ['nodes'],
    ['reload'],
    ['ops', 'list'],
    ['ops', 'health_check'],
    ['ops', 'backup_logs'],
    ['ops', 'restore_backup', '--yes', '--config-too'],
    ['harness', 'start', '--duration', '1h'],
    ['harness', 'stop'],
    ['ros-setup'],
  ]) {
    run(ros, ...argv);
    t.equal(site.copy.sh(`cat ${EVIL}/log; : >${EVIL}/log`), '', argv.join(' '));
  }
  t.equal(site.copy.sh(`find ${EVIL}/tmp -mindepth 1`), '', 'nor do they write into its folder');
  t.match(run({}, 'version').stdout, /^edge-health \d/);
  const own = run({ EDGE_HEALTH_CONFIG: `${EVIL}/note.sh` }, 'check-config');
  t.match(own, { code: 0, stdout: /: valid/, stderr: /EDGE_HEALTH_CONFIG is ignored/ }, own.stdout);

  const prefix = `${EVIL}/ros`;
  for (const name of ['AMENT_PREFIX_PATH', 'PYTHONPATH', 'LD_LIBRARY_PATH'] as const) {
    const given = { ...ros, [name]: `${prefix}:${(ros as Record<string, string>)[name] ?? ''}` };
    const refused = run(given, 'ros-setup');
    t.match(
      refused,
      { code: 69, stderr: new RegExp(`^${name} has ${prefix}, but other users than root can change ${EVIL}`) },
      refused.stderr,
    );
  }
});

t.test('only root and the service can read the configuration', { skip }, async (t) => {
  const site = await Site.make(t);
  const as = (user: string, ...argv: string[]): Finished => site.copy.run(['timeout', '30', 'edge-health', ...argv], { user });
  t.match(as('nobody', 'check-config'), {
    code: 77,
    stdout: '',
    stderr: `${CONFIG}: permission denied (run it with sudo, or as a member of the group of the file)\n`,
  });
  t.match(as('root', 'check-config'), { code: 0, stdout: /: valid/ });
  t.match(as('nobody', 'ops', 'list'), {
    code: 3,
    stderr: /^edge-health ops: permission denied: .*; run: sudo edge-health ops list, or .*\n$/,
  });
  for (const command of ['status', 'nodes', 'reload']) {
    const { code, stderr } = as('nobody', command);
    t.not(code, 0);
    t.match(stderr, /^\S.*\n$/, `${command}: one line`);
    t.notMatch(stderr, /\n./, `${command}: one line`);
  }
});
