import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { EventProcess, type EventRecord } from '../../testkit/service/event-process.ts';
import { ROOT } from '../../testkit/service/service.ts';

/** Options for the simulated robots of one host. */
export interface FleetOptions {
  readonly domainId: number;
  /** Number of the first robot; node names are robot_<number>/health_monitor. */
  readonly first: number;
  readonly count: number;
  /** Whether each robot has its own topics (/robot_007/health_status); otherwise all publish on the same two. */
  readonly isNamespaced: boolean;
  /** Whether they receive the statuses and alerts of others, which is edge-health's default. */
  readonly observe: boolean;
  /** Addresses of all hosts with simulated robots. */
  readonly robotAddresses: readonly string[];
}

export type RobotCommand =
  | { readonly do: 'join' }
  | { readonly do: 'publish' }
  /** Makes the first `count` robots vanish without leaving the graph. */
  | { readonly do: 'vanish'; readonly count: number }
  | { readonly do: 'sent'; readonly fromMs: number; readonly toMs: number };

export interface RobotEvents {
  ready: object;
  joined: object;
  vanished: { readonly names: readonly string[] };
  alerted: { readonly alert_id: string; readonly resolved: boolean };
  /** Statuses of each robot with a time stamp in the requested range. */
  sent: { readonly robots: readonly { readonly name: string; readonly count: number }[] };
}

const TIMEOUT_SECONDS = 60;

/** The process that runs the simulated robots of one host. */
export class RobotHost extends EventProcess<RobotEvents> {
  /** Resolves when the process accepts commands. */
  static async start(cleanup: Cleanup, host: Host, options: FleetOptions): Promise<RobotHost> {
    const program = join(ROOT, 'bench/fleet/robots-program.ts');
    const child = host.spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const robots = new RobotHost(cleanup.own(child), `robots from ${options.first}`, TIMEOUT_SECONDS);
    child.stdin?.on('error', () => {});
    await robots.waitFor('ready');
    return robots;
  }

  send(command: RobotCommand): void {
    this.process.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  /** Sends a command and waits for the event that responds to it. */
  async ask<Kind extends keyof RobotEvents>(command: RobotCommand, kind: Kind): Promise<EventRecord<RobotEvents, Kind>> {
    const before = this.all(kind).length;
    this.send(command);
    return (await this.waitForCount(kind, before + 1))[before] as EventRecord<RobotEvents, Kind>;
  }
}
