import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { Cleanup } from '../../testkit/cleanup.ts';
import { build } from '../../testkit/dds/native.ts';

const HEALTH = '"topic":"/health_status"';
const ALERTS = '"topic":"/alerts"';
/** Queue of the subscriber, in samples. It absorbs delays on a busy machine, which the soak does not measure. */
const DEPTH = '1000';

/** A subscriber based on Cyclone DDS, an implementation of DDS independent of edge-health's. */
export class IndependentPeer {
  /** Milliseconds since the epoch, in order of arrival. */
  readonly timestamps: number[] = [];
  readonly alerts: Alert[] = [];

  private constructor(child: ChildProcess) {
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    lines.on('line', (line) => {
      if (!line.includes('"event":"sample"')) return;
      // Only the time stamp of a status is used.
      if (line.includes(HEALTH)) this.timestamps.push(Date.parse(/"timestamp":"([^"]+)"/.exec(line)?.[1] ?? ''));
      else if (line.includes(ALERTS)) this.alerts.push((JSON.parse(line) as { data: Alert }).data);
    });
  }

  /** `network`: options of the program, see SoakNetwork. */
  static async start(network: readonly string[], cleanup: Cleanup): Promise<IndependentPeer> {
    const program = join(await build('peers'), 'peer-cyclone');
    const argv = ['subscribe', '--topic', '/health_status', '--topic', '/alerts', '--depth', DEPTH, ...network];
    const child = cleanup.own(spawn(program, argv, { stdio: ['pipe', 'pipe', 'ignore'], detached: true }));
    await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
    return new IndependentPeer(child);
  }
}
