import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../src/client/documents.ts';
import { RestClient } from '../../src/client/rest.ts';
import { REST_SOCKET } from '../../src/client/running-service.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

const GOOD = `rest: {host: 127.0.0.1, port: 0}
storage: {path: data}
publish_frequency: 10
ros: {transport: 'off'}
alerts: {raise_after_seconds: 3600}
`;
/** A reload of this file logs a hundred errors, about 15 kB. */
const BAD = `${GOOD}${Array.from({ length: 100 }, (_, n) => `unknown_key_${n}: 1\n`).join('')}`;
const LINES_PER_RELOAD = 101;

const HAS_SCRIPT = spawnSync('script', ['--version']).status === 0;

interface Service {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly samples: () => Promise<number>;
  /** Reloads a bad file, and resolves with the number of reloads once the service has logged its errors. */
  readonly reload: () => Promise<number>;
}

/** Starts the service with a standard error that nobody reads; `terminal`: that of a terminal, whose keyboard is the child's standard input. */
async function start(t: Test, stderr: number | 'pipe' | 'terminal'): Promise<Service> {
  const folder = temporaryFolder(t);
  const config = join(folder, 'config.yaml');
  const run = join(folder, 'run');
  mkdirSync(run);
  writeFileSync(config, GOOD.replace('path: data', `path: ${folder}/data`));
  const argv = [join(ROOT, 'bin/edge-health'), 'run', '--config', config];
  const isTerminal = stderr === 'terminal';
  // script(1) has a pseudo-terminal.
  const [program = '', ...rest] = isTerminal ? ['script', '-qefc', argv.map((word) => `'${word}'`).join(' '), '/dev/null'] : argv;
  const child = spawn(program, rest, {
    stdio: isTerminal ? 'pipe' : ['ignore', 'ignore', stderr],
    env: { ...process.env, NODE_OPTIONS: undefined, NOTIFY_SOCKET: undefined, STATE_DIRECTORY: undefined, RUNTIME_DIRECTORY: run },
  });
  t.teardown(() => child.kill('SIGKILL'));
  const document = <T>(name: string): T | null =>
    existsSync(join(run, name)) ? (JSON.parse(readFileSync(join(run, name), 'utf8')) as T) : null;
  const { pid } = await until('the service is announced', () => document<{ pid: number }>('service.json'));
  const client = new RestClient({ base: `unix:${join(run, REST_SOCKET)}`, token: null });
  const samples = async (): Promise<number> => (await client.json<StatusDocument>('/status')).publish.samples;
  writeFileSync(config, BAD.replace('path: data', `path: ${folder}/data`));
  const reloads = (): number => document<{ reloads: number }>('reload.json')?.reloads ?? 0;
  const reload = async (): Promise<number> => {
    const before = reloads();
    process.kill(pid, 'SIGHUP');
    return until('the reload is refused', () => (reloads() > before ? reloads() : null));
  };
  return { child, pid, samples, reload };
}

/** Logs until the output and the buffer are full, and checks that sampling continues. Resolves with the number of lines logged. */
async function fill(t: Test, { reload, samples }: Service): Promise<number> {
  let reloads = 0;
  while (reloads < 25) reloads = await reload();
  const before = await samples();
  await until('sampling continues', async () => (await samples()) > before + 10);
  t.pass(`${reloads} reloads`);
  return reloads * LINES_PER_RELOAD;
}

/** Checks that each line was written or is counted as dropped. */
async function checkReport(t: Test, logged: number, text: () => string): Promise<void> {
  const [, dropped] = await until('the report', () => /^warning: (\d+) log lines dropped$/m.exec(text()));
  const errors = text().match(/^error: /gm)?.length ?? 0;
  t.ok(errors > 0);
  t.equal(errors + Number(dropped), logged);
}

async function end({ child, pid }: Service): Promise<unknown> {
  const ended = once(child, 'exit');
  process.kill(pid, 'SIGTERM');
  return (await ended)[0];
}

function pipe(t: Test): number {
  const path = join(temporaryFolder(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  t.teardown(() => closeSync(descriptor));
  return descriptor;
}

function readPipe(descriptor: number): string {
  const buffer = Buffer.alloc(1024 * 1024);
  try {
    return buffer.toString('utf8', 0, readSync(descriptor, buffer));
  } catch {
    return ''; // EAGAIN: it is empty.
  }
}

t.test('a pipe that nobody reads does not stop sampling, and dropped lines are reported when it is read', async (t) => {
  const descriptor = pipe(t);
  const service = await start(t, descriptor);
  const logged = await fill(t, service);
  let text = '';
  await checkReport(t, logged, () => (text += readPipe(descriptor)));
  t.equal(await end(service), 0);
});

t.test('nor does a socket, which the journal is', async (t) => {
  const service = await start(t, 'pipe'); // Of Node, a socket.
  const logged = await fill(t, service);
  let text = '';
  (service.child.stderr as Readable).setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await checkReport(t, logged, () => text);
  t.equal(await end(service), 0);
});

t.test(
  'nor does a terminal that Ctrl-S has stopped, until Ctrl-Q',
  { skip: HAS_SCRIPT ? false : 'script(1) is not installed' },
  async (t) => {
    const service = await start(t, 'terminal');
    const { stdin, stdout } = service.child;
    let text = '';
    stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part.replaceAll('\r', '');
    });
    await until('the start', () => text.includes('is running'));
    stdin?.write('\x13');
    const logged = await fill(t, service);
    t.notMatch(text, /unknown_key_99.*[\s\S]*unknown_key_99/, 'the terminal is stopped');
    stdin?.write('\x11');
    await checkReport(t, logged, () => text);
    stdin?.write('\x13');
    const ended = end(service);
    // A terminal that stays stopped does not delay the exit of the service; script(1) waits until it has shown the rest.
    await until('the exit', () => !existsSync(`/proc/${service.pid}`));
    stdin?.write('\x11');
    t.equal(await ended, 0);
  },
);

t.test('an output that nobody reads does not delay the exit', async (t) => {
  const service = await start(t, pipe(t));
  await fill(t, service);
  t.equal(await end(service), 0);
});
