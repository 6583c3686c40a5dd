import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeAtomically } from '../../src/core/files/atomic-file.ts';
import { installation } from '../../src/core/files/installation.ts';
import { PROGRAMS } from '../../src/core/files/programs.ts';
import type { TestVerdict } from '../engine/judgement.ts';
import type { ReportDocument } from './document.ts';
import { documentOf } from './from-record.ts';
import type { PageAssets } from './html.ts';
import { REPORT_FILES, render } from './render.ts';

export interface Written {
  readonly verdict: TestVerdict;
  readonly statement: string;
  /** Paths of the four files. */
  readonly files: readonly string[];
  /** Problems with the files and their remedy; empty if there are none. */
  readonly warnings: readonly string[];
}

/** Writes the report of the run whose record is in a folder. Throws RecordError if there is no record or it was altered. */
export async function writeReports(folder: string, nowMs: number = Date.now()): Promise<Written> {
  const { document } = documentOf(folder, { madeMs: nowMs, madeBy: installation().version });
  return writeDocument(folder, document);
}

/**
 * Writes the four files of a report, each atomically, report.json first. If a reader finds the SHA-256 of a different report.json in one of
 * the others, either a write is in progress or the files were altered.
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

export function installedAssets(): PageAssets {
  return readPageAssets(dirname(fileURLToPath(PROGRAMS.dashboard)));
}

/** A report without charts is better than none, so a missing file counts as empty. */
export function readPageAssets(folder: string): PageAssets {
  return { script: readIfPresent(folder, 'harness-chart.js') ?? '', style: readIfPresent(folder, 'harness-chart.css') ?? '' };
}

/** Returns null if there is no such file. */
export function readIfPresent(folder: string, file: string): string | null {
  try {
    return readFileSync(join(folder, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
