import { createHash } from 'node:crypto';
import type { ReportDocument } from './document.ts';
import { type PageAssets, page } from './html.ts';
import { junit } from './junit.ts';
import { markdown } from './markdown.ts';

/** The files of a report, in the order in which they are written. All but report.json state its SHA-256. */
export const REPORT_FILES = ['report.json', 'report.html', 'report.md', 'junit.xml'] as const;
export type ReportFile = (typeof REPORT_FILES)[number];

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

/** SHA-256 of report.json, by which the other files identify the report that they belong to. */
export function digestOf(reportJson: string | Uint8Array): string {
  return createHash('sha256').update(reportJson).digest('hex');
}

const STATED: Readonly<Record<Exclude<ReportFile, 'report.json'>, RegExp>> = {
  'report.html': /<meta name="report-json-sha256" content="([0-9a-f]{64})">/,
  'report.md': /^SHA-256 of report\.json: `([0-9a-f]{64})`$/m,
  'junit.xml': /<property name="report\.json\.sha256" value="([0-9a-f]{64})"\/>/,
};

/** The SHA-256 of report.json that another file of a report states; null if it states none. */
export function statedDigest(file: Exclude<ReportFile, 'report.json'>, text: string): string | null {
  return STATED[file].exec(text)?.[1] ?? null;
}

/** JSON for reading and diffs: one member per line, but lists of plain values (10,080 minutes of a week) on one line. */
export function readableJson(value: unknown, indent = ''): string {
  const isList = Array.isArray(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (isList && value.every((element) => typeof element !== 'object' || element === null)) return JSON.stringify(value);
  const inner = `${indent}  `;
  const members = Object.entries(value)
    .filter(([, member]) => isList || member !== undefined)
    .map(([name, member]) => `${inner}${isList ? '' : `${JSON.stringify(name)}: `}${readableJson(member, inner)}`);
  const [open, close] = isList ? '[]' : '{}';
  return members.length === 0 ? '{}' : `${open}\n${members.join(',\n')}\n${indent}${close}`;
}
