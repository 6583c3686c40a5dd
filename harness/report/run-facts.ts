import type { BeginEntry, MinuteEntry, NoteEntry, RecordEntry, ResumeEntry } from '../record/entries.ts';
import type { RunFacts } from './compose.ts';
import { enumeration, moment } from './figures.ts';

/** Distinct notes that a report repeats; all stand in the record. */
const MOST_NOTES = 40;

/** Gathers from a record what a report says of the run besides its evidence. */
export class RunFactsBuilder {
  #begin: BeginEntry | null = null;
  /** The last begin or resume. */
  #watch: BeginEntry | ResumeEntry | null = null;
  readonly #how: string[] = [];
  readonly #notes = new Map<string, { readonly first: number; count: number }>();
  readonly #versions: string[] = [];
  #endedMs: number | null = null;
  #minute: MinuteEntry | null = null;
  #cpuSeconds = 0;
  #cpuOver = 0;
  #resident = 0;

  add(entry: RecordEntry): void {
    if (entry.type === 'begin' || entry.type === 'resume') this.#watching(entry);
    else if (entry.type === 'minute') this.#passed(entry);
    else if (entry.type === 'note') this.#noted(entry);
    else if (entry.type === 'end') this.#endedMs = entry.wall;
    else if (entry.type === 'service') this.#versionSeen(entry.version);
  }

  facts(): RunFacts {
    const { run = '', wall = 0 } = this.#begin ?? {};
    const { target, watcher } = this.#watch ?? {};
    return {
      id: run,
      node_name: target?.node_name ?? 'not known',
      version: this.#versions.at(-1) ?? target?.version ?? null,
      how: this.#how,
      machine: watcher?.machine ? { ...watcher.machine } : null,
      harness: {
        cpu_percent: this.#cpuOver > 0 ? Math.round((this.#cpuSeconds / this.#cpuOver) * 1e5) / 1e3 : null,
        resident_bytes: this.#resident > 0 ? this.#resident : null,
      },
      begun: iso(wall),
      ended: iso(this.#endedMs ?? wall),
      notes: [...this.#upgrades(), ...this.#texts()],
    };
  }

  #watching(entry: BeginEntry | ResumeEntry): void {
    if (entry.type === 'begin') this.#begin = entry;
    const told = how(entry);
    if (this.#watch === null) this.#how.push(...told);
    else {
      const before = new Set(how(this.#watch));
      this.#how.push(...told.filter((line) => !before.has(line)).map((line) => `From ${moment(iso(entry.wall))} on: ${line}`));
    }
    this.#watch = entry;
    this.#minute = null;
    this.#endedMs = entry.wall;
    this.#versionSeen(entry.target.version);
  }

  #versionSeen(version: string): void {
    if (this.#versions.at(-1) !== version) this.#versions.push(version);
  }

  #passed(entry: MinuteEntry): void {
    const { cpu_seconds, resident_bytes } = entry.watcher;
    const before = this.#minute;
    // Of the same process of the watcher; what it used before its first minute, its start, counts from there on.
    if (before === null || before.watcher.cpu_seconds <= cpu_seconds) {
      this.#cpuSeconds += cpu_seconds - (before?.watcher.cpu_seconds ?? 0);
      this.#cpuOver += entry.mono - (before?.mono ?? this.#watch?.mono ?? entry.mono);
    }
    this.#resident = Math.max(this.#resident, resident_bytes);
    this.#minute = entry;
    this.#endedMs = entry.wall;
  }

  #noted({ text, wall }: NoteEntry): void {
    const known = this.#notes.get(text);
    if (known) known.count += 1;
    else this.#notes.set(text, { first: wall, count: 1 });
  }

  #upgrades(): string[] {
    return this.#versions.length > 1 ? [`Versions of the service in this run, in their order: ${enumeration(this.#versions)}.`] : [];
  }

  #texts(): string[] {
    const texts = [...this.#notes].map(
      ([text, { count, first }]) => `${moment(iso(first))}: ${text}${count > 1 ? ` (${count} times in all)` : ''}`,
    );
    return texts.length > MOST_NOTES
      ? [...texts.slice(0, MOST_NOTES), `${texts.length - MOST_NOTES} more notes stand in the record.`]
      : texts;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** How the service was watched from an entry on. */
function how({ target, watcher }: BeginEntry | ResumeEntry): string[] {
  const service = {
    unit: `${target.unit ?? 'A unit'} of systemd on this machine`,
    started: 'A service that the harness started itself',
    url: 'A service elsewhere, of which nothing is known but what it tells',
  }[target.kind];
  const graph =
    watcher.transport === 'off'
      ? `Not heard on the ROS 2 graph: ${watcher.reason}`
      : `/health_status and /alerts on the ROS 2 graph, by the transport ${watcher.transport}: ${watcher.reason}`;
  const publishes =
    target.service_transport === 'off' ? 'is not on the ROS 2 graph' : `publishes by the transport ${target.service_transport}`;
  return [
    `${service}; REST and the event stream at ${target.url}`,
    graph,
    `The service itself ${publishes}, at ${target.configured_hertz} Hz`,
    `Harness of version ${watcher.version}`,
  ];
}
