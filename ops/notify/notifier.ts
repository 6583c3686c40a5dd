import type { RestClient } from '../../src/client/rest.ts';
import type { Config } from '../../src/config/schema.ts';
import type { JobRun, Notifications, NotifierOptions } from './notifications.ts';

export type { JobRun, NotifierState } from './notifications.ts';

/** Sends notifications of alerts and jobs. Its methods do not throw. Only one instance may run on a data folder. */
export interface Notifier {
  start(): void;
  /** Called for every run, including a successful one, which indicates a recovery. */
  jobEnded(name: string, run: JobRun): void;
  /** Applies a new configuration and, if given, a new client of the service. */
  reload(config: Config, rest?: RestClient): void;
  /** Deliveries in progress may take a few more seconds. */
  stop(): Promise<void>;
}

/** Without a channel, nothing is loaded, opened or written. */
export function createNotifier(options: NotifierOptions): Notifier {
  let { config, rest } = options;
  let isStopped = true;
  let running: Notifications | null = null;
  /** The last scheduled step; steps run one after another. */
  let last: Promise<void> = Promise.resolve();
  const then = (step: () => void | Promise<void>): Promise<void> => {
    last = last.then(step).catch((error: Error) => options.log('error', 'notifications failed', { error: error.stack ?? error.message }));
    return last;
  };
  const restart = async (): Promise<void> => {
    const before = running;
    running = null;
    await before?.stop();
    if (isStopped) return;
    const { command, email, webhook } = config.ops.notify;
    const isConfigured = [webhook.url, webhook.url_file, command, email.host].some((key) => key !== null);
    if (!isConfigured) return options.onState(null);
    const { Notifications } = await import('./notifications.ts');
    running = await Notifications.open({ ...options, config, rest }, before?.file);
    running.start();
  };
  return {
    start: () => {
      isStopped = false;
      void then(restart);
    },
    jobEnded: (name, run) => {
      if (!isStopped) void then(() => running?.jobEnded(name, run));
    },
    reload: (nextConfig, nextRest = rest) => {
      config = nextConfig;
      rest = nextRest;
      void then(restart);
    },
    stop: () => {
      isStopped = true;
      return then(restart);
    },
  };
}
