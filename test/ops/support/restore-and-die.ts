import { NOT_THERE } from '../../../ops/collect/testing/context.ts';
import type { JobContext } from '../../../ops/lib/job.ts';
import { planRestore } from '../../../ops/restore/restore-plan.ts';
import { restore } from '../../../ops/restore_backup.ts';
import { RestClient } from '../../../src/client/rest.ts';
import { loadConfig } from '../../../src/config/load.ts';

// A restore that is killed before the named step (ops/restore/swap-database.ts). Arguments: configuration, data folder, archive, step.

const [, , configFile = '', dataFolder = '', archive = '', step = ''] = process.argv;
const loaded = loadConfig(configFile);
if (!loaded.ok) throw new Error('the configuration');
const context: JobContext = {
  config: loaded.config,
  configFile,
  dataFolder,
  version: '1.2.3',
  rest: new RestClient({ base: NOT_THERE, token: null }),
  environment: process.env,
  trigger: 'manual',
  signal: new AbortController().signal,
  nowMs: Date.now,
  log: () => undefined,
  progress: () => undefined,
};
const plan = await planRestore(context, archive, { configToo: false, overwrite: false });
const services = { running: [], runtimeFolders: [], stop: async () => undefined, start: async () => undefined };
await restore(context, plan, services, (name) => {
  if (name !== step) return;
  process.stdout.write(name);
  process.kill(process.pid, 'SIGKILL');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); // Nothing more happens in this process.
});
process.stdout.write('restored');
