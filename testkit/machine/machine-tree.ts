/**
 * A recorded machine whose load, memory and temperature a test sets while a service measures it (`--proc`, `--sys`). Nothing depends on
 * time: proc/stat is a pipe that returns the next record to each reading, so that the CPU usage between any two readings is exactly the
 * percentage that was set last. The other files are replaced by rename, so that a reader never sees a partial file.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Teardown } from '../folder.ts';
import { type Fixture, materialiseFixture } from './machines.ts';

/** Size of the buffer in src/collect/cpu.ts: one reading consumes one record of this size. */
const RECORD_BYTES = 256;
/** Ticks between two records. Any percentage with two decimals is a whole number of ticks. */
const TICKS = 10_000;
/**
 * Ticks between the last record before a change and the first one after it: large enough to make the unread records of the previous
 * percentage negligible.
 */
const TICKS_AT_CHANGE = 1e12;
/** A pipe holds 256 records, enough for minutes at 1 Hz while this process is stalled. */
const REFILL_MS = 50;

/** Creates the files of a recorded machine and changes them; they are removed at the end of the test. */
export class MachineTree {
  readonly procRoot: string;
  readonly sysRoot: string;
  readonly #fixture: Fixture;
  readonly #pipes: number[] = [];
  #cpuPercent: number;
  #busyTicks = 0;
  #idleTicks = 0;

  /** `machine` is a folder of testkit/fixtures. The load is the recorded one until it is set. */
  constructor(t: Teardown, machine: string) {
    this.#fixture = materialiseFixture(t, machine);
    this.procRoot = this.#fixture.procRoot;
    this.sysRoot = this.#fixture.sysRoot;
    this.#cpuPercent = this.#fixture.expect.cpuPercent;
    const refill = setInterval(() => this.#fill(), REFILL_MS).unref();
    t.teardown(() => {
      clearInterval(refill);
      for (const pipe of this.#pipes.splice(0)) closeSync(pipe);
    });
    this.setCpuPercent(this.#cpuPercent);
  }

  /** Arguments of `edge-health run`. */
  get arguments(): readonly string[] {
    return ['--proc', this.procRoot, '--sys', this.sysRoot];
  }

  /** Takes effect at the next reading; has a resolution of two decimals. */
  setCpuPercent(percent: number): void {
    checkPercent(percent);
    this.#cpuPercent = percent;
    this.#advance(TICKS_AT_CHANGE);
    const path = join(this.procRoot, 'stat');
    const nextPath = `${path}.next`;
    execFileSync('mkfifo', [nextPath]);
    // O_RDWR: opening a pipe only for writing blocks until there is a reader. The previous pipe stays open because the service may be
    // reading it.
    this.#pipes.push(openSync(nextPath, constants.O_RDWR | constants.O_NONBLOCK));
    this.#fill();
    renameSync(nextPath, path);
  }

  /** Sets MemAvailable in proc/meminfo, rounded to kilobytes. */
  setMemoryPercent(percent: number): void {
    checkPercent(percent);
    const path = join(this.procRoot, 'meminfo');
    const text = readFileSync(path, 'utf8');
    const total = Number(/^MemTotal:\s*(\d+) kB/m.exec(text)?.[1]);
    const available = Math.round(total * (1 - percent / 100));
    replace(path, text.replace(/^(MemAvailable:\s*)\d+/m, `$1${available}`));
  }

  /** Sets the sensor that the service selects on this machine, rounded to millidegrees. */
  setTemperature(celsius: number): void {
    replace(this.#sensorPath(), `${Math.round(celsius * 1000)}\n`);
  }

  /** Removes the file of the sensor, like unloading its driver; setTemperature creates it again. */
  removeSensor(): void {
    rmSync(this.#sensorPath());
  }

  #sensorPath(): string {
    const { name, expect } = this.#fixture;
    if (expect.source === null) throw new Error(`${name} has no temperature sensor`);
    const hwmon = /^(hwmon\d+)\/(temp\d+)$/.exec(expect.source);
    const path = hwmon ? `class/hwmon/${hwmon[1]}/${hwmon[2]}_input` : `class/thermal/${expect.source}/temp`;
    return join(this.sysRoot, path);
  }

  #advance(ticks: number): void {
    const busy = Math.round((ticks * this.#cpuPercent) / 100);
    this.#busyTicks += busy;
    this.#idleTicks += ticks - busy;
  }

  /** Writes records to the newest pipe until it is full. */
  #fill(): void {
    const pipe = this.#pipes.at(-1);
    if (pipe === undefined) return;
    for (;;) {
      const line = `cpu  ${this.#busyTicks} 0 0 ${this.#idleTicks} 0 0 0 0 0 0\n`;
      try {
        writeSync(pipe, line.padEnd(RECORD_BYTES, '\n'));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return;
        throw error;
      }
      this.#advance(TICKS);
    }
  }
}

function checkPercent(percent: number): void {
  if (!(percent >= 0 && percent <= 100)) throw new RangeError(`${percent} is not a percentage`);
}

function replace(path: string, content: string): void {
  writeFileSync(`${path}.next`, content);
  renameSync(`${path}.next`, path);
}
