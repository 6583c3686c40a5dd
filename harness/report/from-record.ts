import { isoUtc } from '../../src/core/time/time.ts';
import { judge } from '../engine/judge.ts';
import { type BeginEntry, type MinuteEntry, type NoteEntry, RECORD_FILE, type RecordEntry, type ResumeEntry } from '../record/entries.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { type RecordReading, readRecord } from '../record/reader.ts';
import { RecordError } from '../record/record-error.ts';
import { compose, memoryColumns, type RunFacts } from './compose.ts';
import type { ReportDocument } from './document.ts';
import { enumeration, moment } from './figures.ts';

/** The maximum number of distinct notes in a report; the record contains all of them. */
const MAX_NOTES = 40;

interface DocumentOptions {
  readonly madeMs: number;
  /** Version of the edge-health that writes the report. */
  readonly madeBy: string;
  /** Entries and bytes of the record as stated by an earlier report; if given, that report is computed again. */
  readonly upTo?: { readonly entries: number; readonly bytes: number };
}

/**
 * The report of the run whose record is in a folder. It depends only on the record's entries and the options: two reports of the same
 * record differ only in their time of writing. Throws RecordError if there is no record or it was altered.
 */
export function documentOf(
  folder: string,
  { madeBy, madeMs, upTo }: DocumentOptions,
): { document: ReportDocument; reading: RecordReading } {
  const builder = new EvidenceBuilder();
  const facts = new RunFactsBuilder();
  const maxEntries = upTo?.entries ?? Number.POSITIVE_INFINITY;
  let entries = 0;
  let head = '';
  let tornLines = 0;
  const reading = readRecord(folder, (entry) => {
    if (entries >= maxEntries) return;
    entries += 1;
    head = entry.hash;
    if (entry.type === 'torn') tornLines += 1;
    builder.add(entry);
    facts.add(entry);
  });
  const begin = usableBegin(folder, reading);
  const evidence = builder.evidence();
  const document = compose({
    evidence,
    judgements: judge(evidence),
    series: builder.series(),
    memory: memoryColumns(evidence),
    run: facts.of(begin),
    record: { file: RECORD_FILE, entries, bytes: upTo?.bytes ?? reading.bytes, head, torn_lines: tornLines },
    madeMs,
    madeBy,
  });
  return { document, reading };
}

/** Returns the begin entry of a record from which a report can be made. */
function usableBegin(folder: string, { begin, problem, state }: RecordReading): BeginEntry {
  const where = problem === null ? '' : ` (line ${problem.line}: ${problem.what})`;
  if (state === 'altered')
    throw new RecordError(state, `the record in ${folder} was changed after it was written${where}: no report is made of it`);
  if (state === 'unsupported')
    throw new RecordError(state, `the record in ${folder} is of another format${where}: use the edge-health that wrote it`);
  if (begin === null) throw new RecordError('none', `there is no record in ${folder}; name the folder of a run`);
  return begin;
}

/** Collects the facts about a run from its record that a report shows in addition to the evidence. */
class RunFactsBuilder {
  /** The last begin or resume. */
  #session: BeginEntry | ResumeEntry | null = null;
  readonly #how: string[] = [];
  readonly #notes = new Map<string, { readonly first: number; count: number }>();
  readonly #versions: string[] = [];
  #endedMs = 0;
  #minute: MinuteEntry | null = null;
  #cpuSeconds = 0;
  #cpuOverSeconds = 0;
  #residentBytes = 0;

  add(entry: RecordEntry): void {
    if (entry.type === 'begin' || entry.type === 'resume') this.#addSession(entry);
    else if (entry.type === 'minute') this.#addMinute(entry);
    else if (entry.type === 'note') this.#addNote(entry);
    else if (entry.type === 'end') this.#endedMs = entry.wall;
    else if (entry.type === 'service') this.#addVersion(entry.version);
  }

  of(begin: BeginEntry): RunFacts {
    const { target, observer } = this.#session ?? begin;
    return {
      id: begin.run,
      node_name: target.node_name,
      version: this.#versions.at(-1) ?? null,
      how: this.#how,
      machine: observer.machine,
      harness: {
        cpu_percent: this.#cpuOverSeconds > 0 ? Math.round((this.#cpuSeconds / this.#cpuOverSeconds) * 1e5) / 1e3 : null,
        resident_bytes: this.#residentBytes > 0 ? this.#residentBytes : null,
      },
      begun: isoUtc(begin.wall),
      ended: isoUtc(this.#endedMs),
      notes: this.#allNotes(),
    };
  }

  #addSession(entry: BeginEntry | ResumeEntry): void {
    const lines = observation(entry);
    if (this.#session === null) this.#how.push(...lines);
    else {
      const before = observation(this.#session);
      const changed = lines.filter((line) => !before.includes(line));
      this.#how.push(...changed.map((line) => `From ${moment(isoUtc(entry.wall))} on: ${line}`));
    }
    this.#session = entry;
    this.#minute = null;
    this.#endedMs = entry.wall;
    this.#addVersion(entry.target.version);
  }

  #addVersion(version: string): void {
    if (this.#versions.at(-1) !== version) this.#versions.push(version);
  }

  #addMinute(entry: MinuteEntry): void {
    const { cpu_seconds, resident_bytes } = entry.observer;
    const before = this.#minute;
    // CPU time decreases when another process takes over the observation. What that process used before its first
    // minute, its start, is included.
    if (before === null || before.observer.cpu_seconds <= cpu_seconds) {
      this.#cpuSeconds += cpu_seconds - (before?.observer.cpu_seconds ?? 0);
      this.#cpuOverSeconds += entry.mono - (before?.mono ?? this.#session?.mono ?? entry.mono);
    }
    this.#residentBytes = Math.max(this.#residentBytes, resident_bytes);
    this.#minute = entry;
    this.#endedMs = entry.wall;
  }

  #addNote({ text, wall }: NoteEntry): void {
    const known = this.#notes.get(text);
    if (known) known.count += 1;
    else this.#notes.set(text, { first: wall, count: 1 });
  }

  #allNotes(): string[] {
    const notes = this.#versions.length > 1 ? [`Versions of the service during this run, in order: ${enumeration(this.#versions)}.`] : [];
    for (const [text, { count, first }] of [...this.#notes].slice(0, MAX_NOTES))
      notes.push(`${moment(isoUtc(first))}: ${text}${count > 1 ? ` (${count} times in total)` : ''}`);
    if (this.#notes.size > MAX_NOTES) notes.push(`The record has ${this.#notes.size - MAX_NOTES} more notes.`);
    return notes;
  }
}

/** How the service was observed, starting with an entry. */
function observation({ target, observer }: BeginEntry | ResumeEntry): string[] {
  const service = {
    unit: `${target.unit ?? 'A unit'} of systemd on this machine`,
    started: 'A service started by the harness',
    url: 'A service known only by its URL',
  }[target.kind];
  const graph =
    observer.transport === 'off'
      ? `Not on the ROS 2 graph: ${observer.reason}`
      : `/health_status and /alerts on the ROS 2 graph, transport ${observer.transport}: ${observer.reason}`;
  const publishes =
    target.service_transport === 'off'
      ? 'The service is not on the ROS 2 graph'
      : `The service publishes by transport ${target.service_transport}`;
  return [
    `${service}; REST and event stream at ${target.url}`,
    graph,
    `${publishes}, at ${target.configured_hertz} Hz`,
    `Harness version ${observer.version}`,
  ];
}
