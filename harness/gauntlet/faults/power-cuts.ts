import { setTimeout as pause } from 'node:timers/promises';
import type { Alert } from '../../../src/core/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { dropIn, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { EventReader } from '../../../testkit/events.ts';
import { changeKey, type Disk, readDisk } from './power-disk.ts';

/** What the machine is in the middle of when its power goes. */
export const MOMENTS = ['birth', 'start', 'alerts', 'restart', 'kill', 'snapshot', 'minute'] as const;
export type Moment = (typeof MOMENTS)[number];

/** What became of one cut. */
export interface Cut {
  readonly moment: Moment;
  /** From the power on to the cut. */
  readonly upSeconds: number;
  /** Alert changes that were told since the power came on. */
  readonly told: number;
  /** Those of all changes ever told that the disk does not hold. */
  readonly missing: readonly string[];
  /** From the newest sample on the disk to the last one told; null: none was told since the power came on. */
  readonly lostSeconds: number | null;
  /** Samples that were told, and are not on the disk. */
  readonly lostSamples: number;
  /** From the power on again to the first new sample served; null: it was cut before that. */
  readonly backSeconds: number | null;
  /** Whatever else was not as it should be. */
  readonly problems: readonly string[];
}

const SENSOR = '/srv/gauntlet/sys/class/thermal/thermal_zone0';
const HEAT_SECONDS = 0.1;
/** A sensor that is hot and cold in turn: an alert is raised and resolved with each. */
const FILES: Readonly<Record<string, string>> = {
  [`${SENSOR}/type`]: 'x86_pkg_temp\n',
  [`${SENSOR}/temp`]: '40000\n',
  [dropIn('gauntlet')]:
    `[Service]\nExecStart=\nExecStart=/usr/lib/edge-health/bin/with-ros2 /usr/bin/edge-health run --sys /srv/gauntlet/sys\n`,
  '/usr/local/bin/heat': `while :; do for t in 95000 75000 40000; do echo $t > ${SENSOR}/temp; sleep ${HEAT_SECONDS}; done; done\n`,
  '/etc/systemd/system/heat.service': `[Unit]
DefaultDependencies=no
[Service]
ExecStart=/bin/sh /usr/local/bin/heat
[Install]
WantedBy=sysinit.target
`,
};
const HERTZ = 25;
const CONFIGURATION = {
  publish_frequency: HERTZ,
  thresholds: { temperature: { warning: 70, critical: 90 } },
  alerts: { hysteresis_percent: 0, raise_after_seconds: 0, clear_after_seconds: 0 },
};
/** How such a machine is booted: with a disk of its own. */
export const CUT_BOOT = { config: CONFIGURATION, files: FILES, disk: { path: STATE, megabytes: 32 } } as const;
/** The minute after which samples are written. */
const SEGMENT_SECONDS = 60;
const BACK_SECONDS = 30;
/** A boot takes about as long. */
const START_SECONDS = 2;
/** How long after what is asked for the power may go. */
const AFTER_MS = { alerts: 300, restart: 2500, kill: 2500, snapshot: 200 } as const;

/** What was told since the power came on. */
interface Told {
  readonly changes: ReadonlySet<string>;
  readonly samplesMs: readonly number[];
}

/** A machine with a disk of its own whose power is cut again and again, and what it told between. It is off between two cuts. */
export class CutMachine {
  readonly machine: Container;
  readonly #random: () => number;
  readonly #changes = new Set<string>();
  #rows: ReadonlySet<string> = new Set();
  #poweredMs = 0;

  private constructor(machine: Container, random: () => number) {
    this.machine = machine;
    this.#random = random;
  }

  /** Takes a machine that was booted with `CUT_BOOT`; its power is cut for the first time, and what it has told so far does not count. */
  static async take(machine: Container, random: () => number): Promise<CutMachine> {
    await machine.sh('systemctl enable --quiet heat.service; sync');
    await machine.cutPower();
    const cuts = new CutMachine(machine, random);
    await cuts.#wipe();
    return cuts;
  }

  /** Switches it on, lets it run until the moment, cuts the power and looks at the disk. */
  async cut(moment: Moment): Promise<Cut> {
    const problems: string[] = [];
    if (moment === 'birth') await this.#wipe();
    const booting = await this.#powerOn();
    let backSeconds: number | null = null;
    let told: Told = { changes: new Set(), samplesMs: [] };
    if (moment === 'start' || moment === 'birth') {
      await pause(this.#random() * START_SECONDS * 1000);
    } else {
      backSeconds = await this.#serves();
      await booting.booted;
      problems.push(...(await this.#stateProblems()));
      told = await this.#listenUntil(moment);
      if (told.samplesMs.length === 0) problems.push('no sample was heard');
    }
    const upSeconds = (Date.now() - this.#poweredMs) / 1000;
    await this.machine.cutPower();
    await booting.booted;
    const disk = await readDisk(this.machine);
    problems.push(...this.#judge(disk));
    for (const key of told.changes) this.#changes.add(key);
    const missing = [...this.#changes].filter((key) => !disk.changes.has(key));
    for (const key of missing) this.#changes.delete(key);
    const unsaved = told.samplesMs.filter((ms) => ms > (disk.newestMs ?? 0));
    const lostSeconds =
      told.samplesMs.length === 0 ? null : unsaved.length === 0 ? 0 : ((unsaved.at(-1) ?? 0) - (unsaved[0] ?? 0)) / 1000 + 1 / HERTZ;
    return { moment, upSeconds, told: told.changes.size, missing, lostSeconds, lostSamples: unsaved.length, backSeconds, problems };
  }

  /** Switches it on for good: seconds until it serves again, and what is wrong. */
  async finish(): Promise<{ backSeconds: number; problems: readonly string[] }> {
    const booting = await this.#powerOn();
    const backSeconds = await this.#serves();
    await booting.booted;
    return { backSeconds, problems: await this.#stateProblems() };
  }

  async #wipe(): Promise<void> {
    await this.machine.sh(`find ${STATE} -mindepth 1 -delete; sync`);
    this.#changes.clear();
    this.#rows = new Set();
  }

  /** Resolves once it starts, with a promise for the end of its boot, which the cut may be. */
  async #powerOn(): Promise<{ readonly booted: Promise<unknown> }> {
    const { machine } = this;
    const { starts } = machine;
    this.#poweredMs = Date.now();
    const booted = machine.bootAgain().catch(() => undefined);
    await machine.until(() => machine.starts > starts, 20);
    return { booted };
  }

  /** Seconds from the power on to a sample of its own that is served. */
  async #serves(): Promise<number> {
    const url = await this.machine.url();
    await this.machine.until(
      async () => {
        try {
          const health = (await (await fetch(`${url}/health`, { signal: AbortSignal.timeout(1000) })).json()) as HealthStatus;
          return Date.parse(health.timestamp) > this.#poweredMs;
        } catch {
          return false; // Nobody answers yet.
        }
      },
      BACK_SECONDS,
      () => 'it does not come back by itself',
    );
    return (Date.now() - this.#poweredMs) / 1000;
  }

  /** What of its own state it should not say. */
  async #stateProblems(): Promise<string[]> {
    const { storage } = await this.machine.untilJson<StatusDocument>('/status', (status) => status.storage.state !== 'starting');
    const { data } = await this.machine.json<{ data: Alert[] }>('/alerts?resolved=false');
    const open = data.map(({ metric }) => metric);
    return [
      ...(storage.state === 'ok' ? [] : [`storage ${storage.state}: ${storage.error}`]),
      ...storage.set_aside.map((name) => `set aside: ${name}`),
      ...(new Set(open).size < open.length ? [`open more than once: ${open.join(', ')}`] : []),
    ];
  }

  /** Notes what is told until the moment has come. */
  async #listenUntil(moment: Exclude<Moment, 'start' | 'birth'>): Promise<Told> {
    const { machine } = this;
    const url = await machine.url();
    const events = await EventReader.open(url);
    const listed: Alert[] = [];
    const list = async (): Promise<void> => {
      const answer = await fetch(`${url}/alerts?changes=true&limit=200`, { signal: AbortSignal.timeout(5000) });
      listed.push(...((await answer.json()) as { data: Alert[] }).data);
    };
    if (moment === 'minute') {
      const { started } = await machine.json<StatusDocument>('/status');
      const atMs = Date.parse(started) + SEGMENT_SECONDS * 1000 + this.#random() * 1500 - 300;
      await pause(Math.max(0, atMs - Date.now() - 500));
      await list();
      await pause(Math.max(0, atMs - Date.now()));
    } else {
      await pause(300 + this.#random() * 1200);
      await list();
      if (moment === 'restart') void machine.run(['systemctl', '--no-block', 'restart', UNIT]);
      if (moment === 'kill') void machine.run(['systemctl', 'kill', '--signal=KILL', UNIT]);
      if (moment === 'snapshot') {
        void fetch(`${url}/snapshot`)
          .then((answer) => answer.arrayBuffer())
          .catch(() => null);
      }
      await pause(this.#random() * AFTER_MS[moment]);
    }
    // What has come by now was told; what is on its way was not.
    const changes = new Set([...events.alerts(), ...listed].map(changeKey));
    const samplesMs = events.health().map(({ timestamp }) => Date.parse(timestamp));
    events.close();
    return { changes, samplesMs };
  }

  #judge({ damage, contradictions, rows, setAside }: Disk): string[] {
    const gone = [...this.#rows].filter((row) => !rows.has(row));
    this.#rows = rows;
    return [
      ...damage.map((text) => `integrity_check: ${text}`),
      ...setAside.map((name) => `set aside: ${name}`),
      ...(contradictions.length > 0 ? [`episodes that contradict their changes: ${contradictions.join(', ')}`] : []),
      ...(gone.length > 0 ? [`${gone.length} rows of samples are gone that were there`] : []),
    ];
  }
}
