import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import { RECORD_FILE } from '../record/entries.ts';

/** `harness-20260304T050607Z`, as the reports' folders are called. */
export function folderName(nowMs: number): string {
  return `harness-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Where runs are kept that nobody named a folder for: below the data folder of a package, below the checkout. */
export function reportsFolder(dataFolder: string, isCheckout: boolean): string {
  return isCheckout ? resolve('reports') : join(dataFolder, 'reports');
}

/** The newest run in it; null: there is none. */
export function newestRun(reports: string): string | null {
  let names: string[];
  try {
    names = fs.readdirSync(reports);
  } catch {
    return null;
  }
  const runs = names.filter((name) => name.startsWith('harness-') && fs.existsSync(join(reports, name, RECORD_FILE))).sort();
  const newest = runs.at(-1);
  return newest === undefined ? null : join(reports, newest);
}
