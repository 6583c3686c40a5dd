import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import type { JobRun, Notifications, NotifierOptions } from './notifications.ts';

export type { JobRun, NotifierOptions, NotifierState } from './notifications.ts';

/** Sends notifications of alerts and jobs. Its methods do not throw. Only one may run on a data folder. */
export interface Notifier {
  start(): void;
  /** For every run, also a successful one, which shows a recovery. */
  jobEnded(name: string, run: JobRun): void;
  /** Applies another configuration, and maybe another client of the service. */
  reload(config: Config, rest?: RestClient): void;
  /** Deliveries in progress may take a few more seconds. */
  stop(): Promise<void>;
}

/** Whether a configuration names a channel. */
function isConfigured({ ops: { notify } }: Config): boolean {
  return notify.webhook.url !== null || notify.webhook.url_file !== null || notify.command !== null || notify.email.host !== null;
}

/** Without a channel nothing is loaded, opened or written. */
export function createNotifier(options: NotifierOptions): Notifier {
  const { log } = options;
  let running: Notifications | null = null;
  let isStopped = true;
  /** Steps run one after another. */
  let last: Promise<void> = Promise.resolve();
  const then = (step: () => Promise<void>): Promise<void> => {
    last = last.then(step).catch((error: Error) => log('error', 'notifications failed', { error: error.stack ?? error.message }));
    return last;
  };
  const apply = async (config: Config, rest: RestClient): Promise<void> => {
    if (isStopped) return;
    if (running && isConfigured(config)) return running.reload(config, rest);
    await running?.stop();
    running = null;
    if (!isConfigured(config)) return options.onState(null);
    const { Notifications } = await import('./notifications.ts');
    running = await Notifications.start({ ...options, config, rest });
  };
  let { config, rest } = options;
  return {
    start: () => {
      isStopped = false;
      void then(() => apply(config, rest));
    },
    jobEnded: (name, run) => {
      if (!isStopped) void then(async () => running?.jobEnded(name, run));
    },
    reload: (nextConfig, nextRest = rest) => {
      config = nextConfig;
      rest = nextRest;
      void then(() => apply(nextConfig, nextRest));
    },
    stop: () => {
      isStopped = true;
      return then(async () => {
        await running?.stop();
        running = null;
      });
    },
  };
}
