import * as v from 'valibot';
import { installation } from '../../src/core/files/installation.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { type RecordReading, readRecord } from '../record/reader.ts';
import { type ReportDocument, reportSchema } from './document.ts';
import { documentOf } from './from-record.ts';
import type { PageAssets } from './html.ts';
import { digestOf, REPORT_FILES, render, statedDigest } from './render.ts';
import { installedAssets, readIfPresent } from './write.ts';

/** `altered`: changed since it was written, or inconsistent; `open`: cannot be judged, at least not yet. */
type FindingKind = 'good' | 'altered' | 'open';

interface Finding {
  readonly kind: FindingKind;
  readonly file: string;
  /** Text of the finding for display. */
  readonly text: string;
}

export interface Verification {
  /** 0 intact, 1 altered or inconsistent, 2 cannot be judged. */
  readonly exit: 0 | 1 | 2;
  readonly lines: readonly string[];
  /** The output of `--json`. */
  readonly document: {
    readonly result: 'intact' | 'altered' | 'open';
    readonly findings: readonly Finding[];
    readonly record: { readonly entries: number; readonly bytes: number; readonly head: string; readonly torn_lines: number };
    /** Verdict of report.json; null if the file is missing or unreadable. */
    readonly verdict: string | null;
  };
}

interface VerifyOptions {
  /** A hash that was stored elsewhere. */
  readonly head?: string | null;
  readonly version?: string;
  readonly assets?: PageAssets;
}

/** What the chain proves and what it does not prove. */
export const LIMITS = `The hash chain proves that nothing was changed since one of its hashes was noted elsewhere. Anyone who can write to the
folder can also create a new record with a new chain, and a new report; and a record whose last lines were removed before
its report was written looks like one that ended earlier. Only a hash noted out of their reach reveals either (--head).`;

/** Outcome by the worst finding. */
const OUTCOMES = {
  good: { exit: 0, result: 'intact', line: 'INTACT: no change was found, and the report follows from the record.' },
  altered: {
    exit: 1,
    result: 'altered',
    line: 'ALTERED: a file was changed after it was written, or the files are inconsistent; see above.',
  },
  open: { exit: 2, result: 'open', line: 'NOT JUDGED: no change was found, but something is missing or unfinished; see above.' },
} as const;
const MARKS: Readonly<Record<FindingKind, string>> = { good: 'ok      ', altered: 'ALTERED ', open: 'open    ' };

/** Finds changes to the folder of a run after its files were written, and inconsistencies between its files. */
export function verifyRun(folder: string, options: VerifyOptions = {}): Verification {
  const { assets = installedAssets(), head = null, version = installation().version } = options;
  const hashes: string[] = [];
  const reading = readRecord(folder, ({ hash }) => hashes.push(hash));
  const json = readIfPresent(folder, 'report.json');
  const report = json === null ? null : parseReport(json);
  const findings = [
    checkRecord(reading),
    ...(head === null ? [] : [checkNotedHead(head, hashes)]),
    checkReport(folder, report, reading, hashes, version),
    ...(json === null ? [] : checkRendered(folder, json, report, version, assets)),
  ];
  const worst = (['altered', 'open'] as const).find((kind) => findings.some((finding) => finding.kind === kind)) ?? 'good';
  const { exit, line, result } = OUTCOMES[worst];
  const { bytes, entries, tornLines } = reading;
  return {
    exit,
    lines: [...findings.map(({ file, kind, text }) => `${MARKS[kind]}${file}: ${text}`), line, '', LIMITS],
    document: {
      result,
      findings,
      record: { entries, bytes, head: reading.head, torn_lines: tornLines },
      verdict: typeof report === 'object' ? (report?.verdict ?? null) : null,
    },
  };
}

const count = (n: number): string => n.toLocaleString('en-US');

const findingIn =
  (file: string) =>
  (kind: FindingKind, text: string): Finding => ({ kind, file, text });

function checkRecord({ begin, bytes, entries, head, last, problem, state, tornLines }: RecordReading): Finding {
  const finding = findingIn(RECORD_FILE);
  const where = problem && problem.line > 0 ? `line ${problem.line}: ${problem.what}` : (problem?.what ?? '');
  const period = begin && last ? `${count(entries)} entries from ${isoUtc(begin.wall)} to ${isoUtc(last.wall)}` : '';
  const torn = tornLines > 0 ? `; ${count(tornLines)} truncated by SIGKILL or a power cut, and acknowledged` : '';
  switch (state) {
    case 'intact':
      return finding('good', `${period}${torn}, ${count(bytes)} bytes; the chain ends with ${head}`);
    case 'torn':
      return finding('open', `truncated at its end, ${where}; before that ${period}${torn}. The run acknowledges it when it resumes`);
    case 'altered':
      return finding('altered', `${where}. It was changed after it was written; ${count(entries)} entries before that line are good`);
    case 'unsupported':
      return finding('open', `${where}: use the edge-health that wrote it`);
    case 'none':
      return finding('open', `no record can be read (${where}); name the folder of a run`);
  }
}

function checkNotedHead(head: string, hashes: readonly string[]): Finding {
  const finding = findingIn(RECORD_FILE);
  const entry = hashes.indexOf(head);
  return entry >= 0
    ? finding('good', `the noted hash is that of entry ${entry}: nothing up to there was changed since`)
    : finding('altered', `the noted hash ${head} is not in the chain: this is another record, or it was replaced`);
}

/** Compares report.json with the record. Takes a string that describes the problem if there is no valid report. */
function checkReport(
  folder: string,
  report: ReportDocument | string | null,
  reading: RecordReading,
  hashes: readonly string[],
  version: string,
): Finding {
  const finding = findingIn('report.json');
  if (report === null) return finding('open', 'it is missing; edge-health harness report writes it');
  if (typeof report === 'string') return finding('altered', report);
  if (report.record === null) return finding('altered', 'it states that it comes from collected files, not from a record');
  if (reading.state !== 'intact' && reading.state !== 'torn') return finding('open', 'it cannot be compared with the record');
  const { entries, head } = report.record;
  const missing = entries - reading.entries;
  if (missing > 0) {
    const made = `it was made of ${count(entries)} entries, and the record has ${count(reading.entries)}`;
    return finding('altered', `${made}: the record was truncated since`);
  }
  if (hashes[entries - 1] !== head) {
    const had = `entry ${entries - 1} had the hash ${head} when it was written, and has ${hashes[entries - 1]}`;
    return finding('altered', `${had}: the record was replaced`);
  }
  const { document } = documentOf(folder, { madeMs: Date.parse(report.made), madeBy: report.made_by, upTo: report.record });
  const expected = JSON.parse(JSON.stringify(document)) as ReportDocument; // Converted to the form that it would have in the file.
  const isSameVersion = report.made_by === version;
  // Another version may use different wording, but must make the same decisions.
  const difference = isSameVersion ? firstDifference(report, expected) : firstDifference(decisions(report), decisions(expected));
  if (difference !== null) return finding('altered', difference);
  if (missing < 0)
    return finding('open', `it agrees with the first ${count(entries)} entries; ${count(-missing)} were added since. Write it again`);
  const wording = isSameVersion ? '' : ` (written by version ${report.made_by}: verdicts and numbers were compared, not the wording)`;
  return finding('good', `it follows from the record: ${report.verdict}${wording}`);
}

function decisions({ judgements, run, verdict }: ReportDocument): unknown {
  return {
    verdict,
    observed_seconds: run.observed_seconds,
    judgements: judgements.map((judgement) => ({
      criterion: judgement.criterion,
      verdict: judgement.verdict,
      measured: judgement.measured.value,
      limit: judgement.limit,
      margin: judgement.margin,
    })),
  };
}

const MAX_SHOWN = 100;

/** The first member in which two JSON values differ, such as `judgements.2.measured.value`, with both values; null if they are equal. */
function firstDifference(found: unknown, expected: unknown, path: readonly string[] = []): string | null {
  if (found === expected) return null;
  if (isBranch(found) && isBranch(expected) && Array.isArray(found) === Array.isArray(expected)) {
    for (const name of new Set([...Object.keys(found), ...Object.keys(expected)])) {
      const difference = firstDifference(found[name], expected[name], [...path, name]);
      if (difference !== null) return difference;
    }
    return null;
  }
  return `${path.join('.') || 'the document'} is ${shown(found)}, and the record gives ${shown(expected)}`;
}

function isBranch(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Compares the other files with report.json. They are rendered again only for a report of the same version. */
function checkRendered(
  folder: string,
  json: string,
  report: ReportDocument | string | null,
  version: string,
  assets: PageAssets,
): Finding[] {
  const digest = digestOf(json);
  // A report may lack the charts if it was written where they were not built.
  const allowed =
    typeof report === 'object' && report?.made_by === version
      ? [assets, { script: '', style: '' }].map((given) => render(report, given))
      : [];
  return REPORT_FILES.filter((file) => file !== 'report.json').map((file): Finding => {
    const finding = findingIn(file);
    const text = readIfPresent(folder, file);
    if (text === null) return finding('open', 'it is missing; edge-health harness report writes it');
    const stated = statedDigest(file, text) ?? '(none is stated)';
    if (stated !== digest) return finding('altered', `it belongs to a report.json with the SHA-256 ${stated}, not to this one, ${digest}`);
    if (allowed.length > 0 && !allowed.some((texts) => texts[file] === text))
      return finding('altered', 'it names this report.json, but its content differs');
    return finding('good', 'it belongs to report.json');
  });
}

/** Returns the report, or a string that describes why the text is not a report. */
function parseReport(json: string): ReportDocument | string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return `it is not JSON: ${(error as Error).message}`;
  }
  const { issues, success } = v.safeParse(reportSchema, value);
  if (success) return value as ReportDocument; // Returns the parsed value itself, with its members in the order of the file.
  const [issue] = issues;
  return `it is not a report: ${v.getDotPath(issue) ?? 'the document'}: ${issue.message}`;
}
