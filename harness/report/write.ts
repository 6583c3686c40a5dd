import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installation } from '../../src/installation/installation.ts';
import { PROGRAMS } from '../../src/installation/programs.ts';
import { writeAtomically } from '../../src/system/atomic-file.ts';
import type { Verdict } from '../engine/judgement.ts';
import { type PageAssets, readPageAssets } from './assets.ts';
import { REPORT_FILES } from './digest.ts';
import type { ReportDocument } from './document.ts';
import { documentOf } from './from-record.ts';
import { render } from './render.ts';

export interface Written {
  readonly verdict: Verdict;
  readonly statement: string;
  /** Paths of the four files. */
  readonly files: readonly string[];
  /** What is wrong with them, and what to do; empty: nothing. */
  readonly warnings: readonly string[];
}

/** Of this installation. */
export function installedAssets(): PageAssets {
  return readPageAssets(dirname(fileURLToPath(PROGRAMS.dashboard)));
}

/** Makes the report of the run whose record lies in a folder. Throws RecordError where there is none, or it was altered. */
export async function writeReports(folder: string, nowMs: number = Date.now()): Promise<Written> {
  const { document } = documentOf(folder, { madeMs: nowMs, madeBy: installation().version });
  return writeDocument(folder, document);
}

/**
 * Writes the four files of a report, each whole or not at all, report.json first: a reader who finds another SHA-256 of it in one of the
 * others came in between, or was lied to.
 */
export async function writeDocument(folder: string, document: ReportDocument, assets: PageAssets = installedAssets()): Promise<Written> {
  const texts = render(document, assets);
  const files: string[] = [];
  for (const name of REPORT_FILES) {
    const file = join(folder, name);
    await writeAtomically(file, texts[name], { durable: true });
    files.push(file);
  }
  const missing = [...(assets.style === '' ? ['style'] : []), ...(assets.script === '' ? ['charts'] : [])];
  const warning = `report.html has no ${missing.join(' and no ')}: parts of edge-health are missing; install it again (a checkout: npm run build), then: edge-health harness report ${folder}`;
  return { verdict: document.verdict, statement: document.statement, files, warnings: missing.length === 0 ? [] : [warning] };
}
