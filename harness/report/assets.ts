import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Script and style sheet of report.html (harness/report/page/), bundled. */
export interface PageAssets {
  readonly script: string;
  readonly style: string;
}

/** From the folder that the programs lie in. A report without charts is better than none: the script is empty where it is missing. */
export function readPageAssets(folder: string): PageAssets {
  return { script: textOf(join(folder, 'harness-chart.js')), style: textOf(join(folder, 'harness-chart.css')) };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
