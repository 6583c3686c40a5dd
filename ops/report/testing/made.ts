import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { Criterion, Judgement } from '../../../harness/engine/judgement.ts';
import type { ReportDocument } from '../../../harness/report/document.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { contextFor, NOT_THERE } from '../../collect/testing/context.ts';
import { generateReport } from '../../generate_7day_report.ts';
import { END, type Minute, perfectWeek, writeWeek } from './week.ts';

type Shown = Omit<ReportDocument, 'series'> & { readonly folder: string | null };

export interface Made {
  readonly status: string;
  readonly report: Shown;
  readonly lines: readonly string[];
  readonly of: Readonly<Record<Criterion, Judgement>>;
}

/** Judges what was collected, without writing the report. */
export function make(data: string, options: Record<string, string | boolean> = {}, url = NOT_THERE): Promise<Made> {
  return write(data, { 'dry-run': true, ...options }, url);
}

/** Judges what was collected, and writes the report. */
export async function write(data: string, options: Record<string, string | boolean> = {}, url = NOT_THERE): Promise<Made> {
  const context = contextFor(data, url, { nowMs: () => END });
  const { document, lines, status } = await generateReport.run(context, { options, positionals: [] });
  const report = document as Shown;
  const of = Object.fromEntries((report.judgements ?? []).map((judgement) => [judgement.criterion, judgement]));
  return { status, report, lines, of: of as Made['of'] };
}

/** Writes a week with the given changes, and an empty folder of collected alerts. */
export function collect(t: Test, change: (week: Minute[]) => Minute[] | undefined = () => undefined): string {
  const week = perfectWeek();
  const data = temporaryFolder(t);
  writeWeek(data, change(week) ?? week);
  mkdirSync(join(data, 'alerts'));
  writeFileSync(join(data, 'alerts', 'cursor.json'), '{}');
  return data;
}

export async function reportOf(t: Test, change: (week: Minute[]) => Minute[] | undefined): Promise<Made> {
  return make(collect(t, change));
}

export const value = (judgement: Judgement, label: string): number | null | undefined =>
  judgement.evidence.find((of) => of.label === label)?.value;
export const rowsOf = (judgement: Judgement, title: RegExp): readonly (readonly (string | number | null)[])[] =>
  judgement.tables.find((table) => title.test(table.title))?.rows ?? [];
