import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { type StatusDocument, startIn } from '../../testkit/service/rest.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';

t.test('npm start runs the service with the given configuration, and SIGTERM to npm ends it cleanly', async (t) => {
  const folder = temporaryFolder(t);
  const file = `${folder}/config.yaml`;
  const config = { rest: { host: '127.0.0.1', port: 0 }, storage: { path: `${folder}/data` }, ros: { transport: 'off' } };
  writeFileSync(file, JSON.stringify(config));
  const npm = spawn('npm', ['start', '--', '--config', file], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: undefined },
  });
  let log = '';
  npm.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const running = /dashboard: (http:\S+)\//;
  await until('the service listens', () => running.test(log) || npm.exitCode !== null, { describe: () => log });
  const url = running.exec(log)?.[1];
  if (url === undefined) throw new Error(`npm start ended:\n${log}`);
  t.equal((await fetch(`${url}/status`)).status, 200, 'the log reports where it listens');
  const closed = once(npm, 'close');
  npm.kill('SIGTERM');
  const [code] = await closed;
  t.equal(code, 0);
  t.match(log, /received SIGTERM, shutting down/);
  await t.rejects(fetch(`${url}/status`), 'its port is closed');
});

/** The child processes of a process. */
function children(pid: number): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      // After the name, which may hold anything: the state, then the parent.
      return /^\d+$/.test(name) && Number(/^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]) === pid;
    } catch {
      return false; // It ended meanwhile.
    }
  });
}

t.test('one process samples in order; SIGTERM and SIGINT write pending data and exit with 0', async (t) => {
  const folder = temporaryFolder(t);
  const config = { publish_frequency: 100 };
  let service = await startIn(t, folder, { config });
  const { host, publish: before } = await service.until<StatusDocument>('/status', (status) => status.host !== null);
  t.ok(host && host.cores > 0, 'the host is known shortly after the start, by a process that has ended');
  const seen = new Set<string>();
  await service.until<StatusDocument>('/status', ({ publish }) => {
    for (const child of children(service.pid)) seen.add(child);
    return publish.samples >= before.samples + 100;
  });
  t.same([...seen], [], 'a hundred samples, not one child process');

  const times = async (): Promise<string[]> =>
    (await service.json<{ data: HealthStatus[] }>('/health/history?hours=1&limit=10000')).data.map(({ timestamp }) => timestamp);
  let known: string[] = [];
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const recorded = await times();
    t.ok(recorded.length > known.length, `${recorded.length} samples`);
    t.same(recorded, recorded.toSorted(), 'in order');
    known = recorded;
    t.equal(await service.end(signal), 0, signal);
    service = await startIn(t, folder, { config });
    t.notMatch(service.log, /recovered/, 'nothing was left behind to recover');
    t.same((await times()).slice(0, known.length), known, 'all of them are still there');
    await service.until<StatusDocument>('/status', ({ publish }) => publish.samples > 0);
  }
});

t.test('a service whose file and sockets cannot be created at first has them as soon as it can', async (t) => {
  const folder = temporaryFolder(t);
  const run = join(folder, 'run');
  const names = ['service.json', 'rest.sock', 'control.sock'];
  // Folders in the place of the files, which cannot be replaced.
  for (const name of names) mkdirSync(join(run, name, 'in-use'), { recursive: true });
  const service = await startIn(t, folder, { environment: { RUNTIME_DIRECTORY: run } });
  await service.logged(/error: service not announced/);
  t.match(service.log, /REST socket not opened[\s\S]*control socket not opened/);
  for (const name of names) rmSync(join(run, name), { recursive: true });
  await service.logged(/notice: service announced/);
  await service.logged(/notice: REST socket opened/);
  await service.logged(/notice: control socket opened/);
  t.equal((JSON.parse(readFileSync(join(run, 'service.json'), 'utf8')) as { pid: number }).pid, service.pid);
});
