import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import { ROOT, RunningService } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const PROGRAM = join(ROOT, 'bin/edge-health');
const folder = temporaryFolder(t);
// Everything that is started by mistake stays in this folder.
const env = {
  ...process.env,
  NODE_OPTIONS: undefined,
  NOTIFY_SOCKET: undefined,
  EDGE_HEALTH_CONFIG: undefined,
  RUNTIME_DIRECTORY: join(folder, 'run'),
  STATE_DIRECTORY: join(folder, 'state'),
};
mkdirSync(env.RUNTIME_DIRECTORY);

let files = 0;
function configFile(text: string): string {
  files += 1;
  const path = join(folder, `config-${files}.yaml`);
  writeFileSync(path, text);
  return path;
}

/** A program that should have refused to start is killed after this time, and has no exit code then. */
const LIMIT_MS = 120_000;

/** Runs the program to its end. */
function program(...argv: string[]): SpawnSyncReturns<string> {
  return spawnSync(PROGRAM, argv, { encoding: 'utf8', timeout: LIMIT_MS, env, cwd: folder });
}

const BROKEN = `node_name: 7up
publish_frequency: 0
thresholds:
  cpu: {warning: 95, critical: 90}
rest:
  prot: 5001
`;
const ERRORS = [
  /:1:12: node_name: found "7up"; allowed: a ROS node name/,
  /:2:20: publish_frequency: found 0; allowed: a number above 0 up to 1000/,
  /:4:18: thresholds\.cpu\.warning: found warning 95, critical 90; allowed: warning below critical/,
  /:6:3: rest\.prot: found an unknown key; .*\(did you mean rest\.port\?\)/,
];

t.test('check-config prints only that the shipped file is valid, and exits with 0', async (t) => {
  const file = join(ROOT, 'config/edge_health_config.yaml');
  const { status, stderr, stdout } = program('check-config', file);
  t.equal(status, 0);
  t.equal(stdout, `${file}: valid\n`);
  t.equal(stderr, '');
});

t.test('check-config prints every error with its position and exits with 78', async (t) => {
  const file = configFile(BROKEN);
  const { status, stderr, stdout } = program('check-config', file);
  t.equal(status, 78);
  t.equal(stdout, '');
  const lines = stderr.trimEnd().split('\n');
  t.equal(lines.length, ERRORS.length);
  for (const [n, pattern] of ERRORS.entries()) {
    t.match(lines[n], pattern);
    t.ok(lines[n]?.startsWith(`${file}:`), 'each begins with the file');
  }
});

t.test('check-config without a file checks the file that run would use', async (t) => {
  const broken = configFile(BROKEN);
  const { status, stderr } = spawnSync(PROGRAM, ['check-config'], { encoding: 'utf8', env: { ...env, EDGE_HEALTH_CONFIG: broken } });
  t.equal(status, 78);
  t.match(stderr, `${broken}:1:12`);
});

t.test('check-config --json prints the same as JSON', async (t) => {
  const broken = program('check-config', configFile(BROKEN), '--json');
  t.equal(broken.status, 78);
  const { errors, valid } = JSON.parse(broken.stdout) as { valid: boolean; errors: { line: number; key: string }[] };
  t.equal(valid, false);
  t.same(
    errors.map(({ line, key }) => [line, key]),
    [
      [1, 'node_name'],
      [2, 'publish_frequency'],
      [4, 'thresholds.cpu.warning'],
      [6, 'rest.prot'],
    ],
  );
  t.same(JSON.parse(program('check-config', '--json', configFile('')).stdout), { valid: true, errors: [] });
});

t.test('check-config notes what a valid file names and this machine does not have', async (t) => {
  const file = configFile('rest: {token_file: /nowhere/token, host: 192.0.2.1}\nops: {notify: {email: {host: mail.example}}}\n');
  const { status, stdout } = program('check-config', file);
  t.equal(status, 0);
  t.match(stdout, /: valid\n/);
  t.match(stdout, /^note: rest\.token_file \/nowhere\/token cannot be read: ENOENT; the service does not start without it$/m);
  t.match(stdout, /^note: rest\.host: 192\.0\.2\.1 is not an address of this machine now; /m);
  t.match(stdout, /^note: ops\.notify\.email\.to is empty: no e-mail is sent$/m);
  t.equal(JSON.parse(program('check-config', '--json', file).stdout).notes.length, 3);
});

t.test('check-config notes what would prevent a notification or the use of the data folder', async (t) => {
  const program_ = join(folder, 'not-executable');
  writeFileSync(program_, '', { mode: 0o644 });
  const blocked = join(program_, 'data');
  const file = configFile(
    `storage: {path: ${blocked}}\nops: {notify: {webhook: {url: foo, token_file: /nowhere/token}, command: ${program_}, email: {password_file: /nowhere/password}}}\n`,
  );
  const { status, stdout } = program('check-config', file);
  t.equal(status, 0);
  t.match(stdout, `note: storage.path: ${blocked} is not a folder; move it away, or set another storage.path`);
  t.match(stdout, 'note: ops.notify.webhook.url is not an address such as https://host/path; nothing is sent to it');
  t.match(stdout, /^note: ops\.notify\.command: .*not-executable cannot be run by \S+ \(EACCES\); /m);
  t.match(stdout, /^note: ops\.notify\.webhook\.token_file: \/nowhere\/token cannot be read by \S+ \(ENOENT\); /m);
  t.match(stdout, /^note: ops\.notify\.email\.password_file: \/nowhere\/password cannot be read by \S+ \(ENOENT\); /m);
  const relative = program('check-config', configFile('ops: {notify: {command: notify-me}}\n'));
  t.match(relative.stdout, /^note: ops\.notify\.command: notify-me is not an absolute path; it is not run$/m);
});

t.test('check-config reports a missing file, a folder and a binary file', async (t) => {
  for (const [file, words] of [
    [join(folder, 'missing.yaml'), 'no such file'],
    [folder, 'a folder, not a file'],
    [configFile('a\0b'), 'a binary file'],
  ] as const) {
    const { status, stderr } = program('check-config', file);
    t.equal(status, 78, words);
    t.match(stderr, `${file}: ${words}`);
  }
});

t.test('wrong usage exits with 64', async (t) => {
  for (const argv of [
    ['check-config', 'a', 'b'],
    ['check-config', '--nonsense', 'a'],
    ['run', 'extra'],
    ['run', '--config'],
    ['nonsense'],
    [],
  ]) {
    const { status, stderr, stdout } = program(...argv);
    t.equal(status, 64, argv.join(' '));
    t.match(stderr, /^edge-health: .*see: edge-health|commands: /);
    t.equal(stdout, '');
  }
});

t.test('an empty option, which an unset shell variable leaves, is refused by every program', async (t) => {
  const usage: [argv: string[], status: number][] = [
    [['run', '--config', ''], 64],
    [['check-config', ''], 64],
    [['status', '--url='], 64],
    [['reload', '--config', ''], 64],
    [['ros-setup', '--data', ''], 64],
    [['ops', 'health_check', '--config', ''], 3],
    [['ops', 'restore_backup', ''], 3],
    [['harness', 'run', '--out', ''], 64],
    [['harness', 'report', ''], 64],
  ];
  for (const [argv, expected] of usage) {
    const { status, stderr, stdout } = program(...argv);
    t.match(
      { status, stderr, stdout },
      { status: expected, stderr: / is empty: .*; see: edge-health .* --help\n$/, stdout: '' },
      argv.join(' '),
    );
  }
});

t.test('an empty EDGE_HEALTH_CONFIG counts as not set, as for the variables of ROS 2', async (t) => {
  const { stdout } = spawnSync(PROGRAM, ['check-config'], { encoding: 'utf8', env: { ...env, EDGE_HEALTH_CONFIG: '' } });
  t.equal(stdout, program('check-config').stdout);
  t.match(stdout, /: valid\n/);
});

/** Commands that write to standard output, with at least one of every command. */
const WRITING: readonly (readonly string[])[] = [
  ['--help'],
  ['help', 'run'],
  ['version'],
  ['run', '--help'],
  ['status', '--json', '--url', 'http://127.0.0.1:9'],
  ['check-config', join(ROOT, 'config/edge_health_config.yaml')],
  ['check-config', '--json', join(folder, 'missing.yaml')],
  ['sensors'],
  ['sensors', '--json'],
  ['ros-setup', '--help'],
  ['ops', '--help'],
  ['ops', 'list', '--config', join(ROOT, 'config/edge_health_config.yaml')],
  ['ops', 'list', '--json', '--config', join(ROOT, 'config/edge_health_config.yaml')],
  ['ops', 'health_check', '--help'],
  ['harness', '--help'],
  ['harness', 'status', '--help'],
  ['harness', 'verify', '--json', folder],
];

/** Runs the program with its standard output on `descriptor`. */
function writingTo(descriptor: number, argv: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(PROGRAM, argv, { encoding: 'utf8', timeout: LIMIT_MS, env, cwd: folder, stdio: ['ignore', descriptor, 'pipe'] });
}

t.test('a command whose reader has exited ends quietly, as with SIGPIPE', async (t) => {
  const fifo = join(folder, 'fifo');
  t.equal(spawnSync('mkfifo', [fifo]).status, 0);
  const reader = openSync(fifo, constants.O_RDWR);
  const pipe = openSync(fifo, constants.O_WRONLY);
  closeSync(reader);
  for (const argv of WRITING) {
    const { status, stderr } = writingTo(pipe, argv);
    t.equal(status, 141, argv.join(' '));
    t.equal(stderr, '');
  }
  closeSync(pipe);
});

t.test('every command reports output that cannot be written in one line, and exits with 74', async (t) => {
  const full = openSync('/dev/full', 'w');
  for (const argv of WRITING) {
    const { status, stderr } = writingTo(full, argv);
    t.equal(status, 74, argv.join(' '));
    t.equal(stderr, 'edge-health: cannot write the output: No space left on device\n');
  }
  for (const argv of [['nonsense'], ['ops', 'nonsense'], ['harness', 'nonsense']]) {
    const { status } = spawnSync(PROGRAM, argv, { timeout: LIMIT_MS, env, cwd: folder, stdio: ['ignore', 'ignore', full] });
    t.equal(status, argv[0] === 'ops' ? 3 : 64, `${argv.join(' ')}: an error that cannot be shown changes no exit code`);
  }
  closeSync(full);
});

t.test('run refuses to start on the same errors, prints all of them and exits with 78', async (t) => {
  const { status, stderr } = program('run', '--config', configFile(BROKEN));
  t.equal(status, 78);
  for (const pattern of ERRORS) t.match(stderr, pattern);
  t.match(stderr, /not started: the configuration has errors errors=4/);
  t.notMatch(stderr, /is running/);
  const missing = program('run', '--config', join(folder, 'missing.yaml'));
  t.equal(missing.status, 78);
  t.match(missing.stderr, /missing\.yaml: no such file/);
});

t.test('run uses the file of EDGE_HEALTH_CONFIG, and --config takes precedence', async (t) => {
  const broken = configFile('node_name: 7up\n');
  const named = spawnSync(PROGRAM, ['run'], { encoding: 'utf8', timeout: LIMIT_MS, env: { ...env, EDGE_HEALTH_CONFIG: broken } });
  t.equal(named.status, 78);
  t.match(named.stderr, broken);
  const both = spawnSync(PROGRAM, ['run', '--config', configFile('publish_frequency: 0\n')], {
    encoding: 'utf8',
    timeout: LIMIT_MS,
    env: { ...env, EDGE_HEALTH_CONFIG: broken },
  });
  t.equal(both.status, 78);
  t.match(both.stderr, /publish_frequency/);
  t.notMatch(both.stderr, /7up/);
});

t.test('a data folder that cannot be created is a configuration error, in one line', async (t) => {
  const file = configFile('');
  for (const path of ['/proc/nope', file, `${file}/below`]) {
    const config = configFile(`rest: {host: 127.0.0.1, port: 0}\nstorage: {path: ${path}}\nros: {transport: 'off'}\n`);
    const { signal, status, stderr } = program('run', '--config', config);
    t.match({ signal, status }, { signal: null, status: 78 }, path);
    t.match(stderr, new RegExp(`^error: storage\\.path: ${path} cannot be created: .*; .* storage\\.path.*\n$`));
    const job = program('ops', 'collect_metrics', '--config', config);
    t.equal(job.status, 3);
    t.match(job.stderr, new RegExp(`^edge-health ops: storage\\.path: ${path} cannot be created: .*\n$`));
  }
});

t.test('a harness run ends if its folder cannot be created', async (t) => {
  const { status, stderr } = program('harness', 'run', '--duration', '1m', '--url', 'http://127.0.0.1:9', '--out', '/proc/nope/run');
  t.equal(status, 69);
  t.match(stderr, /\/proc\/nope/);
  t.notMatch(stderr, /^\s+at /m);
});

t.test('a deleted working directory is reported', async (t) => {
  for (const argv of ['run', 'harness run']) {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', `unset NODE_OPTIONS; mkdir gone && cd gone && rmdir ../gone && exec "$0" ${argv}`, PROGRAM],
      {
        encoding: 'utf8',
        timeout: LIMIT_MS,
        env,
        cwd: folder,
      },
    );
    t.equal(status, 78);
    t.match(stderr, /^edge-health: the working directory was deleted; change to one that exists .*storage\.path$/m);
    t.notMatch(stderr, /^\s+at /m);
  }
});

t.test('a second service on the same data folder exits with 75 and the reason; the first one continues', async (t) => {
  const home = join(folder, 'first');
  mkdirSync(home);
  const first = await startIn(t, home, { environment: { RUNTIME_DIRECTORY: join(home, 'run') } });
  const { port } = new URL(first.url);
  const own = join(folder, 'second-run');
  mkdirSync(own);
  const second = (text: string): SpawnSyncReturns<string> =>
    spawnSync(PROGRAM, ['run', '--config', configFile(text)], {
      encoding: 'utf8',
      timeout: LIMIT_MS,
      env: { ...env, RUNTIME_DIRECTORY: own },
    });

  for (const otherPort of [0, port]) {
    const { status, stderr } = second(
      `rest: {host: 127.0.0.1, port: ${otherPort}}\nstorage: {path: ${home}/data}\nros: {transport: 'off'}\n`,
    );
    t.equal(status, 75);
    t.ok(stderr.includes(`${home}/data`), 'it names the folder');
    t.match(stderr, /another edge-health is using the data folder/);
    t.notMatch(stderr, /is running|^\s+at /m);
  }
  await first.until<StatusDocument>('/status', ({ publish, storage }) => publish.samples > 0 && storage.state === 'ok');
  t.equal(await first.end(), 0, 'the first was not disturbed');
  const third = await startIn(t, home);
  t.equal((await third.get('/status')).status, 200, 'and what it leaves can be taken');
});

t.test('reload prints its result, and commands reach the running service', async (t) => {
  const home = join(folder, 'reloading');
  mkdirSync(home);
  // As started in a shell: without the folder of a service manager.
  const service = await RunningService.start(home, { environment: { RUNTIME_DIRECTORY: '' } });
  t.teardown(() => service.end());
  const { file } = (await service.json<StatusDocument>('/status')).config;
  const text = readFileSync(file, 'utf8');
  const command = (...argv: string[]): SpawnSyncReturns<string> =>
    spawnSync(PROGRAM, [...argv, '--config', file], {
      encoding: 'utf8',
      timeout: LIMIT_MS,
      env: { ...env, RUNTIME_DIRECTORY: undefined, STATE_DIRECTORY: undefined },
    });
  const restartNeeded = async (): Promise<readonly string[]> => (await service.json<StatusDocument>('/status')).config.restart_needed;
  t.same(await restartNeeded(), []);
  t.match(command('reload'), { status: 0, stdout: `${file}: reloaded\n`, stderr: '' });
  // The service of the test has port 0, which means any free port.
  writeFileSync(file, text.replace('port: 0', 'port: 5055').replace('raise_after_seconds: 3600', 'raise_after_seconds: 3599'));
  const sentence = 'rest.port: 5055 needs a restart; still 0';
  t.match(command('reload'), { status: 1, stdout: '', stderr: `edge-health: ${sentence}\n` });
  t.same(await restartNeeded(), [sentence]);
  await service.logged(new RegExp(sentence));
  const status = command('status');
  t.match(status.stdout, /, unix:\/\S+\/rest\.sock$/m, 'of the running service, not the address in the file');
  t.match(status.stdout, sentence);
  const { checks } = JSON.parse(command('ops', 'health_check', '--json').stdout) as { checks: { name: string; status: string }[] };
  t.match(
    checks.find(({ name }) => name === 'service'),
    { status: 'OK' },
  );

  writeFileSync(file, `${text}nonsense: 1\n`);
  const refused = command('reload');
  t.equal(refused.status, 78);
  t.match(refused.stderr, /not reloaded: the running configuration stays in force\n.*nonsense/);
  t.same(await restartNeeded(), [sentence], 'as of the last file that was taken');

  writeFileSync(file, `${text}#${'x'.repeat(250_000)}`);
  const large = command('reload');
  t.equal(large.status, 78);
  t.match(large.stderr, /not reloaded.*\n.*: 25\d{4} bytes; the limit is 65536 bytes/);
  t.match((await service.json<StatusDocument>('/status')).config.problem, /the limit is 65536 bytes/);

  writeFileSync(file, text);
  t.match(command('reload'), { status: 0 });
  t.same(await restartNeeded(), []);
  await service.end();
  const gone = command('reload');
  t.equal(gone.status, 69);
  t.match(gone.stderr, `no service of this machine runs with ${file}`);
});

t.test('SIGHUP with an invalid file changes nothing and logs the reason; with a valid one thresholds change', async (t) => {
  const machine = new MachineTree(t, 'vm-no-sensors');
  machine.setMemoryPercent(50);
  const path = configFile('');
  const write = (memory: string, more = ''): void =>
    writeFileSync(
      path,
      `rest: {host: 127.0.0.1, port: 0}
storage: {path: reload-data}
thresholds: {memory: ${memory}, disk: {warning: 99.98, critical: 99.99}}
${more}ros: {transport: 'off'}
log: {level: error}
alerts: {raise_after_seconds: 0, clear_after_seconds: 0}
`,
    );
  write('{warning: 60, critical: 70}');
  // The level of the command line holds after a reload as well, which logs a notice.
  const argv = ['run', '--config', path, ...machine.arguments, '--ros-args', '--log-level', 'info'];
  const child = spawn(PROGRAM, argv, { stdio: ['ignore', 'ignore', 'pipe'], env, cwd: folder });
  t.teardown(async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const logged = (pattern: RegExp): Promise<RegExpExecArray> =>
    until(`the log has ${pattern}`, () => pattern.exec(log), { describe: () => log });
  const [, url] = await logged(/dashboard: (http:\S+)\//);
  const status = async (): Promise<StatusDocument> => (await (await fetch(`${url}/status`)).json()) as StatusDocument;
  const reload = (...given: Parameters<typeof write>): void => {
    write(...given);
    log = '';
    child.kill('SIGHUP');
  };
  const bad = ['{warning: 2, critical: 1}', 'nonsense: 1\n'] as const;

  reload(...bad);
  await logged(/not reloaded: the running configuration stays in force errors=2/);
  t.match(log, /:3:32: thresholds\.memory\.warning/);
  t.match(log, /:4:1: nonsense/);
  t.match((await status()).config.problem, /warning below critical.*nonsense/);
  t.same((await status()).open_alerts, { WARNING: 0, ERROR: 0, CRITICAL: 0 });

  reload('{warning: 30, critical: 40}');
  await logged(/configuration reloaded/);
  await until('an alert is open', async () => (await status()).open_alerts.CRITICAL === 1);
  t.equal((await status()).config.problem, null);

  reload(...bad);
  await logged(/not reloaded/);
  t.equal((await status()).open_alerts.CRITICAL, 1, 'what was in force is in force');

  reload('{warning: 60, critical: 70}');
  await until('the alert is resolved', async () => (await status()).open_alerts.CRITICAL === 0);
  t.equal(child.exitCode, null, 'all in one process');
});
