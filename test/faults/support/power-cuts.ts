/** Cuts the power of a machine again and again, and compares what was received from it with what is on its disk. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../../src/core/health-status.ts';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { dropIn, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { EventReader } from '../../../testkit/service/events.ts';
import { Teardowns } from '../../../testkit/teardown.ts';
import { changeKey } from './bench.ts';

/** What the machine is doing when its power is cut: its first start, a later start, and so on. */
export type Moment = 'birth' | 'start' | 'alerts' | 'restart' | 'kill' | 'snapshot' | 'minute';

/** The result of one cut. */
export interface PowerCut {
  readonly moment: Moment;
  /** From power on to the cut. */
  readonly upSeconds: number;
  /** Changes of alerts received since power on. */
  readonly received: number;
  /** Of all changes ever received, those that are not on the disk. */
  readonly missing: readonly string[];
  /** From the newest sample on the disk to the last one received; null: none was received since power on. */
  readonly lostSeconds: number | null;
  /** Samples that were received and are not on the disk. */
  readonly lostSamples: number;
  /** From power on until the first new sample is served; null: the cut came before that. */
  readonly recoverySeconds: number | null;
  /** Everything else that is wrong. */
  readonly problems: readonly string[];
}

const SENSOR = '/srv/power/sys/class/thermal/thermal_zone0';
const HEAT_SECONDS = 0.1;
/** A sensor that is hot and cold in turn: an alert is raised and resolved each time. */
const FILES: Readonly<Record<string, string>> = {
  [`${SENSOR}/type`]: 'x86_pkg_temp\n',
  [`${SENSOR}/temp`]: '40000\n',
  [dropIn('power')]: `[Service]\nExecStart=\nExecStart=/usr/lib/edge-health/bin/with-ros2 /usr/bin/edge-health run --sys /srv/power/sys\n`,
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
/** How the machine is booted: with a disk of its own. */
export const CUT_BOOT = { config: CONFIGURATION, files: FILES, disk: { path: STATE, megabytes: 32 } } as const;
/** The time after which samples are written. */
const SEGMENT_SECONDS = 60;
/** Only bounds a broken test. */
const LIMIT_SECONDS = 120;
/** A boot takes about this long. */
const START_SECONDS = 2;
/** The longest time between the action and the power cut. */
const AFTER_MS = { alerts: 300, restart: 2500, kill: 2500, snapshot: 200 } as const;

/** What was received since power on. */
interface Received {
  readonly changes: ReadonlySet<string>;
  readonly samplesMs: readonly number[];
}

/** A machine with a disk of its own whose power is cut repeatedly, and what was received from it. It is off between two cuts. */
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

  /** Takes a machine that was booted with `CUT_BOOT` and cuts its power for the first time; what it has published so far does not count. */
  static async take(machine: Container, random: () => number): Promise<CutMachine> {
    await machine.sh('systemctl enable --quiet heat.service; sync');
    await machine.cutPower();
    const cuts = new CutMachine(machine, random);
    await cuts.#wipe();
    return cuts;
  }

  /** Switches it on, lets it run until the moment, cuts the power and reads the disk. */
  async cut(moment: Moment): Promise<PowerCut> {
    const problems: string[] = [];
    if (moment === 'birth') await this.#wipe();
    const booting = await this.#powerOn();
    let recoverySeconds: number | null = null;
    let received: Received = { changes: new Set(), samplesMs: [] };
    if (moment === 'start' || moment === 'birth') {
      await pause(this.#random() * START_SECONDS * 1000);
    } else {
      recoverySeconds = await this.#untilServing();
      await booting.booted;
      problems.push(...(await this.#stateProblems()));
      received = await this.#observeUntil(moment);
      if (received.samplesMs.length === 0) problems.push('no sample was received');
    }
    const upSeconds = (Date.now() - this.#poweredMs) / 1000;
    await this.machine.cutPower();
    await booting.booted;
    const disk = await readDisk(this.machine);
    problems.push(...this.#problemsOf(disk));
    for (const key of received.changes) this.#changes.add(key);
    const missing = [...this.#changes].filter((key) => !disk.changes.has(key));
    for (const key of missing) this.#changes.delete(key);
    const unsaved = received.samplesMs.filter((ms) => ms > (disk.newestMs ?? 0));
    const lostSeconds =
      received.samplesMs.length === 0 ? null : unsaved.length === 0 ? 0 : ((unsaved.at(-1) ?? 0) - (unsaved[0] ?? 0)) / 1000 + 1 / HERTZ;
    return {
      moment,
      upSeconds,
      received: received.changes.size,
      missing,
      lostSeconds,
      lostSamples: unsaved.length,
      recoverySeconds,
      problems,
    };
  }

  /** Switches it on for the last time; returns the seconds until it serves again, and what is wrong. */
  async finish(): Promise<{ recoverySeconds: number; problems: readonly string[] }> {
    const booting = await this.#powerOn();
    const recoverySeconds = await this.#untilServing();
    await booting.booted;
    return { recoverySeconds, problems: await this.#stateProblems() };
  }

  async #wipe(): Promise<void> {
    await this.machine.sh(`find ${STATE} -mindepth 1 -delete; sync`);
    this.#changes.clear();
    this.#rows = new Set();
  }

  /** Resolves once it starts, with a promise for the end of its boot; the cut may come before that. */
  async #powerOn(): Promise<{ readonly booted: Promise<unknown> }> {
    const { machine } = this;
    const { starts } = machine;
    this.#poweredMs = Date.now();
    const booted = machine.bootAgain().catch(() => undefined);
    await machine.until(() => machine.starts > starts, LIMIT_SECONDS);
    return { booted };
  }

  /** Seconds from power on until the first sample since then is served. */
  async #untilServing(): Promise<number> {
    const url = await this.machine.url();
    await this.machine.until(
      async () => {
        try {
          const health = (await (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).json()) as HealthStatus;
          return Date.parse(health.timestamp) > this.#poweredMs;
        } catch {
          return false; // No response yet.
        }
      },
      LIMIT_SECONDS,
      () => 'it does not come back by itself',
    );
    return (Date.now() - this.#poweredMs) / 1000;
  }

  /** The problems in its own report of its state. */
  async #stateProblems(): Promise<string[]> {
    const { storage } = await this.machine.untilJson<StatusDocument>(
      '/status',
      (status) => status.storage.state !== 'starting',
      LIMIT_SECONDS,
    );
    const { data } = await this.machine.json<{ data: Alert[] }>('/alerts?resolved=false');
    const open = data.map(({ metric }) => metric);
    return [
      ...(storage.state === 'ok' ? [] : [`storage ${storage.state}: ${storage.error}`]),
      ...storage.quarantined.map((name) => `quarantined: ${name}`),
      ...(new Set(open).size < open.length ? [`open more than once: ${open.join(', ')}`] : []),
    ];
  }

  /** Collects what is published until the moment has come. */
  async #observeUntil(moment: Exclude<Moment, 'start' | 'birth'>): Promise<Received> {
    const { machine } = this;
    const url = await machine.url();
    const events = await EventReader.open(url);
    await machine.until(() => events.health().length > 0 && events.alerts().length > 0, LIMIT_SECONDS);
    const listed: Alert[] = [];
    const list = async (): Promise<void> => {
      const answer = await fetch(`${url}/alerts?changes=true&limit=200`, { signal: AbortSignal.timeout(30_000) });
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
    // What arrives after this moment does not count.
    const changes = new Set([...events.alerts(), ...listed].map(changeKey));
    const samplesMs = events.health().map(({ timestamp }) => Date.parse(timestamp));
    events.close();
    return { changes, samplesMs };
  }

  #problemsOf({ damage, contradictions, rows, quarantined }: Disk): string[] {
    const gone = [...this.#rows].filter((row) => !rows.has(row));
    this.#rows = rows;
    return [
      ...damage.map((text) => `integrity_check: ${text}`),
      ...quarantined.map((name) => `quarantined: ${name}`),
      ...(contradictions.length > 0 ? [`episodes that contradict their changes: ${contradictions.join(', ')}`] : []),
      ...(gone.length > 0 ? [`${gone.length} rows of samples are gone that were there`] : []),
    ];
  }
}

/** The content of the disk of a machine after a power cut. */
interface Disk {
  /** What SQLite finds wrong; empty: nothing. */
  readonly damage: readonly string[];
  /** Every change of every alert, by `changeKey`. */
  readonly changes: ReadonlySet<string>;
  /** Alerts whose episode does not agree with their last change. */
  readonly contradictions: readonly string[];
  /** Rows of samples, by their identity. */
  readonly rows: ReadonlySet<string>;
  /** The newest sample, ms since the epoch; null: there is none. */
  readonly newestMs: number | null;
  /** Quarantined databases. */
  readonly quarantined: readonly string[];
}

const NAME = 'edge-health.db';

interface ChangeRow {
  readonly alert_id: string;
  readonly changed_ms: number;
  readonly severity: Alert['severity'];
  readonly resolved: number;
}

/** Reads a copy of the disk of a machine that is off. */
async function readDisk(machine: Container): Promise<Disk> {
  const teardowns = new Teardowns();
  try {
    const copy = temporaryFolder(teardowns);
    await machine.copyOut(STATE, copy);
    return inspect(copy);
  } finally {
    await teardowns.run();
  }
}

function inspect(folder: string): Disk {
  const names = readdirSync(folder);
  const quarantined = names.filter((name) => name.includes('.quarantined'));
  const nothing = { changes: new Set<string>(), contradictions: [], rows: new Set<string>(), newestMs: null, quarantined };
  if (!names.includes(NAME)) return { ...nothing, damage: [] };
  const db = new DatabaseSync(join(folder, NAME));
  try {
    const found = db.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[];
    const damage = found.map(({ integrity_check }) => integrity_check).filter((text) => text !== 'ok');
    const tables = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('raw', 'alert_change', 'episode')").get() as {
      n: number;
    };
    if (tables.n < 3) return { ...nothing, damage };
    const changes = db
      .prepare('SELECT alert_id, changed_ms, severity, resolved FROM alert_change ORDER BY segment, sequence')
      .all() as unknown as ChangeRow[];
    const last = new Map(changes.map((row) => [row.alert_id, row]));
    const episodes = db.prepare('SELECT alert_id, changed_ms, severity, resolved FROM episode').all() as unknown as ChangeRow[];
    const differ = (episode: ChangeRow): boolean => {
      const change = last.get(episode.alert_id);
      return change === undefined || change.severity !== episode.severity || change.resolved !== episode.resolved;
    };
    const rows = db.prepare('SELECT node_id, from_ms, segment, to_ms FROM raw').all() as {
      node_id: number;
      from_ms: number;
      segment: number;
      to_ms: number;
    }[];
    const newest = Math.max(...rows.map(({ to_ms }) => to_ms));
    return {
      damage,
      changes: new Set(
        changes.map((row) => changeKey({ ...row, resolved: row.resolved !== 0, timestamp: new Date(row.changed_ms).toISOString() })),
      ),
      contradictions: episodes.filter(differ).map(({ alert_id }) => alert_id),
      rows: new Set(rows.map(({ node_id, from_ms, segment }) => `${node_id} ${from_ms} ${segment}`)),
      newestMs: Number.isFinite(newest) ? newest : null,
      quarantined,
    };
  } catch (error) {
    return { ...nothing, damage: [(error as Error).message] };
  } finally {
    db.close();
  }
}
