import { join } from 'node:path';
import type { Alert } from '../../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../../src/core/health-status.ts';
import type { DiscoveryConfig } from '../../../../src/ros/environment.ts';
import type { Host } from '../../../../testkit/network/network.ts';
import { EventProcess, type EventRecord, type ProcessEnd } from '../../../../testkit/service/event-process.ts';
import { ROOT } from '../../../../testkit/service/service.ts';

export interface GraphWatchOptions {
  readonly transport?: 'auto' | 'embedded' | 'rclnodejs';
  readonly ros?: DiscoveryConfig;
  readonly domainId?: number;
  readonly node?: string;
  readonly dataFolder?: string;
}

/** What it sends, by `event`. */
export interface GraphWatchEvents {
  ready: { readonly transport: string; readonly reason: string };
  status: { readonly status: HealthStatus };
  alert: { readonly alert: Alert };
  note: { readonly text: string };
  weight: { readonly rss_bytes: number; readonly cpu_seconds: number; readonly mono_seconds: number };
  failed: { readonly error: string };
}

/** Environment variables of ROS 2 in the shell that runs the tests must not decide where an observer is. */
const NO_ROS = { ROS_DISTRO: '', AMENT_PREFIX_PATH: '', ROS_DOMAIN_ID: '', ROS_LOCALHOST_ONLY: '', ROS_AUTOMATIC_DISCOVERY_RANGE: '' };

/** The harness's subscription (src/client/topic-subscription.ts) in a process of its own in a host. It ends when this process does. */
export class GraphWatch extends EventProcess<GraphWatchEvents> {
  /** Resolves when it is subscribed. */
  static async start(host: Host, options: GraphWatchOptions = {}, environment: NodeJS.ProcessEnv = NO_ROS): Promise<GraphWatch> {
    const watch = GraphWatch.launch(host, options, environment);
    await watch.waitFor('ready', () => true, 60);
    return watch;
  }

  static launch(host: Host, options: GraphWatchOptions = {}, environment: NodeJS.ProcessEnv = NO_ROS): GraphWatch {
    const program = join(ROOT, 'test/system/harness/support/graph-watch-program.ts');
    const child = host.spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', ...environment },
    });
    const watch = new GraphWatch(child, 'graph watch', 30);
    child.stdin?.on('error', () => {});
    return watch;
  }

  get statuses(): HealthStatus[] {
    return this.all('status').map(({ status }) => status);
  }

  /** The resources that the process has used so far. */
  async weigh(): Promise<EventRecord<GraphWatchEvents, 'weight'>> {
    const before = this.all('weight').length;
    this.process.stdin?.write('weigh\n');
    return (await this.waitForCount('weight', before + 1))[before] as EventRecord<GraphWatchEvents, 'weight'>;
  }

  stop(): Promise<ProcessEnd> {
    if (!this.hasEnded) this.process.stdin?.write('stop\n');
    return this.ended;
  }
}
