import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dropIn } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import type { Arena } from '../arena.ts';
import { SHORE } from '../tide.ts';

const ROOT = '/srv/sensors';
const SYSFS = `${ROOT}/sysfs`;
const INTERFACE = 'sensor0';
/** In the place of millidegrees: the MTU of an interface, a file of sysfs that comes and goes with it as a driver's does. */
const MILLIDEGREES = 45_000;
const FEED_MS = 40;

/** Boots a machine whose sensors the test has in its hands: procfs and sysfs are read below /srv/sensors. */
export const SENSOR_FILES: Readonly<Record<string, string>> = {
  [dropIn('sensors')]:
    `[Service]\nExecStart=\nExecStart=/usr/lib/edge-health/bin/with-ros2 /usr/bin/edge-health run --proc ${ROOT}/proc --sys ${ROOT}/sys\n`,
  [`${ROOT}/sys/class/thermal/thermal_zone0/type`]: 'cpu-thermal\n',
  [`${ROOT}/proc/none`]: '',
};

/**
 * The sensors of a machine. Temperature is a file of a real sysfs; counters of processor and memory are this machine's, fed in; the disk is
 * the tide's.
 */
export class Sensors {
  readonly #machine: Container;
  #feed: NodeJS.Timeout | null = null;

  constructor(arena: Arena) {
    this.#machine = arena.machine;
    arena.afterwards(() => this.stop());
  }

  async start(): Promise<void> {
    const zone = `${ROOT}/sys/class/thermal/thermal_zone0`;
    // The container's own /sys shows the interfaces of the machine below it.
    await this.#machine.sh(`mkdir -p ${SYSFS}; mountpoint -q ${SYSFS} || mount -t sysfs sysfs ${SYSFS}
      ln -sfn ${SYSFS}/class/net/${INTERFACE}/mtu ${zone}/temp; ln -sfn /proc/sys ${ROOT}/proc/sys; ln -sfn /proc/1 ${ROOT}/proc/1`);
    this.temperature(true);
    this.counters(true);
  }

  stop(): void {
    if (this.#feed) clearInterval(this.#feed);
    this.#feed = null;
  }

  /** As a driver that is loaded or unloaded: who has the file open then reads ENODEV. */
  temperature(isThere: boolean): void {
    const { host } = this.#machine;
    if (!isThere) {
      host.ip('link', 'del', INTERFACE);
      return;
    }
    // With its value from the first moment on.
    host.ip('link', 'add', INTERFACE, 'mtu', String(MILLIDEGREES), 'type', 'bridge');
  }

  /** What /proc tells of processor and memory; gone: empty files, as of a procfs that is not mounted rightly. */
  counters(areThere: boolean): void {
    this.stop();
    if (areThere) this.#feed = setInterval(() => this.#feedNow(), FEED_MS);
    for (const name of ['stat', 'meminfo']) this.#put(name, areThere ? readFileSync(`/proc/${name}`) : Buffer.alloc(0));
  }

  /** The file system that is measured: unmounted, and its folder gone. */
  async disk(isThere: boolean): Promise<void> {
    await this.#machine.sh(isThere ? `mkdir -p ${SHORE}; mount ${SHORE}` : `umount -l ${SHORE}; rmdir ${SHORE}`);
  }

  #feedNow(): void {
    for (const name of ['stat', 'meminfo']) this.#put(name, readFileSync(`/proc/${name}`));
  }

  #put(name: string, content: Buffer): void {
    const pid = this.#machine.pid1;
    if (pid === null) return;
    const file = `/proc/${pid}/root${ROOT}/proc/${name}`;
    writeFileSync(`${file}.new`, content);
    renameSync(`${file}.new`, file);
  }
}
