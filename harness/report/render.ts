import type { PageAssets } from './assets.ts';
import { digestOf, type ReportFile } from './digest.ts';
import type { ReportDocument } from './document.ts';
import { page } from './html.ts';
import { readableJson } from './json.ts';
import { junit } from './junit.ts';
import { markdown } from './markdown.ts';

/** The four files of a report, in the order in which they are written. All but report.json name its SHA-256. */
export function render(document: ReportDocument, assets: PageAssets): Readonly<Record<ReportFile, string>> {
  const json = `${readableJson(document)}\n`;
  const digest = digestOf(json);
  return {
    'report.json': json,
    'report.html': page(document, digest, assets),
    'report.md': markdown(document, digest),
    'junit.xml': junit(document, digest),
  };
}
