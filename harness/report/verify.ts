import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { isoUtc } from '../../src/core/time.ts';
import { installation } from '../../src/installation/installation.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { type RecordReading, readRecord } from '../record/reader.ts';
import type { PageAssets } from './assets.ts';
import { firstDifference } from './difference.ts';
import { digestOf, REPORT_FILES, type ReportFile, statedDigest } from './digest.ts';
import { type ReportDocument, reportSchema } from './document.ts';
import { documentOf } from './from-record.ts';
import { render } from './render.ts';
import { installedAssets } from './write.ts';

/** `altered`: changed since it was written, or something disagrees; `open`: it cannot be judged, or not yet. */
export type FindingKind = 'good' | 'altered' | 'open';

export interface Finding {
  readonly kind: FindingKind;
  readonly file: string;
  /** For people. */
  readonly text: string;
}

export interface Verification {
  /** 0 intact, 1 altered or disagreeing, 2 cannot be judged. */
  readonly exit: 0 | 1 | 2;
  readonly lines: readonly string[];
  /** What `--json` prints. */
  readonly document: {
    readonly result: 'intact' | 'altered' | 'open';
    readonly findings: readonly Finding[];
    readonly record: { readonly entries: number; readonly bytes: number; readonly head: string; readonly torn_lines: number };
    /** Of report.json; null: there is none that can be read. */
    readonly verdict: string | null;
  };
}

export interface VerifyOptions {
  /** A hash that was noted elsewhere. */
  readonly head?: string | null;
  readonly version?: string;
  readonly assets?: PageAssets;
}

/** What a chain proves, and what it does not. */
export const LIMITS = `A chain proves that nothing was changed since one of its hashes was noted elsewhere. Whoever can write to the folder
can also make a new record with a new chain, and a new report; and a record whose last lines were taken away before its
report was made looks like one that ended earlier. Only a hash that was noted out of their reach shows either (--head).`;

interface Chain {
  readonly reading: RecordReading;
  /** Of each entry. */
  readonly hashes: readonly string[];
}

/** Whether anything in the folder of a run was changed after it was written, and whether its files agree. */
export function verifyRun(folder: string, options: VerifyOptions = {}): Verification {
  const hashes: string[] = [];
  const reading = readRecord(folder, ({ hash }) => hashes.push(hash));
  const chain = { reading, hashes };
  const head = options.head ?? null;
  const json = textOf(folder, 'report.json');
  const report = json === null ? null : parsed(json);
  const findings = [
    ofRecord(chain),
    ...(head === null ? [] : [ofNotedHead(head, chain)]),
    ...ofReport(folder, report, chain, options.version ?? installation().version),
    ...(json === null ? [] : ofRendered(folder, json, report, options)),
  ];
  const exit = findings.some(({ kind }) => kind === 'altered') ? 1 : findings.some(({ kind }) => kind === 'open') ? 2 : 0;
  const { bytes, entries, tornLines } = reading;
  return {
    exit,
    lines: [...findings.map(lineOf), RESULT[exit], '', LIMITS],
    document: {
      result: (['intact', 'altered', 'open'] as const)[exit],
      findings,
      record: { entries, bytes, head: reading.head, torn_lines: tornLines },
      verdict: typeof report === 'object' ? (report?.verdict ?? null) : null,
    },
  };
}

const RESULT = {
  0: 'INTACT: nothing was found changed, and the report follows from the record.',
  1: 'ALTERED: something was changed after it was written, or does not agree; see above.',
  2: 'NOT JUDGED: nothing was found changed, but something is missing or unfinished; see above.',
} as const;
const MARKS: Readonly<Record<FindingKind, string>> = { good: 'ok      ', altered: 'ALTERED ', open: 'open    ' };

const lineOf = ({ file, kind, text }: Finding): string => `${MARKS[kind]}${file}: ${text}`;
const finding = (kind: FindingKind, file: string, text: string): Finding => ({ kind, file, text });
const count = (n: number): string => n.toLocaleString('en-US');

function ofRecord({ reading }: Chain): Finding {
  const { begin, bytes, entries, head, last, problem, state, tornLines } = reading;
  const where = problem && problem.line > 0 ? `line ${problem.line}: ${problem.what}` : (problem?.what ?? '');
  const told = begin && last ? `${count(entries)} entries from ${isoUtc(begin.wall)} to ${isoUtc(last.wall)}` : '';
  const cut = tornLines > 0 ? `; ${count(tornLines)} cut off by a kill or a power cut, and acknowledged` : '';
  switch (state) {
    case 'intact':
      return finding('good', RECORD_FILE, `${told}${cut}, ${count(bytes)} bytes; the chain ends with ${head}`);
    case 'torn':
      return finding('open', RECORD_FILE, `torn at its end, ${where}; before that ${told}${cut}. The run acknowledges it when it goes on`);
    case 'altered':
      return finding(
        'altered',
        RECORD_FILE,
        `${where}. It was changed after it was written; ${count(entries)} entries before that line are good`,
      );
    case 'foreign':
      return finding('open', RECORD_FILE, `${where}: use the edge-health that wrote it`);
    case 'none':
      return finding('open', RECORD_FILE, `no record can be read (${where}); name the folder of a run`);
  }
}

function ofNotedHead(head: string, { hashes }: Chain): Finding {
  const at = hashes.indexOf(head);
  if (at >= 0)
    return finding('good', RECORD_FILE, `the noted hash is that of entry ${at}: up to there nothing was changed since it was noted`);
  return finding('altered', RECORD_FILE, `the noted hash ${head} is not in the chain: this is another record, or it was made anew`);
}

function ofReport(folder: string, report: ReportDocument | string | null, { hashes, reading }: Chain, version: string): Finding[] {
  const of = (kind: FindingKind, text: string): Finding[] => [finding(kind, 'report.json', text)];
  if (report === null) return of('open', 'there is none yet; edge-health harness report makes it');
  if (typeof report === 'string') return of('altered', report);
  if (report.record === null) return of('altered', 'it says that it comes from collected files, not from a record');
  const { entries, head } = report.record;
  if (reading.state !== 'intact' && reading.state !== 'torn') return of('open', 'what it says cannot be held against the record');
  if (entries > reading.entries)
    return of(
      'altered',
      `it was made of ${count(entries)} entries, and the record has ${count(reading.entries)}: the record was cut off since`,
    );
  if (hashes[entries - 1] !== head)
    return of(
      'altered',
      `entry ${entries - 1} had the hash ${head} when it was made, and has ${hashes[entries - 1]}: the record was made anew`,
    );
  const { document } = documentOf(folder, { madeMs: Date.parse(report.made), madeBy: report.made_by, upTo: report.record });
  // As it would stand in the file.
  const wrong = disagreement(report, JSON.parse(JSON.stringify(document)) as ReportDocument, report.made_by === version);
  if (wrong !== null) return of('altered', wrong);
  if (entries < reading.entries)
    return of(
      'open',
      `it agrees with the first ${count(entries)} entries; ${count(reading.entries - entries)} have come since. Make it anew`,
    );
  const wording =
    report.made_by === version ? '' : ` (made by version ${report.made_by}: verdicts and numbers were compared, not the wording)`;
  return of('good', `it follows from the record: ${report.verdict}${wording}`);
}

/** Another version may word things otherwise; what it decided must be the same. */
function disagreement(report: ReportDocument, due: ReportDocument, isSameVersion: boolean): string | null {
  const difference = isSameVersion ? firstDifference(report, due) : firstDifference(decided(report), decided(due));
  if (difference === null) return null;
  const { found, path, wanted } = difference;
  return `${path} is ${found}, and the record gives ${wanted}`;
}

function decided({ judgements, run, verdict }: ReportDocument): unknown {
  return {
    verdict,
    watched_seconds: run.watched_seconds,
    judgements: judgements.map((judgement) => ({
      criterion: judgement.criterion,
      verdict: judgement.verdict,
      measured: judgement.measured.value,
      limit: judgement.limit,
      margin: judgement.margin,
    })),
  };
}

type Rendered = Exclude<ReportFile, 'report.json'>;

/** The other files against report.json as it lies there. */
function ofRendered(folder: string, json: string, report: ReportDocument | string | null, options: VerifyOptions): Finding[] {
  const isSameVersion = typeof report === 'object' && report?.made_by === (options.version ?? installation().version);
  const due = isSameVersion ? renderings(report, options.assets ?? installedAssets()) : [];
  const digest = digestOf(json);
  return REPORT_FILES.filter((file): file is Rendered => file !== 'report.json').map((file) => {
    const text = textOf(folder, file);
    if (text === null) return finding('open', file, 'it is missing; edge-health harness report makes it');
    const stated = statedDigest(file, text);
    if (stated !== digest)
      return finding(
        'altered',
        file,
        `it belongs to a report.json with the SHA-256 ${stated ?? '(none is stated)'}, not to this one, ${digest}`,
      );
    if (due.length > 0 && !due.some((texts) => texts[file] === text))
      return finding('altered', file, 'it names this report.json, and says something else');
    return finding('good', file, 'it belongs to report.json');
  });
}

/** As the report was written: with the charts, or without where they were not built. */
function renderings(report: ReportDocument, assets: PageAssets): Readonly<Record<ReportFile, string>>[] {
  return [assets, { script: '', style: '' }].map((given) => render(report, given));
}

/** A text says what is wrong with it. */
function parsed(json: string): ReportDocument | string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return `it is no JSON: ${(error as Error).message}`;
  }
  const { issues, success } = v.safeParse(reportSchema, value);
  if (!success) {
    const [issue] = issues;
    return `it is no report: ${v.getDotPath(issue) ?? 'the whole'}: ${issue.message}`;
  }
  return value as ReportDocument; // Its members in the order in which they stand there.
}

/** Null: there is no such file. */
function textOf(folder: string, file: ReportFile): string | null {
  try {
    return readFileSync(join(folder, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
