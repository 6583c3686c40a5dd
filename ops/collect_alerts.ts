import { join } from 'node:path';
import { changeKey } from '../src/core/alerts/alert.ts';
import { ALERTS_FILE, allKeys, appendRecords, findState, recordsOf, saveState } from './collect/alert-files.ts';
import { BEGINNING, CursorUnknown, changesAfter } from './collect/alert-pages.ts';
import { collectedResult, failedResult, type Progress } from './collect/alert-results.ts';
import { markClocks } from './lib/clock-mark.ts';
import { makeFolder, prune } from './lib/files.ts';
import { type Job, type JobContext, UsageError } from './lib/job.ts';

export const collectAlerts: Job = {
  name: 'collect_alerts',
  summary: 'Append the alert changes since its last run to alerts/alerts_YYYY-MM-DD.ndjson (UTC)',
  usage: 'collect_alerts [--since TIME] [--dry-run] [OPTIONS]',
  help: `Each change is written once, even if the service, this job or the power failed in between. The first run collects
everything in the database.

  --since TIME    skips changes before TIME (2026-01-31 or 2026-01-31T12:00:00Z) for good
  --dry-run       shows the lines and writes nothing
`,
  options: { since: { type: 'string' }, 'dry-run': { type: 'boolean' } },
  positionals: 0,
  run: async (context, { options }) => {
    const since = options['since'] as string | undefined;
    const sinceMs = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
    if (Number.isNaN(sinceMs)) throw new UsageError(`--since is "${since}"; allowed: a time such as 2026-01-31 or 2026-01-31T12:00:00Z`);
    const dryRun = options['dry-run'] === true;
    const folder = join(context.dataFolder, 'alerts');
    const progress: Progress = { records: [], known: 0, replayed: false, open: 0 };
    try {
      await collect(context, { folder, sinceMs, dryRun }, progress);
      return collectedResult(progress, dryRun);
    } catch (error) {
      return failedResult(error, context, folder, progress.records.length);
    }
  },
};

interface Options {
  readonly folder: string;
  /** Changes before this time are skipped permanently. */
  readonly sinceMs: number;
  /** Nothing is written if true. */
  readonly dryRun: boolean;
}

/**
 * Appends the changes after the last cursor, page by page: first the lines, durably, then the cursor. However a run ends, the next one
 * resumes at the last cursor in the lines or in cursor.json, and skips the lines written after it.
 */
async function collect(context: JobContext, { dryRun, folder, sinceMs }: Options, progress: Progress): Promise<void> {
  const { config, log, nowMs, rest, signal } = context;
  if (!dryRun) await makeFolder(folder);
  let { known, state } = await findState(folder, log, dryRun);
  if (state.replay) known = await allKeys(folder);
  const move = async (to: Partial<typeof state>): Promise<void> => {
    state = dryRun ? { ...state, ...to } : await saveState(folder, { ...state, ...to });
  };
  for (let more = true; more; ) {
    const page = await changesAfter(rest, state.cursor, signal).catch((error: unknown) => {
      if (error instanceof CursorUnknown && state.cursor !== BEGINNING) return null;
      throw error;
    });
    if (page === null) {
      log('notice', 'database replaced; its alerts are collected from the beginning');
      progress.replayed = true;
      known = await allKeys(folder);
      state = { ...state, cursor: BEGINNING, replay: true };
      continue;
    }
    const { changes, cursor } = page;
    more = page.more;
    // Lines after the cursor normally belong to this page. Those of an earlier database may recur in any later page.
    const keys = new Set(changes.map(changeKey));
    if ([...known].some((key) => !keys.has(key))) state = { ...state, replay: true };
    const missing = changes.filter((change) => !known.has(changeKey(change)));
    progress.known += changes.length - missing.length;

    const wanted = missing.filter(({ timestamp }) => !(Date.parse(timestamp) < sinceMs));
    const clock = { ...markClocks(), wall_ms: nowMs() };
    const { open, records } = recordsOf(wanted, state, cursor, clock);
    if (!dryRun) {
      const files = await appendRecords(folder, records, nowMs(), config.ops.keep_days);
      if (files.some((file) => !(file in state.files))) await prune(context, folder, ALERTS_FILE);
    }
    progress.records.push(...records);
    // A cursor that moved without changes is not worth a write: the previous one leads to the same changes.
    if (changes.length > 0) await move({ cursor, open, sequence: state.sequence + records.length, clock });
    progress.open = Object.keys(state.open).length;
  }
  if (state.replay) await move({ replay: false });
}
