import { join } from 'node:path';
import type { Cleanup } from '../../testkit/cleanup.ts';
import type { Host } from '../../testkit/network/network.ts';
import { EventProcess, type ToldEvent } from '../../testkit/service/event-process.ts';
import { ROOT } from '../../testkit/service/service.ts';

/** Simulated robots of one host. */
export interface FleetOptions {
  readonly domainId: number;
  /** Number of the first one; they are called robot_<number>/health_monitor. */
  readonly first: number;
  readonly count: number;
  /** Each has topics of its own (/robot_007/health_status); otherwise all publish on the same two. */
  readonly isNamespaced: boolean;
  /** They read what others publish, as edge-health does unless told otherwise. */
  readonly gather: boolean;
  /** Addresses of all hosts with simulated robots. */
  readonly fellows: readonly string[];
}

export type RobotCommand =
  | { readonly do: 'join' }
  | { readonly do: 'publish' }
  /** The first so many leave without a word. */
  | { readonly do: 'vanish'; readonly count: number }
  | { readonly do: 'sent'; readonly fromMs: number; readonly toMs: number };

export interface RobotEvents {
  ready: object;
  joined: object;
  vanished: { readonly names: readonly string[] };
  alerted: { readonly alert_id: string; readonly resolved: boolean };
  /** Statuses of each robot with a time stamp in the range asked for. */
  sent: { readonly robots: readonly { readonly name: string; readonly count: number }[] };
}

const PATIENCE_SECONDS = 60;

/** The process with the simulated robots of one host. */
export class RobotHost extends EventProcess<RobotEvents> {
  /** Resolves when it waits for commands. */
  static async start(cleanup: Cleanup, host: Host, options: FleetOptions): Promise<RobotHost> {
    const program = join(ROOT, 'bench/support/fleet-robots-program.ts');
    const child = host.spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const robots = new RobotHost(cleanup.own(child), `robots from ${options.first}`, PATIENCE_SECONDS);
    child.stdin?.on('error', () => {});
    await robots.waitFor('ready');
    return robots;
  }

  tell(command: RobotCommand): void {
    this.process.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  /** Gives a command and waits for what it tells in return. */
  async ask<Kind extends keyof RobotEvents>(command: RobotCommand, kind: Kind): Promise<ToldEvent<RobotEvents, Kind>> {
    const before = this.all(kind).length;
    this.tell(command);
    return (await this.waitForCount(kind, before + 1))[before] as ToldEvent<RobotEvents, Kind>;
  }
}
