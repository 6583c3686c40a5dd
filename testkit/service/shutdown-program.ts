/** A program that a test kills during a safe shutdown. Argument: the folder of a scene (safe-shutdown.ts). */

import { systemClocks } from '../../src/core/platform/clocks.ts';
import { machineRunners } from '../../src/shutdown/callers.ts';
import { SafeShutdown } from '../../src/shutdown/safe-shutdown.ts';
import { Store } from '../../src/store/store.ts';
import { dryRunOnly, TIMEOUT_SECONDS } from './safe-shutdown.ts';

const [, , folder = ''] = process.argv;
const log = (): void => undefined;
const store = new Store({
  dataPath: `${folder}/data`,
  maxBytes: 64e6,
  node: 'health_monitor',
  hertz: 1,
  worker: new URL('../../src/store/thread/worker.ts', import.meta.url),
  environment: { RUNTIME_DIRECTORY: `${folder}/run` },
  log,
  monotonicSeconds: () => performance.now() / 1000,
  onLateOpen: log,
});
await store.start();
const shutdown = new SafeShutdown({
  settings: {
    enabled: true,
    action: 'dry-run',
    allow_from: [],
    allow_groups: ['edge-health', 'sudo'],
    allow_users: [],
    trust_network: false,
    max_requests_per_minute: 10,
    hooksFolder: `${folder}/shutdown.d`,
    hooksRequired: true,
    stop_units: [],
  },
  clocks: systemClocks(),
  log,
  records: store,
  flushStore: () => store.flush(),
  runners: machineRunners(process.env, log),
  power: dryRunOnly,
  findUsers: async () => null,
  bootId: 'this boot',
  publish: log,
});
const reply = await shutdown.handler(
  { reason: 'EMERGENCY', requested_by: 'killed', timeout: TIMEOUT_SECONDS },
  { dds: null, mayBeForAnother: () => false },
);
process.stdout.write(`${JSON.stringify(reply)}\n`);
