/** bin/with-ros2, which sources ROS 2 and then becomes the service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';

const WRAPPER = fileURLToPath(new URL('../../bin/with-ros2', import.meta.url));

/** A folder like /opt/ros, and the environment of a program that is started through the wrapper. */
class Machine {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Creates a distribution whose setup file is `lines`; a ROS 1 has no ament index. */
  add(name: string, lines = `export ROS_DISTRO=${name} AMENT_PREFIX_PATH=/opt/ros/${name}`, ros: 1 | 2 = 2): string {
    const folder = join(this.root, name);
    mkdirSync(join(folder, 'share', ros === 2 ? 'ament_index' : 'catkin'), { recursive: true });
    writeFileSync(join(folder, 'setup.bash'), `${lines}\n`);
    return join(folder, 'setup.bash');
  }

  async run(variables: Record<string, string> = {}, command = ['env', '-0']): Promise<Started> {
    const child = spawn(WRAPPER, command, {
      env: { PATH: process.env['PATH'] ?? '', EDGE_HEALTH_ROS_ROOT: this.root, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      out += part;
    });
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      err += part;
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    // Not 'close': a process that a setup file leaves running may keep the pipe open.
    await new Promise((resolve) => setImmediate(resolve));
    const pairs = out.split('\0').map((entry) => [entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1)] as const);
    return { code, out, err, pid: child.pid ?? 0, environment: new Map(pairs) };
  }
}

interface Started {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly pid: number;
  readonly environment: ReadonlyMap<string, string>;
}

t.beforeEach((t) => {
  const folder = temporaryFolder(t);
  const root = join(folder, 'opt ros');
  mkdirSync(root);
  t.context = new Machine(root);
});

t.test('without ROS 2 the command runs unchanged, and nothing is printed', async (t) => {
  const machine = t.context as Machine;
  const { code, err, environment } = await machine.run({ KEPT: 'a "b"\n$c' });
  t.equal(code, 0);
  t.equal(err, '');
  t.equal(environment.get('KEPT'), 'a "b"\n$c');
  t.notOk(environment.has('ROS_DISTRO'));
  const missing = await machine.run({ EDGE_HEALTH_ROS_ROOT: join(machine.root, 'nowhere') });
  t.match({ code: missing.code, err: missing.err }, { code: 0, err: '' });
});

t.test('the command replaces the wrapper process, and keeps its arguments and exit status', async (t) => {
  const machine = t.context as Machine;
  machine.add('jazzy');
  // Child processes: one that is not waited for would remain a zombie for as long as the service runs.
  const script = 'echo $$ "$@" "$ROS_DISTRO"; cat /proc/$$/task/$$/children; exit 7';
  const { code, out, pid } = await machine.run({}, ['/bin/sh', '-c', script, 'sh', 'two words', '']);
  t.equal(code, 7);
  const [first, children = ''] = out.split('\n');
  t.equal(first, `${pid} two words  jazzy`);
  t.ok(children.trim().split(/\s+/).length <= 1, 'no child but the one that reads this');
  t.equal((await machine.run({}, [])).code, 64);
  t.equal((await machine.run({}, ['/nowhere/at all'])).code, 127);
});

t.test('auto chooses the newest release, rolling only if there is no release, and never ROS 1', async (t) => {
  const machine = t.context as Machine;
  const chosen = async (): Promise<string | undefined> => (await machine.run()).environment.get('ROS_DISTRO');
  machine.add('noetic', undefined, 1);
  t.equal(await chosen(), undefined);
  machine.add('rolling');
  t.equal(await chosen(), 'rolling');
  machine.add('humble');
  t.equal(await chosen(), 'humble');
  machine.add('lyrical');
  machine.add('jazzy');
  t.equal(await chosen(), 'lyrical');
  machine.add('mystic');
  t.equal(await chosen(), 'mystic', 'an unknown release');
  mkdirSync(join(machine.root, 'zenith'));
  t.equal(await chosen(), 'mystic', 'an empty folder does not count');
});

t.test('a distribution, a file, or several in order can be configured', async (t) => {
  const machine = t.context as Machine;
  machine.add('lyrical');
  const jazzy = machine.add('jazzy', 'export ROS_DISTRO=jazzy AMENT_PREFIX_PATH=/jazzy ORDER="$ORDER jazzy"');
  const overlay = machine.add('my overlay', 'export AMENT_PREFIX_PATH="/my overlay:$AMENT_PREFIX_PATH" ORDER="$ORDER overlay"');
  t.equal((await machine.run({ EDGE_HEALTH_ROS: 'jazzy' })).environment.get('ROS_DISTRO'), 'jazzy');
  t.equal((await machine.run({ EDGE_HEALTH_ROS: jazzy })).environment.get('ROS_DISTRO'), 'jazzy');
  const { environment, err } = await machine.run({ EDGE_HEALTH_ROS: `${jazzy}:${overlay}` });
  t.match(Object.fromEntries(environment), { AMENT_PREFIX_PATH: '/my overlay:/jazzy', ORDER: ' jazzy overlay' });
  t.equal(err, '');
  t.notOk((await machine.run({ EDGE_HEALTH_ROS: 'none' })).environment.has('ROS_DISTRO'));

  for (const EDGE_HEALTH_ROS of ['foxy', '/nowhere/setup.bash', machine.root, `${jazzy}:/nowhere/setup.bash`]) {
    const { code, err, environment } = await machine.run({ EDGE_HEALTH_ROS });
    t.equal(code, 0);
    t.match(err, /^warning: ROS 2: .* cannot be read; continuing without ROS 2\. .*\/etc\/default\/edge-health\n$/, EDGE_HEALTH_ROS);
    t.notOk(environment.has('ROS_DISTRO'));
  }
});

t.test('a sourced environment is kept', async (t) => {
  const machine = t.context as Machine;
  machine.add('lyrical');
  const { environment } = await machine.run({ AMENT_PREFIX_PATH: '/own', ROS_DISTRO: 'humble' });
  t.match(Object.fromEntries(environment), { AMENT_PREFIX_PATH: '/own', ROS_DISTRO: 'humble' });
});

t.test('every variable is passed on unchanged, except those of the shell and of systemd', async (t) => {
  const machine = t.context as Machine;
  machine.add(
    'jazzy',
    `echo chatter; echo complaint >&2
export AMENT_PREFIX_PATH=/jazzy LINES_OF=$'one\\ntwo=2\\n' QUOTES=\\'\\"\\$HOME EMPTY= WORK_DIRECTORY=/elsewhere
export NOTIFY_SOCKET=/taken WATCHDOG_PID=1 PWD=/nowhere
some_function() { :; }; export -f some_function; cd /`,
  );
  const systemd = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_PID: '42', WATCHDOG_USEC: '10', STATE_DIRECTORY: '/state' };
  const { environment, out, err } = await machine.run({ ...systemd });
  t.match(Object.fromEntries(environment), { ...systemd, LINES_OF: 'one\ntwo=2\n', QUOTES: `'"$HOME`, EMPTY: '' });
  t.not(environment.get('PWD'), '/nowhere');
  t.notOk([...environment.keys()].some((name) => name.includes('some_function')));
  t.notMatch(out, 'chatter', 'only the command writes to the output');
  t.match(err, /chatter[\s\S]*complaint/, 'the output of the setup file goes to the log');
});

t.test('a setup file that fails does not prevent the command', async (t) => {
  const machine = t.context as Machine;
  const cases: Record<string, readonly [string, RegExp]> = {
    'calls exit': ['export AMENT_PREFIX_PATH=/half; exit 3', /ended the shell with status 3/],
    'calls exit 0': ['export AMENT_PREFIX_PATH=/half; exit', /ended the shell with status 0/],
    'stops at the first error': ['export AMENT_PREFIX_PATH=/half; set -e; false; true', /ended the shell with status 1/],
    'becomes another program': ['export AMENT_PREFIX_PATH=/half; exec true', /ended the shell with status 0/],
    'kills itself': ['export AMENT_PREFIX_PATH=/half; kill -9 $$', /ended the shell with status 137/],
    'cannot be parsed': ['if [ 1; then', /setup\.bash: line [\s\S]*set no AMENT_PREFIX_PATH/],
    'sets nothing': ['true', /set no AMENT_PREFIX_PATH/],
    'is a program': ['\x7fELF\x02\x01', /set no AMENT_PREFIX_PATH/],
    'closes its output': ['export AMENT_PREFIX_PATH=/half; exec 1>&- 2>&- 3>&-; exit 1', /ended the shell with status 1/],
  };
  for (const [name, [lines, expected]] of Object.entries(cases)) {
    machine.add('jazzy', lines);
    const { code, environment, err } = await machine.run();
    t.equal(code, 0, name);
    t.match(err, expected, name);
    t.match(err, /^warning: ROS 2: .*; continuing without ROS 2$/m, name);
    t.notOk(environment.has('AMENT_PREFIX_PATH'), `${name}: no variable of it is used`);
  }
});

t.test('a setup file that returns a failure but sets up ROS 2 is used, with a warning', async (t) => {
  const machine = t.context as Machine;
  const file = machine.add('jazzy', 'export AMENT_PREFIX_PATH=/jazzy; [ -f /nowhere ]');
  const { environment, err } = await machine.run();
  t.equal(environment.get('AMENT_PREFIX_PATH'), '/jazzy');
  t.equal(err, `warning: ROS 2: ${file} returned 1\n`);
});

t.test('a setup file that hangs is ended in time, whatever it ignores or reads', async (t) => {
  const machine = t.context as Machine;
  const hangs = {
    sleeps: 'sleep 1000',
    'ignores SIGTERM': 'trap "" TERM; while :; do sleep 1000; done',
    'has a child that ignores SIGTERM': '(trap "" TERM; sleep 1000)',
  };
  for (const [name, lines] of Object.entries(hangs)) {
    machine.add('jazzy', `export AMENT_PREFIX_PATH=/half\n${lines}`);
    const { code, environment, err } = await machine.run({ EDGE_HEALTH_ROS_SECONDS: '1' });
    t.equal(code, 0, name);
    t.match(err, /took longer than 1 s and was ended; continuing without ROS 2/, name);
    t.notOk(environment.has('AMENT_PREFIX_PATH'), name);
  }
  machine.add('jazzy', 'read -r answer; export AMENT_PREFIX_PATH=/jazzy');
  const { environment } = await machine.run();
  t.equal(environment.get('AMENT_PREFIX_PATH'), '/jazzy', 'one that reads its input gets none');
});

t.test('processes that a setup file leaves running do not delay the command', async (t) => {
  const machine = t.context as Machine;
  const pids = join(machine.root, 'pids');
  const left = (): number[] => readFileSync(pids, 'utf8').split(/\s+/).filter(Boolean).map(Number);
  t.teardown(() => {
    for (const pid of left()) process.kill(pid, 'SIGKILL');
  });
  machine.add(
    'jazzy',
    `export AMENT_PREFIX_PATH=/jazzy
sleep 600 &
(while :; do sleep 600; done) &
# Its parent leads the process group of all but the next.
echo -$PPID >> '${pids}'
setsid sleep 600 & echo $! >> '${pids}'`,
  );
  const { environment } = await machine.run();
  t.equal(environment.get('AMENT_PREFIX_PATH'), '/jazzy');
  for (const pid of left()) t.doesNotThrow(() => process.kill(pid, 0), 'the command has ended, and they still run');
});

t.test('without a PATH, or if tools are missing, the command runs nevertheless', async (t) => {
  const machine = t.context as Machine;
  machine.add('jazzy');
  const bin = join(machine.root, 'bin');
  mkdirSync(bin);
  const broken = join(bin, 'timeout');
  writeFileSync(broken, '#!/bin/sh\nexit 1\n');
  chmodSync(broken, 0o755);
  const { code, err } = await machine.run({ PATH: `${bin}:/usr/bin:/bin` });
  t.equal(code, 0);
  t.match(err, /continuing without ROS 2/);
  t.equal((await machine.run({ PATH: '/nowhere' }, ['/usr/bin/env', '-0'])).code, 0);
});
