import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Alert } from '../../src/core/alert.ts';
import { endProcess } from '../../testkit/cleanup.ts';
import { build, buildUnavailable } from '../../testkit/dds/native.ts';
import type { Way } from './way.ts';

const HEALTH = '"topic":"/health_status"';
const ALERTS = '"topic":"/alerts"';
/** As much as comes while the machine is busy with other things; what it keeps is nothing that the service promises. */
const DEPTH = '1000';

/** A subscriber on Cyclone DDS: an implementation of DDS that is not ours. */
export class IndependentPeer {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Why there can be none; false: there can. */
  static unavailable(): string | false {
    return buildUnavailable('peers');
  }

  /** `network`: options of the peer that say where it is. */
  static async start(network: readonly string[], way: Way): Promise<IndependentPeer> {
    const program = join(await build('peers'), 'peer-cyclone');
    const argv = ['subscribe', '--topic', '/health_status', '--topic', '/alerts', '--depth', DEPTH, ...network];
    const child = spawn(program, argv, { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) take(line, way);
    });
    await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
    return new IndependentPeer(child);
  }

  stop(): Promise<void> {
    return endProcess(this.#child);
  }
}

/** Most lines are statuses, of which nothing but the time stamp matters. */
function take(line: string, way: Way): void {
  if (!line.includes('"event":"sample"')) return;
  if (line.includes(HEALTH)) {
    const stamp = /"timestamp":"([^"]+)"/.exec(line)?.[1];
    if (stamp !== undefined) way.onStatus(stamp);
  } else if (line.includes(ALERTS)) way.onAlert((JSON.parse(line) as { data: Alert }).data);
}
