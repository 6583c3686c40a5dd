import t from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Appliance, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);

const NODE = '/usr/lib/edge-health/runtime/bin/node';
/** Takes port 5000, answers every request, and reports what it receives to its journal. */
const STRANGER = `require('http').createServer((q, r) => { console.log('received', q.url, JSON.stringify(q.headers)); r.end('{}'); })
  .on('connection', () => console.log('connected')).listen(5000, () => console.log('listening'))`;

t.test('a user who holds port 5000 receives no token, and is not taken for the service', { skip: containersUnavailable() }, async (t) => {
  const { machine } = await Appliance.boot(t, { suite: 'bookworm' });
  await machine.sh(`useradd alice; useradd --groups edge-health bob
    head -c 32 /dev/urandom | base64 >/etc/edge-health/token
    chgrp edge-health /etc/edge-health/token; chmod 640 /etc/edge-health/token
    printf 'rest: {token_file: /etc/edge-health/token}\\nops: {notify: {command: /bin/true}}\\n' >/etc/edge-health/edge_health_config.yaml
    systemctl stop ${UNIT} edge-health-ops`);
  await machine.run(['systemd-run', '--quiet', '--unit=stranger', '--uid=alice', NODE, '-e', STRANGER]);
  const received = (): Promise<string> => machine.journal('stranger');
  const waitFor = (text: string, of: () => Promise<string>): Promise<void> =>
    machine.until(
      async () => (await of()).includes(text),
      60,
      () => `no "${text}"`,
    );
  await waitFor('listening', received);

  await t.test('while the service is stopped', async (t) => {
    for (const user of ['root', 'bob', 'alice'])
      t.match(await machine.run(['edge-health', 'status'], { user }), { code: 3, stderr: /no service found that runs with / }, user);
    const { stdout } = await machine.run(['edge-health', 'ops', 'backup_logs', '--json']);
    t.match(JSON.parse(stdout), { backup: { database: { source: 'file' } } });
    t.notMatch(await received(), 'connected');
  });

  await t.test('while the service runs', async (t) => {
    await machine.systemctl('start', UNIT, 'edge-health-ops');
    t.equal(await machine.sh('stat -c "%a %U:%G %F" /run/edge-health/rest.sock'), '666 edge-health:edge-health socket');
    for (const user of ['root', 'bob']) {
      const { stdout } = await machine.run(['edge-health', 'status', '--json'], { user });
      t.match(JSON.parse(stdout), { reachable: true, url: 'unix:/run/edge-health/rest.sock' }, user);
    }
    t.match(await machine.run(['edge-health', 'status'], { user: 'alice' }), { code: 3, stdout: '', stderr: /token/ });
    const { stdout } = await machine.run(['edge-health', 'ops', 'backup_logs', '--json']);
    t.match(JSON.parse(stdout), { status: 'OK', backup: { database: { source: 'service' } } });
    const status = async (): Promise<StatusDocument> => {
      const answer = await machine.run(['edge-health', 'status', '--json']);
      return (JSON.parse(answer.stdout) as { status: StatusDocument }).status;
    };
    // In the sandbox of its unit, the scheduler reads the alerts and collects rows over the socket too.
    await machine.until(
      async () => {
        const { jobs, notifications } = (await status()).ops;
        const collected = jobs.find(({ name }) => name === 'collect_metrics')?.last;
        return notifications?.alerts === 'stream' && collected?.status === 'OK';
      },
      180,
      () => 'the scheduler does not reach the service',
    );
    t.notMatch(await received(), 'connected');
  });
});
