/**
 * A steady load of alerts: a value that rises above its threshold and falls below it every few seconds. The caller provides the value, such
 * as the usage of a small file system or the temperature of a recorded sensor. Used by the fault tests.
 */
import { writeFileSync } from 'node:fs';
import type { Container } from '../container/container.ts';
import type { Turn } from './losses.ts';

/** Long enough for a restart of the service between two turns. */
const TURN_SECONDS = 3;

export class AlertLoad {
  /** Every change of the value. */
  readonly turns: Turn[] = [];
  readonly #set: (isHigh: boolean) => void;
  readonly #turnMs: number;
  #timer: NodeJS.Timeout | null = null;

  /** `set` changes the value; it throws if that is not possible, for example while the machine is off. */
  constructor(set: (isHigh: boolean) => void, turnSeconds = TURN_SECONDS) {
    this.#set = set;
    this.#turnMs = turnSeconds * 1000;
  }

  get isHigh(): boolean {
    return this.turns.at(-1)?.isHigh ?? false;
  }

  start(): void {
    this.stop();
    this.turn();
    // setTimeout instead of setInterval keeps the minimum time between two turns when a timer fires late.
    const next = (): void => {
      this.#timer = setTimeout(() => {
        this.turn();
        next();
      }, this.#turnMs);
    };
    next();
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Toggles the value, or sets the given level. */
  turn(isHigh = !this.isHigh): void {
    const atMs = Date.now();
    try {
      this.#set(isHigh);
      this.turns.push({ atMs, isHigh });
    } catch {
      // The value was not changed.
    }
  }
}

/** Mount point of the file system that `diskAlertLoad` fills: a small tmpfs that no other program uses. */
export const LOAD_FOLDER = '/srv/alert-load';
/** The metric of its alerts. */
export const LOAD_METRIC = 'disk_percent';
const MEGABYTE = 1024 * 1024;
const SHARE = { high: 0.7, low: 0.1 };

/** Configuration of a container for `diskAlertLoad`: only this load raises alerts, without delay. */
export const LOAD_CONFIG: Readonly<Record<string, unknown>> = {
  thresholds: {
    cpu: { warning: 99.8, critical: 100 },
    memory: { warning: 99.8, critical: 99.9 },
    disk: { warning: 50, critical: 90 },
  },
  alerts: { raise_after_seconds: 0, clear_after_seconds: 0 },
  disk: { paths: [LOAD_FOLDER] },
};
export const LOAD_FILES: Readonly<Record<string, string>> = { '/etc/fstab': `tmpfs ${LOAD_FOLDER} tmpfs size=1m,mode=755 0 0\n` };

/** Fills and empties a small file system of a container. */
export function diskAlertLoad(machine: Container): AlertLoad {
  return new AlertLoad((isHigh) => {
    if (machine.pid1 === null) throw new Error('the machine is off');
    writeFileSync(`/proc/${machine.pid1}/root${LOAD_FOLDER}/file`, Buffer.alloc((isHigh ? SHARE.high : SHARE.low) * MEGABYTE));
  });
}
