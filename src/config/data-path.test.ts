import t from 'tap';
import { dataPath } from './data-path.ts';
import { DEFAULT_CONFIG } from './schema.ts';

t.test('the data folder is the same for the units and for commands in any working directory', async (t) => {
  const checkout = { folder: '/home/me/edge-health', dataFolder: '/home/me/edge-health/data' };
  const pack = { folder: '/var/lib/edge-health', dataFolder: '/var/lib/edge-health' };
  const unit = { STATE_DIRECTORY: '/var/lib/edge-health' };
  const of = (path: string | null, file: string, environment: NodeJS.ProcessEnv, installed: typeof pack): string =>
    dataPath({ ...DEFAULT_CONFIG, storage: { ...DEFAULT_CONFIG.storage, path } }, file, environment, installed);
  for (const [path, file, installed, expected] of [
    [null, '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health'],
    ['data/x', '/etc/edge-health/x.yaml', pack, '/var/lib/edge-health/data/x'],
    ['/srv/x', '/etc/edge-health/x.yaml', pack, '/srv/x'],
    ['data/x', '/srv/x.yaml', pack, '/var/lib/edge-health/data/x'],
  ] as const) {
    t.equal(of(path, file, unit, installed), expected, `${path} of ${file} for a unit`);
    t.equal(of(path, file, {}, installed), expected, `${path} of ${file} for a command`);
  }
  t.equal(of('data/x', '/etc/edge-health/x.yaml', {}, checkout), '/var/lib/edge-health/data/x');
  t.equal(of('data/x', '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data/x');
  t.equal(of(null, '/home/me/x.yaml', {}, checkout), '/home/me/edge-health/data');
  t.equal(of('data/x', '/home/me/x.yaml', { STATE_DIRECTORY: '/run/me:/b' }, checkout), '/run/me/data/x');
});
