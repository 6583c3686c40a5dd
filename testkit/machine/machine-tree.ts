/**
 * A recorded machine whose load, memory and temperature a test sets while a service measures it (`--proc`, `--sys`). Nothing depends on
 * time: proc/stat is a pipe that gives the next record to each reading, so that any two readings, however far apart, are busy by exactly
 * the percentage that was set last. The other files are replaced by rename and are whole at any moment.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Teardown } from '../folder.ts';
import { type Fixture, materialiseFixture } from './machines.ts';

/** What src/collect/cpu.ts reads at once; a record of this size is taken out of the pipe by one reading. */
const RECORD_BYTES = 256;
/** Between two records. Any percentage with two decimals is a whole number of ticks. */
const TICKS = 10_000;
/**
 * Between the last record before a change and the first one after it: so many that the unread records of the former percentage do not
 * count beside them.
 */
const TICKS_AT_CHANGE = 1e12;
/** A pipe holds 256 records, so that the service finds one even where this process stands still for minutes at 1 Hz. */
const REFILL_MS = 50;

/** Makes files of a recorded machine and changes them; everything is removed at the end of the test. */
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

  /** Of `edge-health run`. */
  get arguments(): readonly string[] {
    return ['--proc', this.procRoot, '--sys', this.sysRoot];
  }

  /** From the next reading on, to two decimals. */
  setCpuPercent(percent: number): void {
    checkPercent(percent);
    this.#cpuPercent = percent;
    this.#advance(TICKS_AT_CHANGE);
    const path = join(this.procRoot, 'stat');
    const fresh = `${path}.next`;
    execFileSync('mkfifo', [fresh]);
    // Open for both: opening a pipe for writing alone would wait for a reader. The former pipe stays open, since the service may be
    // reading it at this moment.
    this.#pipes.push(openSync(fresh, constants.O_RDWR | constants.O_NONBLOCK));
    this.#fill();
    renameSync(fresh, path);
  }

  /** MemAvailable of proc/meminfo, to the nearest kilobyte. */
  setMemoryPercent(percent: number): void {
    checkPercent(percent);
    const path = join(this.procRoot, 'meminfo');
    const text = readFileSync(path, 'utf8');
    const total = Number(/^MemTotal:\s*(\d+) kB/m.exec(text)?.[1]);
    const available = Math.round(total * (1 - percent / 100));
    replace(path, text.replace(/^(MemAvailable:\s*)\d+/m, `$1${available}`));
  }

  /** The sensor that the service chooses on this machine, in thousandths of a degree. */
  setTemperature(celsius: number): void {
    replace(this.#sensorPath(), `${Math.round(celsius * 1000)}\n`);
  }

  /** The sensor's file is gone, as after its driver was unloaded; setTemperature brings it back. */
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
  if (!(percent >= 0 && percent <= 100)) throw new RangeError(`${percent} is no percentage`);
}

function replace(path: string, content: string): void {
  writeFileSync(`${path}.next`, content);
  renameSync(`${path}.next`, path);
}
