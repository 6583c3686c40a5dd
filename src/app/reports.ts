import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { type InferOutput, safeParse } from 'valibot';
import { readRegularFile } from '../core/files/regular-file.ts';
import { nullAfterTimeout } from '../core/platform/timeout.ts';
import { isoUtc } from '../core/time/time.ts';
import type { ReportsDocument, reportFileSchema } from '../http/api/reports-schema.ts';
import type { ReportFormat } from '../http/view.ts';

/** A report.json of a week has 50 to 300 kB; parsing a larger one would delay samples. */
const MAX_JSON_BYTES = 1024 * 1024;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_REQUEST_BYTES = 64 * 1024;
const READ_TIMEOUT_SECONDS = 2;
/** Maximum number of requests that wait for the disk; further ones fail at once. */
const MAX_WAITING = 16;
const FILES: Readonly<Record<ReportFormat, string>> = {
  html: 'report.html',
  json: 'report.json',
  markdown: 'report.md',
  junit: 'junit.xml',
};

type Report = ReportsDocument['data'][number];

/**
 * The reports of the reliability harness and of generate_7day_report: folders in `reports/` of the data folder. Other processes write them;
 * they are read on request, one disk access at a time, so that a hanging disk blocks a single thread of the pool. A folder without a valid
 * report.json is not listed.
 */
export class Reports {
  /** Data folders; the first one that has a report is used. */
  readonly #folders: readonly string[];
  /** By path, with the identity of the file that was read. */
  readonly #known = new Map<string, { readonly signature: string; readonly report: Report | null }>();
  readonly #readFile: typeof readRegularFile;
  readonly #timeoutSeconds: number;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** `readFile` and `timeoutSeconds` are for tests. */
  constructor(dataFolders: readonly string[], readFile = readRegularFile, timeoutSeconds = READ_TIMEOUT_SECONDS) {
    this.#folders = dataFolders;
    this.#readFile = readFile;
    this.#timeoutSeconds = timeoutSeconds;
  }

  /** Null: the disk does not respond. */
  list(): Promise<ReportsDocument | null> {
    return this.#inTurn(() => this.#list());
  }

  /** A file of a report; `missing`: there is no such file; null: the disk does not respond. `name` is one folder name. */
  read(name: string, format: ReportFormat): Promise<Buffer | 'missing' | null> {
    return this.#inTurn(() => this.#read(name, FILES[format]));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.#waiting >= MAX_WAITING) return null;
    this.#waiting += 1;
    const turn = this.#last.then(work).finally(() => {
      this.#waiting -= 1;
    });
    this.#last = turn.catch(() => undefined); // The request that made this access receives the error.
    return nullAfterTimeout(this.#timeoutSeconds, turn);
  }

  async #read(name: string, file: string): Promise<Buffer | 'missing'> {
    for (const folder of this.#folders) {
      const content = await this.#readFile(join(folder, 'reports', name, file), MAX_BYTES).catch(() => null);
      if (content) return content;
    }
    return 'missing';
  }

  async #list(): Promise<ReportsDocument> {
    const { MAX_REPORTS, reportFileSchema } = await import('../http/api/reports-schema.ts');
    const files: { path: string; name: string; signature: string; mtimeMs: number }[] = [];
    for (const folder of this.#folders) {
      for (const name of await promisify(fs.readdir)(join(folder, 'reports')).catch(() => [])) {
        const path = join(folder, 'reports', name, FILES.json);
        const stats = await promisify(fs.stat)(path).catch(() => null);
        if (stats) files.push({ path, name, signature: `${stats.ino} ${stats.mtimeMs} ${stats.size}`, mtimeMs: stats.mtimeMs });
      }
    }
    const newest = files.sort((a, b) => b.mtimeMs - a.mtimeMs).slice(0, MAX_REPORTS);
    for (const { name, path, signature } of newest) {
      if (this.#known.get(path)?.signature === signature) continue;
      const text = await this.#readFile(path, MAX_JSON_BYTES).catch(() => null);
      const result = safeParse(reportFileSchema, parsed(text));
      this.#known.set(path, { signature, report: result.success ? summaryOf(name, result.output) : null });
    }
    for (const path of this.#known.keys()) if (!newest.some((file) => file.path === path)) this.#known.delete(path);
    const data = newest.flatMap(({ path }) => this.#known.get(path)?.report ?? []);
    return { data, count: data.length, running: await this.#running() };
  }

  /** The request of `edge-health harness start` exists until its run has ended. */
  async #running(): Promise<ReportsDocument['running']> {
    for (const folder of this.#folders) {
      const text = await this.#readFile(join(folder, 'harness/current.json'), MAX_REQUEST_BYTES).catch(() => null);
      const request = parsed(text) as { out?: unknown; requested?: unknown; duration_seconds?: unknown } | null;
      if (typeof request?.out !== 'string' || typeof request.requested !== 'string' || Number.isNaN(Date.parse(request.requested)))
        continue;
      const record = await promisify(fs.stat)(join(request.out, 'record.ndjson')).catch(() => null);
      return {
        name: basename(request.out),
        begun: isoUtc(Date.parse(request.requested)),
        planned_seconds: typeof request.duration_seconds === 'number' ? request.duration_seconds : null,
        recorded: record && isoUtc(Math.round(record.mtimeMs)),
      };
    }
    return null;
  }
}

function parsed(text: Buffer | null): unknown {
  try {
    return text && JSON.parse(text.toString('utf8'));
  } catch {
    return null; // Not a report, or a report that is being written; it is not listed.
  }
}

type File = InferOutput<typeof reportFileSchema>;

function summaryOf(name: string, { is_168_hour_verdict, made, run, statement, verdict }: File): Report {
  const { begun, ended, node_name, origin } = run;
  return { name, verdict, is_168_hour_verdict, statement, node_name, begun, ended, made, observed: origin === 'observed' };
}
