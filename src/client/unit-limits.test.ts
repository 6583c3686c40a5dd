import t from 'tap';
import { forbiddenFolder, mayUseLowPorts, type UnitLimits, unitOfConfig } from './unit-limits.ts';

const unit = (more: Partial<UnitLimits> = {}): UnitLimits => ({
  Id: 'edge-health.service',
  LoadState: 'loaded',
  ProtectSystem: 'strict',
  ProtectHome: 'yes',
  StateDirectory: 'edge-health',
  ReadWritePaths: '',
  BindPaths: '',
  AmbientCapabilities: '',
  PrivateUsers: 'yes',
  ...more,
});

t.test('finds the unit of a configuration file', async (t) => {
  t.equal(unitOfConfig('/etc/edge-health/edge_health_config.yaml'), 'edge-health.service');
  t.equal(unitOfConfig('/home/me/config/edge_health_config.yaml'), 'edge-health.service');
  t.equal(unitOfConfig('/etc/edge-health/sensor_node_config.yaml'), 'edge-health@sensor_node.service');
});

t.test('a folder is forbidden unless the sandbox lets the unit write there', async (t) => {
  const isForbidden = (folder: string, ...units: UnitLimits[]): boolean => forbiddenFolder(folder, units) !== null;
  const drop = unit({ ReadWritePaths: '-/srv/robot /data' });
  t.notOk(isForbidden('/var/lib/edge-health', unit()));
  t.notOk(isForbidden('/data/eh', drop));
  t.notOk(isForbidden('/srv/robot', drop));
  t.notOk(isForbidden('/data/eh', unit({ ProtectSystem: 'full' })));
  t.notOk(isForbidden('/data/eh', unit({ BindPaths: '/mnt/ssd/eh:/data/eh:rbind' })));
  t.notOk(isForbidden('/data/eh'), 'no unit is installed');
  t.ok(isForbidden('/data/eh', unit()));
  t.ok(isForbidden('/database', drop));
  t.ok(isForbidden('/data/eh', drop, unit({ Id: 'edge-health-ops.service' })), 'the scheduler');
  t.match(forbiddenFolder('/data/eh', [unit()]), 'ReadWritePaths=-/data/eh');
  const scheduler = unit({ Id: 'edge-health-ops.service' });
  t.match(forbiddenFolder('/data/eh', [drop, scheduler]), 'sudo systemctl edit edge-health-ops, ', 'only the unit that needs it is named');
});

t.test('below /home, write access alone has no effect', async (t) => {
  const home = '/home/robot/eh';
  t.ok(forbiddenFolder(home, [unit({ ReadWritePaths: home })]));
  t.ok(forbiddenFolder(home, [unit({ ProtectHome: 'read-only' })]));
  t.equal(forbiddenFolder(home, [unit({ ProtectHome: 'read-only', ReadWritePaths: home })]), null);
  t.match(forbiddenFolder(home, [unit()]), `add ProtectHome=read-only and ReadWritePaths=-${home}`);
});

t.test('a port below 1024 needs a capability that counts outside of the unit', async (t) => {
  t.notOk(mayUseLowPorts(unit()));
  t.notOk(mayUseLowPorts(unit({ AmbientCapabilities: 'cap_net_bind_service' })));
  t.ok(mayUseLowPorts(unit({ AmbientCapabilities: 'cap_net_bind_service', PrivateUsers: 'no' })));
});
