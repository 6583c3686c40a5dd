import t from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';

t.setTimeout(240_000);

interface Status {
  readonly ros: { readonly transport: string };
  readonly nodes: readonly { readonly node_name: string; readonly health: { readonly status: string } | null }[];
}
interface Health {
  readonly node_name: string;
  readonly cpu_percent: number | null;
  readonly timestamp: string;
}

const ROLES = ['sensor_node', 'actuator_node'] as const;
const PORTS = { sensor_node: 5001, actuator_node: 5002 } as const;

for (const suite of SUITES) {
  t.test(`two roles beside the main one in ${suite}`, { skip: containersUnavailable() }, async (t) => {
    const { file } = await builtPackage();
    const machine = await Container.boot(t, { suite, installed: file });
    // A machine without a network, whose loopback has no multicast, as Linux leaves it.
    await machine.sh('ip link set lo multicast off; ip route flush all; systemctl restart edge-health');
    const units = ROLES.map((role) => `edge-health@${role}`);
    await machine.systemctl('start', ...units);
    const all = ['edge-health', ...units];
    for (const unit of all) t.equal(await machine.show(unit, 'ActiveState'), 'active', unit);
    const pids = await Promise.all(all.map((unit) => machine.show(unit, 'MainPID')));
    t.equal(new Set(pids).size, 3, 'one process each');

    await t.test('the REST API of the main service shows all three', async (t) => {
      const names = ['health_monitor', ...ROLES];
      const { nodes, ros } = await machine.untilJson<Status>('/status', ({ nodes }) =>
        names.every((name) => nodes.some((node) => node.node_name === name && node.health !== null)),
      );
      t.equal(ros.transport, 'embedded');
      t.same(nodes.map(({ node_name }) => node_name).sort(), [...names].sort());
      for (const role of ROLES) {
        const first = await machine.json<Health>(`/health?node=${role}`);
        t.match(first, { node_name: role, cpu_percent: Number });
        await machine.untilJson<Health>(`/health?node=${role}`, ({ timestamp }) => timestamp > first.timestamp);
        const own = (await (await machine.http('/health', PORTS[role])).json()) as Health;
        t.equal(own.node_name, role, 'and the role answers for itself');
      }
    });

    await t.test('each role has its folders, and its name in the journal', async (t) => {
      for (const role of ROLES) {
        const unit = `edge-health@${role}`;
        t.match(await machine.sh(`stat -c '%U %a' /run/edge-health-${role}`), 'edge-health 755');
        t.match(await machine.sh(`ls /var/lib/edge-health/data/${role} /run/edge-health-${role}/spool`), /\.ndjson[\s\S]*\.db/);
        t.match(await machine.journal(unit, '--output=short'), new RegExp(`edge-health@${role}\\[\\d+\\]: edge-health .* is running`));
        t.match(await machine.systemctl('status', unit), /Status: ".*CPU \d/);
      }
      t.match(await machine.sh('ls /var/lib/edge-health /run/edge-health/spool'), /\.ndjson[\s\S]*\.db/);
    });

    await t.test('a role that is stopped has left, and the others continue', async (t) => {
      const sensor = (satisfied: (node: StatusDocument['nodes'][number]) => boolean): Promise<StatusDocument> =>
        machine.untilJson('/status', ({ nodes }) => nodes.some((node) => node.node_name === 'sensor_node' && satisfied(node)), 60);
      await machine.systemctl('stop', 'edge-health@sensor_node');
      await sensor(({ left }) => left !== null);
      t.equal(await machine.show('edge-health', 'MainPID'), pids[0]);
      t.equal(await machine.show('edge-health@actuator_node', 'MainPID'), pids[2]);
      await machine.systemctl('start', 'edge-health@sensor_node');
      await sensor(({ left, status }) => left === null && status !== 'UNKNOWN');
      t.pass('and its statuses arrive again');
    });

    await t.test('after a reboot the enabled roles run', async (t) => {
      await machine.systemctl('enable', 'edge-health@actuator_node');
      await machine.reboot();
      for (const unit of ['edge-health', 'edge-health@actuator_node']) t.equal(await machine.show(unit, 'ActiveState'), 'active', unit);
      t.equal(await machine.show('edge-health@sensor_node', 'ActiveState'), 'inactive');
    });

    await t.test('edge_brain replaces the main service', async (t) => {
      await machine.sh(
        'echo EDGE_HEALTH_CONFIG=/etc/edge-health/edge_brain_config.yaml >> /etc/default/edge-health; systemctl restart edge-health',
      );
      t.match(await machine.untilJson<Health>('/health', (body) => body.node_name !== undefined), { node_name: 'edge_brain' });
      t.match(await machine.sh('ls /var/lib/edge-health/data/edge_brain'), 'edge-health.db');
      t.match(await machine.sh('cd / && edge-health check-config'), '/etc/edge-health/edge_brain_config.yaml: valid', 'also for a person');
      await machine.sh('cd / && edge-health ops backup_logs');
      t.match(await machine.sh(`stat -c '%U %n' /var/lib/edge-health/data/edge_brain/backups/*`), /^edge-health .*\.tar/m);
      t.not((await machine.run(['test', '-e', '/data'])).code, 0, 'nothing is made in the working directory');
      await machine.systemctl('reload', 'edge-health');
      await machine.sh(`sed -i 's/warning: 80.0/warning: 99.0/' /etc/edge-health/edge_brain_config.yaml`);
      t.not((await machine.run(['systemctl', 'reload', 'edge-health'])).code, 0, 'it is this file that is checked');
      await machine.sh(`sed -i 's/warning: 99.0/warning: 80.0/; s/port: 5000/port: 5055/' /etc/edge-health/edge_brain_config.yaml`);
      t.not((await machine.run(['systemctl', 'reload', 'edge-health'])).code, 0, 'a changed key takes a restart');
      t.equal(await machine.show('edge-health', 'ActiveState'), 'active');
      const sentence = 'rest.port: 5055 needs a restart; still 5000';
      t.match(await machine.journal('edge-health'), sentence);
      t.match(await machine.systemctl('status', 'edge-health'), /Status: ".*restart needed for rest\.port/);
      const asUser = await machine.run(['setpriv', '--reuid=65534', '--clear-groups', 'edge-health', 'status', '--json']);
      t.match(JSON.parse(asUser.stdout), { url: 'unix:/run/edge-health/rest.sock', status: { config: { restart_needed: [sentence] } } });
      await machine.sh(`sed -i 's/port: 5055/port: 5000/' /etc/edge-health/edge_brain_config.yaml`);
      await machine.systemctl('reload', 'edge-health');
      await machine.sh(`sed -i '/^EDGE_HEALTH_CONFIG/d' /etc/default/edge-health; systemctl restart edge-health`);
    });

    await t.test('a role without a configuration fails, and one whose port is in use monitors without REST', async (t) => {
      t.not((await machine.run(['systemctl', 'start', 'edge-health@nobody'])).code, 0);
      t.equal(await machine.show('edge-health@nobody', 'ExecMainStatus'), '78');
      t.equal(await machine.show('edge-health@nobody', 'NRestarts'), '0');
      t.match(await machine.journal('edge-health@nobody'), '/etc/edge-health/nobody_config.yaml');
      // Its port is that of the main service, which it is meant to replace.
      await machine.systemctl('start', 'edge-health@edge_brain');
      t.match(await machine.show('edge-health@edge_brain', 'StatusText'), /CPU .*; REST API not listening: port 5000 is in use/);
      t.equal(await machine.show('edge-health', 'ActiveState'), 'active');
      t.match(await machine.json<Health>('/health'), { node_name: 'health_monitor' }, 'the port stays with the main service');
    });
  });
}
