/**
 * Notifications in a separate process, as in that of the scheduler. Arguments: configuration, data folder, address of the service. Polls
 * five times per second.
 */
import { createNotifier } from '../../../ops/notify/notifier.ts';
import { RestClient } from '../../../src/client/rest.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createLogger } from '../../../src/core/platform/log.ts';

const [file, dataFolder, base] = process.argv.slice(2) as [string, string, string];
const loaded = loadConfig(file);
if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
const { log } = createLogger(process.stderr, 'debug');
const rest = new RestClient({ base, token: null });
const notifier = createNotifier({
  config: loaded.config,
  rest,
  dataFolder,
  log,
  nowMs: Date.now,
  environment: process.env,
  onState: () => undefined,
  pollMs: 200,
});
notifier.start();
process.once('SIGTERM', () => void notifier.stop().then(() => process.exit(0)));
setInterval(() => undefined, 1 << 30);
