import t from 'tap';
import { Appliance } from '../../../testkit/container/appliance.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';

t.setTimeout(300_000);

for (const suite of SUITES) {
  t.test(`only permitted users can make the service forget a node, in ${suite}`, { skip: containersUnavailable() }, async (t) => {
    const { machine } = await Appliance.boot(t, { suite });
    await machine.sh('useradd alice; useradd --groups edge-health bob');
    t.equal((await machine.sh('stat -c "%a %U:%G" /run/edge-health/control.sock')).trim(), '660 edge-health:edge-health');
    const forget = ['edge-health', 'nodes', 'forget', 'robot1'];
    const refused = await machine.run(forget, { user: 'alice' });
    t.equal(refused.code, 77);
    t.match(
      refused.stderr,
      /^edge-health nodes: the user alice may not use \/run\/edge-health\/control\.sock: run this with sudo, or as a member of the group edge-health\n$/,
    );
    for (const user of ['bob', 'root']) {
      const { code, stderr } = await machine.run(forget, { user });
      t.equal(code, 1, user);
      t.match(stderr, /^edge-health nodes: no remote node is named "robot1"; there are none\n$/, user);
    }
    t.match((await machine.run(['edge-health', 'nodes'], { user: 'alice' })).stdout, /^health_monitor +local/m, 'every user may list');
    await machine.systemctl('stop', 'edge-health');
    const stopped = await machine.run(forget);
    t.equal(stopped.code, 69);
    t.match(
      stopped.stderr,
      /no service found that runs with \/etc\/edge-health\/edge_health_config\.yaml; is it running\? systemctl status edge-health\n$/,
    );
  });
}
