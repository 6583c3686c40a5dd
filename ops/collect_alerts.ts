import { join } from 'node:path';
import { ServiceRefused, ServiceUnreachable } from '../src/client/rest.ts';
import { nodeOfAlertId } from '../src/core/alert.ts';
import { isoUtc } from '../src/core/time.ts';
import { ALERTS_FILE, type AlertRecord, allKeys, changeKey, fileOfChange, findState, openAfter, saveState } from './collect/alert-files.ts';
import { BEGINNING, type ChangesPage, CursorUnknown, changesAfter } from './collect/alert-pages.ts';
import { diskProblem } from './lib/disk-problem.ts';
import { appendLines, prune } from './lib/files.ts';
import { makeFolder } from './lib/folder.ts';
import { type Job, type JobContext, type JobResult, type JobStatus, UsageError } from './lib/job.ts';

interface Options {
  readonly folder: string;
  /** Changes before it are skipped; null: none is. */
  readonly sinceMs: number | null;
  /** Writes nothing. */
  readonly dryRun: boolean;
}

/** What a run has done, also if an error ends it. */
interface Progress {
  readonly records: AlertRecord[];
  /** Changes skipped because the files contain them already. */
  known: number;
  /** Whether the service has another database than before, which was read from its beginning. */
  replayed: boolean;
  /** Open episodes after what was collected. */
  open: number;
}

export const collectAlerts: Job = {
  name: 'collect_alerts',
  summary: 'Appends the alert changes since its last run to alerts/alerts_YYYY-MM-DD.ndjson (UTC)',
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
    const sinceMs = since === undefined ? null : Date.parse(since);
    if (Number.isNaN(sinceMs)) throw new UsageError(`--since is "${since}"; allowed: a time such as 2026-01-31 or 2026-01-31T12:00:00Z`);
    const dryRun = options['dry-run'] === true;
    const folder = join(context.dataFolder, 'alerts');
    const progress: Progress = { records: [], known: 0, replayed: false, open: 0 };
    try {
      await collect(context, { folder, sinceMs, dryRun }, progress);
    } catch (error) {
      return failed(error, context, folder, progress.records.length);
    }
    const { known, open, records, replayed } = progress;
    if (dryRun) {
      const lines = records.map((record) => JSON.stringify(record));
      return { status: 'OK', lines, document: { dry_run: true, known, replayed, open, records } };
    }
    const count = `${records.length} ${records.length === 1 ? 'change' : 'changes'} collected, ${open} ${open === 1 ? 'episode' : 'episodes'} open`;
    const replay = replayed ? `; the service has another database than before: read from its beginning, ${known} changes known` : '';
    return { status: 'OK', lines: [`OK  ${count}${replay}`], document: { collected: records.length, known, replayed, open, error: null } };
  },
};

/**
 * Appends the changes after the last cursor, page by page: the lines first, durably, then the cursor. However a run ends, the next one
 * resumes at the last cursor in the lines or in cursor.json, and skips the lines written after it.
 */
async function collect(context: JobContext, options: Options, progress: Progress): Promise<void> {
  const { log, nowMs, rest, signal } = context;
  const { dryRun, folder, sinceMs } = options;
  if (!dryRun) await makeFolder(folder);
  let { known, state } = await findState(folder, log, dryRun);
  if (state.replay) known = await allKeys(folder);
  const move = async (to: Partial<typeof state>): Promise<void> => {
    state = dryRun ? { ...state, ...to } : await saveState(folder, { ...state, ...to });
  };
  for (let more = true; more; ) {
    let page: ChangesPage;
    try {
      page = await changesAfter(rest, state.cursor, signal);
    } catch (error) {
      if (!(error instanceof CursorUnknown) || state.cursor === BEGINNING) throw error;
      log('notice', 'another database than before: its alerts are read from the beginning');
      progress.replayed = true;
      known = await allKeys(folder);
      state = { ...state, cursor: BEGINNING, replay: true };
      continue;
    }
    const { changes, cursor } = page;
    more = page.more;
    // Lines after the cursor are normally those of this page. Those of an earlier database may come in any later page.
    const keys = new Set(changes.map(changeKey));
    if ([...known].some((key) => !keys.has(key))) state = { ...state, replay: true };
    const missing = changes.filter((change) => !known.has(changeKey(change)));
    progress.known += changes.length - missing.length;
    const wanted = missing.filter(({ timestamp }) => sinceMs === null || Date.parse(timestamp) >= sinceMs);

    const collected = isoUtc(nowMs());
    let { open, sequence } = state;
    const records = wanted.map((change, i): AlertRecord => {
      // If the first change seen of an episode resolves it, the episode began before.
      const begun = open[change.alert_id];
      const began = begun !== undefined ? begun : change.resolved ? null : change.timestamp;
      const seconds = began === null ? -1 : (Date.parse(change.timestamp) - Date.parse(began)) / 1000;
      sequence += 1;
      const record = {
        ...change,
        node: nodeOfAlertId(change.alert_id),
        began,
        duration_seconds: seconds >= 0 ? seconds : null,
        sequence,
        collected,
        ...(i === wanted.length - 1 ? { cursor } : {}),
        ...(state.replay ? { replay: true as const } : {}),
      };
      open = openAfter(open, record);
      return record;
    });
    if (records.length > 0 && !dryRun) await write(context, folder, records, state.files);
    progress.records.push(...records);
    // A cursor that moved without changes is not worth a write: the one before leads to the same changes.
    if (changes.length > 0) await move({ cursor, open, sequence });
    progress.open = Object.keys(state.open).length;
  }
  if (state.replay) await move({ replay: false });
}

/** Appends each record to the file of its day. The line with the cursor is written last, since it stands for all of them. */
async function write(context: JobContext, folder: string, records: readonly AlertRecord[], files: object): Promise<void> {
  const { config, nowMs } = context;
  const fileOf = (record: AlertRecord): string => fileOfChange(record, nowMs(), config.ops.keep_days);
  const byFile = Map.groupBy(records, fileOf);
  const last = fileOf(records.at(-1) as AlertRecord);
  for (const file of [...[...byFile.keys()].filter((name) => name !== last), last]) {
    const lines = byFile.get(file)?.map((record) => `${JSON.stringify(record)}\n`) ?? [];
    await appendLines(join(folder, file), lines.join(''), { durable: true });
    if (!(file in files)) await prune(context, folder, ALERTS_FILE);
  }
}

function failed(error: unknown, { signal }: JobContext, folder: string, collected: number): JobResult {
  const result = (status: JobStatus, problem: string, remedy = ''): JobResult => {
    const before = collected > 0 ? ` (${collected} collected before)` : '';
    const text = [problem, `nothing is lost, the next run resumes here${before}`, remedy].filter(Boolean).join('; ');
    return { status, lines: [`${status}  ${text}`], document: { collected, error: text } };
  };
  if (signal.aborted) return result('WARNING', `ended before all was collected: ${(signal.reason as Error).message}`);
  if (error instanceof ServiceUnreachable) {
    return result('WARNING', `no response from the service (${error.message})`, 'see: systemctl status edge-health');
  }
  if (error instanceof ServiceRefused) {
    const { code, message, status } = error;
    if (status === 503) return result('WARNING', message);
    if (code === 'unknown_parameter') {
      return result('CRITICAL', 'the service is older than this job', 'restart it: systemctl restart edge-health');
    }
    const isToken = status === 401 || status === 403;
    const remedy = isToken ? 'check rest.token_file in the configuration' : 'see: journalctl -u edge-health';
    return result('CRITICAL', `the service refused the request: ${message}`, remedy);
  }
  const problem = diskProblem(error, folder);
  if (problem === null) throw error;
  return result('CRITICAL', `alerts not collected: ${problem}`);
}
