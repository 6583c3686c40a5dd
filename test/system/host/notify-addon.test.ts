import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { copyCheckout } from '../../../testkit/service/checkout.ts';
import { NotifySocket } from '../../../testkit/service/notify-socket.ts';
import { startService } from '../../../testkit/service/rest.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

// The service manager through the addon of npm's sd-notify, as in the Debian package; test/product/notify.test.ts tests the C library.

const PINGS = 3;
const root = copyCheckout(temporaryFolder(t));
cpSync(join(ROOT, 'node_modules/sd-notify'), join(root, 'node_modules/sd-notify'), { recursive: true });
const [headers = ''] = globSync(join(ROOT, 'node_modules/node/node_modules/node-linux-*'));
execFileSync('sh', [join(ROOT, 'scripts/build-sd-notify.sh'), join(root, 'node_modules/sd-notify'), headers], { stdio: 'pipe' });

t.test('a service that has no free descriptor still sends its pings', async (t) => {
  const socket = await NotifySocket.listen(t);
  const service = await startService(t, { root, environment: { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '400000' } });
  await socket.waitFor(({ state }) => state['READY'] === '1');
  const descriptors = (): number[] => readdirSync(`/proc/${service.pid}/fd`).map(Number);
  // A descriptor is always the lowest free number, which must be below the limit. One that the service closes meanwhile is used for the
  // next ping; the addon keeps one in reserve for that.
  await until('its connections are closed', async () => {
    const before = descriptors().join();
    await new Promise((later) => setTimeout(later, 500));
    return descriptors().join() === before;
  });
  const taken = new Set(descriptors());
  let lowest = 0;
  while (taken.has(lowest)) lowest += 1;
  execFileSync('prlimit', ['--pid', String(service.pid), `--nofile=${lowest}:`]);
  await t.rejects(fetch(`${service.url}/health`), 'it can take no connection');
  const before = socket.having('WATCHDOG').length;
  await until('pings follow', () => socket.having('WATCHDOG').length >= before + PINGS);
  for (const { pid } of socket.all) t.equal(pid, service.pid, 'the process itself');
  execFileSync('prlimit', ['--pid', String(service.pid), '--nofile=1024:']);
  t.equal((await service.get('/health')).status, 200, 'and it answers again when it can');
  t.equal(await service.end(), 0);
  await socket.waitFor(({ state }) => state['STOPPING'] === '1');
});
