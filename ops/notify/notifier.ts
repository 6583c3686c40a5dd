import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import type { JobRun, Notifications, NotifierOptions } from './notifications.ts';

export type { JobRun, NotifierOptions, NotifierState } from './notifications.ts';

/** Tells people about alerts and jobs. Nothing of it throws. One at a time may run on a data folder. */
export interface Notifier {
  start(): void;
  /** Every run that ended counts, also a good one: it is how a recovery is seen. */
  jobEnded(name: string, run: JobRun): void;
  /** Another configuration holds from now on, and with it maybe another way to the service. */
  reload(config: Config, rest?: RestClient): void;
  /** What is under way may come to its end for a few seconds. */
  stop(): Promise<void>;
}

/** Whether a configuration names any channel. */
export function isConfigured({ ops: { notify } }: Config): boolean {
  return notify.webhook.url !== null || notify.webhook.url_file !== null || notify.command !== null || notify.email.host !== null;
}

/** Where no channel is configured nothing is loaded, opened nor kept. */
export function createNotifier(options: NotifierOptions): Notifier {
  const { log } = options;
  let running: Notifications | null = null;
  let isStopped = true;
  /** Steps are taken one after another. */
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
