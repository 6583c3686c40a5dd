import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { watchdogSeconds } from '../../src/core/platform/notify.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { copyCheckout } from '../../testkit/service/checkout.ts';
import { NotifySocket } from '../../testkit/service/notify-socket.ts';
import { type StatusDocument, startService } from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

// The service manager through the C library, as in a checkout without a compiler; through the addon: test/system/host/notify-addon.test.ts.

const WATCHDOG_USEC = '400000';
const PINGS = 3;

const root = copyCheckout(temporaryFolder(t));
const machine = new MachineTree(t, 'pi5');

for (const path of [undefined, `@edge-health-test-${process.pid}`]) {
  const kind = path === undefined ? 'a path' : 'an abstract name';
  t.test(`a service under NOTIFY_SOCKET reports when it starts, is ready, makes progress and ends: ${kind}`, async (t) => {
    const socket = await NotifySocket.listen(t, path);
    const environment = { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC };
    const service = await startService(t, { root, environment, arguments: machine.arguments });
    const ready = await socket.waitFor(({ state }) => state['READY'] === '1');
    t.match(socket.all[0]?.state['STATUS'], /^starting/, 'first that it starts');
    t.equal(ready.state['WATCHDOG'], '1');
    t.equal((await service.get('/health')).status, 200, 'when it is ready the first sample is there');
    await until('pings follow', () => socket.having('WATCHDOG').length > PINGS);
    const line = /^OK: CPU 11 %, memory 31 %, disk \d+ %, 52\.4 °C; no open alerts; ROS 2: off$/;
    t.ok(await socket.waitFor(({ state }) => line.test(state['STATUS'] ?? '')), 'with a line for people');
    t.equal(await service.end(), 0);
    const stopping = await socket.waitFor(({ state }) => state['STOPPING'] === '1');
    t.equal(socket.all.at(-1), stopping, 'last that it ends');
    t.equal(socket.having('READY').length, 1);
    t.same([...new Set(socket.all.map(({ pid }) => pid))], [service.pid], 'the process itself, as NotifyAccess=main requires');
  });
}

t.test('a service that has no free descriptor still sends its pings', async (t) => {
  const socket = await NotifySocket.listen(t);
  const service = await startService(t, { root, environment: { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC } });
  await socket.waitFor(({ state }) => state['READY'] === '1');
  const limits = readFileSync(`/proc/${service.pid}/limits`, 'utf8');
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  // Every descriptor below the limit is open already.
  execFileSync('prlimit', ['--pid', String(service.pid), '--nofile=3:']);
  const before = socket.having('WATCHDOG').length;
  await until('pings follow', () => socket.having('WATCHDOG').length >= before + PINGS);
  execFileSync('prlimit', ['--pid', String(service.pid), `--nofile=${soft}:`]);
  t.equal((await service.get('/health')).status, 200, 'and it answers again when it can');
  t.equal(await service.end(), 0);
});

t.test('a missing socket has no effect', async (t) => {
  const environment = { NOTIFY_SOCKET: join(temporaryFolder(t), 'missing'), WATCHDOG_USEC: '1000000' };
  const service = await startService(t, { root, environment });
  await service.until<StatusDocument>('/status', ({ publish }) => publish.samples >= 2);
  t.equal(await service.end(), 0);
});

t.test('a watchdog applies to the process that it names, or to any process', async (t) => {
  const { pid } = process;
  t.equal(watchdogSeconds({ WATCHDOG_USEC: '200000', WATCHDOG_PID: '1' }, pid), null);
  t.equal(watchdogSeconds({ WATCHDOG_USEC: '200000', WATCHDOG_PID: String(pid) }, pid), 0.2);
  t.equal(watchdogSeconds({ WATCHDOG_USEC: '200000', WATCHDOG_PID: '' }, pid), 0.2);
  t.equal(watchdogSeconds({ WATCHDOG_USEC: '200000' }, pid), 0.2);
  for (const WATCHDOG_USEC of ['0', '-1', 'x', '']) t.equal(watchdogSeconds({ WATCHDOG_USEC }, pid), null);
  t.equal(watchdogSeconds({}, pid), null);
});
