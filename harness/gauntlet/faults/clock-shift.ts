import { existsSync } from 'node:fs';
import { dropIn, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Arena } from '../arena.ts';

/** Debian's faketime, of this machine; the machine below the container has it. */
const LIBRARIES = ['x86_64', 'aarch64'].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`);
const INSIDE = '/usr/local/lib/libfaketimeMT.so.1';
const OFFSET = '/srv/clock/offset';

/**
 * The clock of a container is its machine's and cannot be set: libfaketime gives the service another CLOCK_REALTIME, whose offset is read
 * from a file at every call. The monotonic clock and the boot time stay the kernel's, as they do when a clock is set.
 */
export const CLOCK_FILES: Readonly<Record<string, string>> = {
  [dropIn('clock')]: `[Service]
Environment=LD_PRELOAD=${INSIDE} FAKETIME_TIMESTAMP_FILE=${OFFSET} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1
`,
  [OFFSET]: '+0\n',
};

export class Clock {
  readonly #arena: Arena;
  /** How far the service's clock is ahead of the true one. */
  offsetSeconds = 0;

  private constructor(arena: Arena) {
    this.#arena = arena;
  }

  /** Starts the service with an empty store, and with a clock that can be set. */
  static async take(arena: Arena): Promise<Clock> {
    const library = LIBRARIES.find((file) => existsSync(file));
    if (library === undefined) throw new Error('needs the Debian package faketime');
    await arena.machine.copyIn(library, INSIDE);
    const clock = new Clock(arena);
    // As new: what was there before, and the time without a service, are no part of what is judged.
    await arena.machine.systemctl('stop', UNIT);
    await arena.machine.sh(`rm -rf ${STATE}/edge-health.db* /run/edge-health/tail`);
    arena.beganMs = Date.now();
    await clock.restart();
    return clock;
  }

  /** By the service's clock. */
  nowMs(): number {
    return Date.now() + this.offsetSeconds * 1000;
  }

  /** Sets it; returns the moment, by the true clock. */
  async set(offsetSeconds: number): Promise<number> {
    const text = `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}`;
    // A file that is replaced is never read half written.
    await this.#arena.machine.sh(`echo '${text}' > ${OFFSET}.new; mv ${OFFSET}.new ${OFFSET}`);
    this.offsetSeconds = offsetSeconds;
    return Date.now();
  }

  async restart(): Promise<void> {
    const { machine } = this.#arena;
    await machine.systemctl('restart', UNIT);
    const near = (timestamp: string): boolean => Math.abs(Date.parse(timestamp) - this.nowMs()) < 3000;
    await machine.untilJson<{ timestamp: string }>('/health', ({ timestamp }) => near(timestamp), 30);
  }
}
