import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ROOT, RunningService } from '../../testkit/service.ts';

interface Status {
  publish: { samples: number; missed: number; measured_hertz: number | null };
  host: { cores: number } | null;
  storage: { state: string };
}

t.test('npm start runs the service with the given configuration, and SIGTERM to npm ends it cleanly', async (t) => {
  const folder = temporaryFolder(t);
  const file = `${folder}/config.yaml`;
  writeFileSync(file, `rest: {host: 127.0.0.1, port: 0}\nstorage: {path: ${folder}/data}\n`);
  const npm = spawn('npm', ['start', '--', '--config', file], { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  npm.stderr.setEncoding('utf8');
  const url = await new Promise<string>((resolve, reject) => {
    npm.stderr.on('data', (text: string) => {
      log += text;
      const match = /dashboard: (http:\S+)\//.exec(log);
      if (match) resolve(match[1] as string);
    });
    npm.once('exit', () => reject(new Error(log)));
  });
  t.equal((await fetch(`${url}/status`)).status, 200, 'it says where to look, and is there');
  npm.kill('SIGTERM');
  const [code] = await once(npm, 'exit');
  t.equal(code, 0);
  t.match(log, /ending on SIGTERM/);
  await t.rejects(fetch(`${url}/status`), 'nobody listens any more');
});

t.test('one process, no children while it samples; the host is known shortly after the start', async (t) => {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder, { config: { publish_frequency: 20 } });
  t.teardown(() => service.end());
  const { host } = await service.until<Status>('/status', (status) => status.host !== null);
  t.ok(host && host.cores > 0);
  const children = (): string[] =>
    readdirSync(`/proc/${service.pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${service.pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
    );
  const { publish: before } = await service.json<Status>('/status');
  const seen = new Set<string>();
  await service.until<Status>('/status', ({ publish }) => {
    for (const child of children()) seen.add(child);
    return publish.samples >= before.samples + 60;
  });
  t.same([...seen], [], 'sixty samples, not one child process');
});

t.test('at 1000 Hz the grid is kept', async (t) => {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder, { config: { publish_frequency: 1000 } });
  t.teardown(() => service.end());
  // Beside other suites it may miss more for a while, but not for good.
  let from: Status['publish'] | null = null;
  const { publish } = await service.until<Status>(
    '/status',
    ({ publish: now }) => {
      from ??= now;
      const [samples, missed] = [now.samples - from.samples, now.missed - from.missed];
      if (samples + missed < 2000) return false;
      if (missed / (samples + missed) < 0.2) return true;
      from = now;
      return false;
    },
    60,
  );
  t.ok(publish.samples > 1600);
  const history = await service.json<{ data: { timestamp: string }[] }>('/health/history?hours=1&limit=1000');
  const stamps = history.data.map(({ timestamp }) => Date.parse(timestamp));
  t.ok(
    stamps.every((at, i) => i === 0 || at >= (stamps[i - 1] as number)),
    'in order',
  );
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} writes what is left and exits 0`, async (t) => {
    const folder = temporaryFolder(t);
    const service = await RunningService.start(folder, { config: { publish_frequency: 10 } });
    await service.until<{ count: number }>('/health/history?hours=1', ({ count }) => count >= 5);
    const before = await service.json<{ data: { timestamp: string }[] }>('/health/history?hours=1');
    t.equal(await service.end(signal), 0);
    const again = await RunningService.start(folder);
    t.teardown(() => again.end());
    t.notMatch(again.log, /recovered/, 'nothing was left behind to recover');
    const after = await again.json<{ data: { timestamp: string }[] }>('/health/history?hours=1');
    const stamps = new Set(after.data.map(({ timestamp }) => timestamp));
    t.ok(
      before.data.every(({ timestamp }) => stamps.has(timestamp)),
      `${before.data.length} samples are still there`,
    );
  });
}
