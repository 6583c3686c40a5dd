import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { startProgram } from './program.ts';

/** A number of seconds that occurs on no other command line of this machine. */
const seconds = (n: number): string => `${1000 + n}.${process.pid}`;

function shell(t: Test, script: string, lines: string[] = []): ReturnType<typeof startProgram> {
  const running = startProgram({
    file: '/bin/sh',
    parameters: ['-c', script],
    environment: { PATH: process.env['PATH'], GREETING: 'hello' },
    onLine: (line) => lines.push(line),
  });
  t.teardown(() => running.end(0));
  return running;
}

/** Whether there is a process with a mark on its command line; zombies have none. */
function alive(mark: string): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && pid !== String(process.pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark);
    } catch {
      return false; // The process has ended meanwhile.
    }
  });
}

t.test('a successful program and its output on both streams', async (t) => {
  const lines: string[] = [];
  t.equal(await shell(t, 'echo "$GREETING"; echo there >&2; printf "no newline"', lines).ended, null);
  t.same(lines.sort(), ['hello', 'no newline', 'there']);
});

t.test('a failure is reported with the last output', async (t) => {
  t.equal(await shell(t, 'exit 3').ended, 'exit code 3');
  t.equal(await shell(t, 'echo disk is busy >&2; exit 1').ended, 'exit code 1; last output: disk is busy');
  t.equal(await shell(t, 'kill -9 $$').ended, 'ended by SIGKILL');
});

t.test('a program that cannot be started is reported', async (t) => {
  const path = join(temporaryFolder(t), 'plain');
  const start = (file: string): Promise<string | null> =>
    startProgram({ file, parameters: [], environment: {}, onLine: () => undefined }).ended;
  t.match(await start('/no/such/file'), /cannot be started: ENOENT/);
  writeFileSync(path, 'text');
  t.match(await start(path), /cannot be started: EACCES/);
  t.match(await start('with\0nul'), /cannot be started/);
});

t.test('it has its own process group, no input, and / as working directory', async (t) => {
  const lines: string[] = [];
  await shell(t, 'echo "$(cut -d " " -f 5 "/proc/$$/stat") $$"; pwd; cat; echo end', lines).ended;
  const [group, pid] = lines[0]?.split(' ') ?? [];
  t.equal(group, pid);
  t.same(lines.slice(1), ['/', 'end']);
});

t.test('a hanging program is ended with SIGTERM', async (t) => {
  const running = shell(t, `exec sleep ${seconds(1)}`);
  await until('it runs', () => alive(seconds(1)));
  t.equal(await running.end(10), 'terminated');
  t.equal(await running.ended, 'ended by SIGTERM');
  t.equal(await running.end(10), 'ended', 'and then there is nothing left to end');
});

t.test('a program that ignores SIGTERM is killed after the grace period, with all its descendants', async (t) => {
  const lines: string[] = [];
  // Every shell in the chain ignores SIGTERM, which its child processes inherit.
  const deep = `trap '' TERM; (trap '' TERM; sh -c "trap '' TERM; echo ready; sleep ${seconds(2)}; sleep ${seconds(2)}" & wait; sleep ${seconds(2)}) & wait; sleep ${seconds(2)}`;
  const running = shell(t, deep, lines);
  await until('it is ready', () => lines.includes('ready'));
  t.equal(await running.end(0.1), 'killed');
  t.match(await running.ended, /^ended by SIGKILL/);
  await until('all of them are gone', () => !alive(seconds(2)));
});

t.test('a stopped process is killed as well', async (t) => {
  const lines: string[] = [];
  const running = shell(t, 'echo $$; kill -STOP $$; sleep 1', lines);
  await until('it is stopped', () => lines.length > 0 && / T /.test(readFileSync(`/proc/${lines[0]}/stat`, 'utf8')));
  t.equal(await running.end(0.1), 'killed');
  t.match(await running.ended, /^ended by SIGKILL/);
});

t.test('it has ended when its first process has; remaining processes are ended with it', async (t) => {
  const running = shell(t, `sleep ${seconds(3)} & exit 0`);
  t.equal(await running.ended, null, 'even if another process keeps its output open');
  t.ok(alive(seconds(3)));
  t.not(await running.end(5), 'ended');
  await until('it is gone', () => !alive(seconds(3)));
});

t.test('excess output is dropped and blocks neither side', async (t) => {
  const lines: string[] = [];
  t.equal(await shell(t, 'seq 1 20000; exit 0', lines).ended, null);
  t.equal(lines.length, 201);
  t.equal(lines[199], '200');
  t.match(lines[200], /200 lines: further output is dropped/);

  // Not the resident memory, which also depends on the compiler and on what else the machine does to this process.
  const held = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external;
  const before = held();
  const running = shell(t, 'yes no | tr -d "\\n"', lines);
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 10);
  await until('everything else goes on', () => ticks >= 20);
  clearInterval(timer);
  t.ok(held() - before < 50e6, `nothing piles up: ${held() - before} bytes`);
  t.not(await running.end(1), 'ended');
  t.ok(lines.at(-1) !== undefined && (lines.at(-1) as string).length <= 400, 'a line without an end is cut');
});

t.test('its output cannot corrupt a terminal or a log', async (t) => {
  const lines: string[] = [];
  await shell(t, `printf 'a\\tb\\033[31m\\007c\\r\\n\\n\\377\\n'`, lines).ended;
  t.equal(lines.length, 2);
  for (const line of lines) t.notMatch(line, /\p{C}/u);
});

t.test('a large output is read to its end', async (t) => {
  const path = join(temporaryFolder(t), 'after');
  t.equal(await shell(t, `seq 1 200000; echo done > ${path}`).ended, null);
  t.ok(existsSync(path));
});

t.test('scripts without an interpreter line run as with execvp', async (t) => {
  const path = join(temporaryFolder(t), 'bare');
  writeFileSync(path, 'exit 4\n');
  chmodSync(path, 0o755);
  const { ended } = startProgram({ file: path, parameters: [], environment: {}, onLine: () => undefined });
  t.match(await ended, /exit code 4|ENOEXEC/);
});
