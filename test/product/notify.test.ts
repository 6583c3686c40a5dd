import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { NotifySocket } from '../../testkit/notify-socket.ts';
import { ROOT, RunningService } from '../../testkit/service.ts';

const WATCHDOG_MS = 2000;

async function listen(t: Test, abstract = false): Promise<{ folder: string; socket: NotifySocket }> {
  const folder = temporaryFolder(t);
  const socket = await NotifySocket.listen(folder, abstract ? `@edge-health-test-${process.pid}-${Date.now()}` : undefined);
  t.teardown(() => socket.close());
  return { folder: folder, socket };
}

const ADDON = join(ROOT, 'node_modules/sd-notify/build/Release/notify.node');

t.test('a service under NOTIFY_SOCKET says when it is ready, how it is, that it gets on, and when it ends', async (t) => {
  t.ok(existsSync(ADDON), 'through the addon of sd-notify, which was built for this run');
  const { folder, socket } = await listen(t);
  const environment = { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: String(WATCHDOG_MS * 1000), WATCHDOG_PID: '' };
  const service = await RunningService.start(folder, { environment });
  t.teardown(() => service.end());
  const ready = await socket.waitFor(({ state }) => state['READY'] === '1');
  const health = await service.json<{ timestamp: string }>('/health');
  t.ok(Date.parse(health.timestamp) <= ready.atMs + 1100, 'the first sample is there');
  t.match(ready.state['STATUS'], /^(OK|WARNING|CRITICAL): CPU \d+ %, memory \d+ %, disk \d+ %, .*; (no|\d+) open alerts?; ROS 2: off$/);
  t.equal(ready.state['WATCHDOG'], '1');
  const firstStatus = socket.all[0];
  t.match(firstStatus?.state['STATUS'], /^starting/, 'before that it said that it starts');
  await socket.waitFor(({ atMs, state }) => state['WATCHDOG'] === '1' && atMs > ready.atMs + 2 * WATCHDOG_MS, 15);
  const pings = socket.having('WATCHDOG').map(({ atMs }) => atMs);
  const longest = Math.max(...pings.slice(1).map((atMs, index) => atMs - (pings[index] as number)));
  t.ok(longest < WATCHDOG_MS, `never silent for the watchdog's time (${longest} ms)`);
  for (const { pid } of socket.all) if (pid !== service.pid) t.fail(`process ${pid} spoke for the service`);
  t.equal(await service.end(), 0);
  await socket.waitFor(({ state }) => state['STOPPING'] === '1');
  t.equal(socket.having('READY').length, 1);
});

t.test('a service that can open nothing any more says all the same that it gets on', async (t) => {
  const { folder, socket } = await listen(t);
  const environment = { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: String(WATCHDOG_MS * 1000), WATCHDOG_PID: '' };
  const service = await RunningService.start(folder, { environment });
  t.teardown(() => service.end());
  await socket.waitFor(({ state }) => state['READY'] === '1');
  // Neither a connection that is still there for the next request, nor one whose descriptor becomes free meanwhile.
  await (await fetch(`${service.url}/status`, { headers: { Connection: 'close' } })).json();
  const descriptors = (): string => readdirSync(`/proc/${service.pid}/fd`).join();
  for (let [before, same] = ['', 0]; same < 10; same = descriptors() === before ? same + 1 : 0) {
    before = descriptors();
    await new Promise((later) => setTimeout(later, 50));
  }
  // A descriptor is always the lowest free number, which must be below the limit.
  const taken = new Set(descriptors().split(',').map(Number));
  let lowest = 0;
  while (taken.has(lowest)) lowest += 1;
  execFileSync('prlimit', ['--pid', String(service.pid), `--nofile=${lowest}:`]);
  const sinceMs = Date.now();
  await t.rejects(fetch(`${service.url}/health`), 'nor take a connection');
  await socket.waitFor(({ atMs, state }) => state['WATCHDOG'] === '1' && atMs > sinceMs + 2 * WATCHDOG_MS, 15);
  const pings = socket
    .having('WATCHDOG')
    .map(({ atMs }) => atMs)
    .filter((atMs) => atMs > sinceMs - WATCHDOG_MS);
  const longest = Math.max(...pings.slice(1).map((atMs, index) => atMs - (pings[index] as number)));
  t.ok(longest < WATCHDOG_MS, `never silent for the watchdog's time (${longest} ms)`);
  execFileSync('prlimit', ['--pid', String(service.pid), '--nofile=1024:']);
  t.equal((await service.get('/health')).status, 200, 'and answers again when it can');
  t.equal(await service.end(), 0);
});

t.test('without the addon, as in a plain checkout, it notifies all the same', async (t) => {
  for (const abstract of [false, true]) {
    const { folder, socket } = await listen(t, abstract);
    // A checkout on which nothing was compiled.
    const root = join(folder, 'checkout');
    mkdirSync(join(root, 'node_modules'), { recursive: true });
    for (const part of ['bin', 'dist', 'config', 'package.json']) cpSync(join(ROOT, part), join(root, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules/node'), join(root, 'node_modules/node'));
    const config = join(folder, 'config.yaml');
    writeFileSync(config, `rest: {host: 127.0.0.1, port: 0}\nstorage: {path: ${folder}/data}\nros: {transport: 'off'}\n`);
    const child = spawn(join(root, 'bin/edge-health'), ['run', '--config', config], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: String(WATCHDOG_MS * 1000), WATCHDOG_PID: '' },
    });
    const ended = once(child, 'exit');
    t.teardown(() => child.kill('SIGKILL'));
    const ready = await socket.waitFor(({ state }) => state['READY'] === '1');
    t.equal(ready.pid, child.pid, 'the process itself, as NotifyAccess=main asks for');
    t.match(ready.state['STATUS'], /^\w+: CPU .*, (temperature unavailable|[\d.]+ °C); /, 'not only ASCII arrives');
    await socket.waitFor(({ atMs, state }) => state['WATCHDOG'] === '1' && atMs > ready.atMs);
    child.kill('SIGTERM');
    await ended;
    await socket.waitFor(({ state }) => state['STOPPING'] === '1');
  }
});

t.test('a watchdog that is meant for another process, and a socket that is not there, are no matter', async (t) => {
  const { folder, socket } = await listen(t);
  const service = await RunningService.start(folder, {
    environment: { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '200000', WATCHDOG_PID: '1' },
  });
  t.teardown(() => service.end());
  const ready = await socket.waitFor(({ state }) => state['READY'] === '1');
  await service.until<{ publish: { samples: number } }>('/status', ({ publish }) => publish.samples >= 3);
  t.ok(socket.having('WATCHDOG').length <= 1 + (Date.now() - ready.atMs) / 4000, 'no pings in a fifth of a second');
  const lonely = await RunningService.start(folder, {
    dataPath: join(folder, 'lonely'),
    environment: { NOTIFY_SOCKET: join(folder, 'nobody'), WATCHDOG_USEC: '1000000' },
  });
  t.teardown(() => lonely.end());
  await lonely.until<{ publish: { samples: number } }>('/status', ({ publish }) => publish.samples >= 3);
  t.equal(await lonely.end(), 0);
});
