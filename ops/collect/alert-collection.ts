import { join } from 'node:path';
import type { Alert } from '../../src/core/alert.ts';
import { appendLines } from '../lib/append.ts';
import { makeFolder } from '../lib/folder.ts';
import type { JobContext } from '../lib/job.ts';
import { type AlertCursor, allKeys, BEGINNING, type FoundCursor, fileLengths, findCursor, openAfter, saveCursor } from './alert-cursor.ts';
import { type ChangesPage, changesAfter, PlaceUnknown } from './alert-pages.ts';
import { ALERTS_FILE, type AlertRecord, alertRecord, changeKey, fileOfChange } from './alert-record.ts';
import { prune } from './prune.ts';

export interface CollectOptions {
  readonly folder: string;
  /** Changes before it are left out; null: none. */
  readonly sinceMs: number | null;
  /** Whether nothing is written. */
  readonly dryRun: boolean;
}

/** What a run did, also when it was ended by an error. */
export interface Tally {
  readonly records: AlertRecord[];
  /** Changes that were in the files already. */
  known: number;
  /** Whether the place was unknown to the service, and everything was gone through again. */
  replayed: boolean;
}

/**
 * Brings the changes of alerts since the last run into the files. Each page of the service is written durably before its place is
 * saved; whatever ends a run, the next one goes on at the last place that the files or the cursor know, and leaves out what was
 * written beyond it. Throws what the service and the disk do; what was done until then is in the tally.
 */
export class AlertCollection {
  readonly tally: Tally = { records: [], known: 0, replayed: false };
  readonly #context: JobContext;
  readonly #options: CollectOptions;
  #cursor: AlertCursor;
  #known: ReadonlySet<string>;

  private constructor(context: JobContext, options: CollectOptions, { cursor, known }: FoundCursor) {
    this.#context = context;
    this.#options = options;
    this.#cursor = cursor;
    this.#known = known;
  }

  static async open(context: JobContext, options: CollectOptions): Promise<AlertCollection> {
    if (!options.dryRun) await makeFolder(options.folder);
    return new AlertCollection(context, options, await findCursor(options.folder, context.log, !options.dryRun));
  }

  /** Open episodes after what was collected. */
  get open(): number {
    return Object.keys(this.#cursor.open).length;
  }

  async run(): Promise<void> {
    if (this.#cursor.replay) this.#known = await allKeys(this.#options.folder);
    for (let more = true; more; ) {
      const page = await this.#page();
      if (page) await this.#take(page);
      more = page?.more ?? true;
    }
    if (this.#cursor.replay) await this.#move({ replay: false });
  }

  /** Null: to be asked for again, from the beginning. */
  async #page(): Promise<ChangesPage | null> {
    try {
      return await changesAfter(this.#context.rest, this.#cursor.place, this.#context.signal);
    } catch (error) {
      if (!(error instanceof PlaceUnknown) || this.#cursor.place === BEGINNING) throw error;
      this.#context.log('notice', 'the service has another database than before: its alerts are gone through from the beginning');
      this.tally.replayed = true;
      this.#known = await allKeys(this.#options.folder);
      this.#cursor = { ...this.#cursor, place: BEGINNING, replay: true };
      return null;
    }
  }

  async #take({ changes, place }: ChangesPage): Promise<void> {
    const keys = new Set(changes.map(changeKey));
    const news = changes.filter((change) => !this.#known.has(changeKey(change)));
    // Normally the lines beyond the place are those of this page; if they are of an earlier database they may come in any later one.
    if ([...this.#known].some((key) => !keys.has(key))) this.#cursor = { ...this.#cursor, replay: true };
    this.tally.known += changes.length - news.length;
    const { sinceMs } = this.#options;
    const wanted = sinceMs === null ? news : news.filter(({ timestamp }) => Date.parse(timestamp) >= sinceMs);
    const { open, records } = this.#recordsOf(wanted, place);
    if (records.length > 0) await this.#write(records);
    this.tally.records.push(...records);
    // A place that moved without news is not worth a write: the one before leads to the same.
    if (records.length > 0 || changes.length > 0) await this.#move({ place, open, sequence: this.#cursor.sequence + records.length });
  }

  #recordsOf(changes: readonly Alert[], place: string): { readonly open: AlertCursor['open']; readonly records: AlertRecord[] } {
    const collectedMs = this.#context.nowMs();
    let { open } = this.#cursor;
    const records = changes.map((change, i) => {
      const known = open[change.alert_id];
      // An episode whose first change that is seen here resolves it began before.
      const began = known !== undefined ? known : change.resolved ? null : change.timestamp;
      const record = alertRecord(change, {
        began,
        collectedMs,
        place: i === changes.length - 1 ? place : null,
        replay: this.#cursor.replay,
        sequence: this.#cursor.sequence + 1 + i,
      });
      open = openAfter(open, record);
      return record;
    });
    return { open, records };
  }

  /** The line with the place is written last, so that it stands for all of them. */
  async #write(records: readonly AlertRecord[]): Promise<void> {
    const { config, nowMs } = this.#context;
    const { dryRun, folder } = this.#options;
    if (dryRun) return;
    const byFile = Map.groupBy(records, (record) => fileOfChange(record, nowMs(), config.ops.keep_days));
    const last = fileOfChange(records.at(-1) as AlertRecord, nowMs(), config.ops.keep_days);
    for (const file of [...[...byFile.keys()].filter((name) => name !== last), last]) {
      const lines = byFile.get(file)?.map((record) => `${JSON.stringify(record)}\n`) ?? [];
      await appendLines(join(folder, file), lines.join(''), { durable: true });
      if (!(file in this.#cursor.files)) await prune(this.#context, folder, ALERTS_FILE);
    }
  }

  async #move(further: Partial<AlertCursor>): Promise<void> {
    const { dryRun, folder } = this.#options;
    this.#cursor = { ...this.#cursor, ...further };
    if (dryRun) return;
    this.#cursor = { ...this.#cursor, files: await fileLengths(folder) };
    await saveCursor(folder, this.#cursor);
  }
}
