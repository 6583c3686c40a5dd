import t from 'tap';
import { reloaded } from './reload.ts';
import { type Config, DEFAULT_CONFIG } from './schema.ts';

const changed = (change: (config: Config) => void): Config => {
  const config = structuredClone(DEFAULT_CONFIG);
  change(config);
  return config;
};

const MEMORY = { critical: 95, raise_after_seconds: null, clear_after_seconds: null };

t.test('keys that take effect on reload are applied', async (t) => {
  const next = changed((config) => {
    config.thresholds.cpu = 'off';
    config.rest.token_file = '/etc/edge-health/token';
    config.log.level = 'debug';
  });
  t.same(reloaded(DEFAULT_CONFIG, next), { config: next, restartNeeded: [] });
});

t.test('keys that need a restart keep their running value and are listed', async (t) => {
  const next = changed((config) => {
    config.rest.port = 5055;
    config.rest.host = '127.0.0.1';
    config.disk.paths = ['/', '/data'];
    config.safe_shutdown.enabled = false;
    config.thresholds.memory = { ...MEMORY, warning: 60 };
  });
  const { config, restartNeeded } = reloaded(DEFAULT_CONFIG, next);
  t.same(restartNeeded, [
    'disk.paths: ["/","/data"] needs a restart; still ["/"]',
    'rest.host: 127.0.0.1 needs a restart; still all addresses',
    'rest.port: 5055 needs a restart; still 5000',
    'safe_shutdown.enabled: false needs a restart; still true',
  ]);
  t.same(
    config,
    changed((expected) => {
      expected.thresholds.memory = { ...MEMORY, warning: 60 };
    }),
  );
  t.same(reloaded(next, DEFAULT_CONFIG).restartNeeded[2], 'rest.port: 5000 needs a restart; still 5055');
});
