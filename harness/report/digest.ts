import { createHash } from 'node:crypto';

/** The files of a report, in the order in which they are written. */
export const REPORT_FILES = ['report.json', 'report.html', 'report.md', 'junit.xml'] as const;
export type ReportFile = (typeof REPORT_FILES)[number];

/** SHA-256 of report.json, by which the other files name the report that they belong to. */
export function digestOf(reportJson: string | Uint8Array): string {
  return createHash('sha256').update(reportJson).digest('hex');
}

const STATED: Readonly<Record<Exclude<ReportFile, 'report.json'>, RegExp>> = {
  'report.html': /<meta name="report-json-sha256" content="([0-9a-f]{64})">/,
  'report.md': /^SHA-256 of report\.json: `([0-9a-f]{64})`$/m,
  'junit.xml': /<property name="report\.json\.sha256" value="([0-9a-f]{64})"\/>/,
};

/** The SHA-256 of report.json that another file of a report states; null: it states none. */
export function statedDigest(file: Exclude<ReportFile, 'report.json'>, text: string): string | null {
  return STATED[file].exec(text)?.[1] ?? null;
}
