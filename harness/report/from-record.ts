import { judge } from '../engine/judge.ts';
import { RECORD_FILE } from '../record/entries.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { type RecordReading, readRecord } from '../record/reader.ts';
import { RecordError } from '../record/record-error.ts';
import { compose, memoryColumns } from './compose.ts';
import type { ReportDocument } from './document.ts';
import { RunFactsBuilder } from './run-facts.ts';

export interface DocumentOptions {
  readonly madeMs: number;
  /** Version of the edge-health that makes the report. */
  readonly madeBy: string;
  /** Of the record as it was when an earlier report was made: so many entries, and their bytes as that report states them. */
  readonly upTo?: { readonly entries: number; readonly bytes: number };
}

/**
 * The report of the run whose record lies in a folder. A function of the record's entries, but for what the options say: two reports of
 * the same record differ in the time they were made. Throws RecordError where there is none, or it was altered.
 */
export function documentOf(
  folder: string,
  { madeBy, madeMs, upTo }: DocumentOptions,
): { document: ReportDocument; reading: RecordReading } {
  const builder = new EvidenceBuilder();
  const facts = new RunFactsBuilder();
  const most = upTo?.entries ?? Number.POSITIVE_INFINITY;
  let entries = 0;
  let head = '';
  let tornLines = 0;
  const reading = readRecord(folder, (entry) => {
    if (entries >= most) return;
    entries += 1;
    head = entry.hash;
    if (entry.type === 'torn') tornLines += 1;
    builder.add(entry);
    facts.add(entry);
  });
  const unusable = whyUnusable(folder, reading);
  if (unusable !== null) throw unusable;
  const evidence = builder.evidence();
  const document = compose({
    evidence,
    judgements: judge(evidence),
    series: builder.series(),
    memory: memoryColumns(evidence),
    run: facts.facts(),
    record: { file: RECORD_FILE, entries, bytes: upTo?.bytes ?? reading.bytes, head, torn_lines: tornLines },
    madeMs,
    madeBy,
  });
  return { document, reading };
}

function whyUnusable(folder: string, { problem, state }: RecordReading): RecordError | null {
  const where = problem === null ? '' : ` (line ${problem.line}: ${problem.what})`;
  switch (state) {
    case 'intact':
    case 'torn':
      return null;
    case 'none':
      return new RecordError('none', `there is no record in ${folder}; name the folder of a run`);
    case 'altered':
      return new RecordError('altered', `the record in ${folder} was changed after it was written${where}: no report is made of it`);
    case 'foreign':
      return new RecordError('foreign', `the record in ${folder} is of another format${where}: use the edge-health that wrote it`);
  }
}
