import { printable } from './text.ts';

/** A CSV cell. Null: unavailable, an empty cell, which is neither 0 nor false. */
export type Cell = string | number | boolean | null;

/** Spreadsheets evaluate text with these first characters as a formula, which can start programs; a leading apostrophe prevents that. */
const FORMULA = /^(?:\s*[=+\-@]|[\t\r])/;

/**
 * One RFC 4180 record with its line end. Invisible characters are escaped, so that a record is always one line and a torn one is
 * recognized by its missing end. A number that is not finite is unavailable.
 */
export function csvRecord(cells: readonly Cell[]): string {
  return `${cells.map(cellText).join(',')}\r\n`;
}

function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return Number.isFinite(cell) ? String(cell) : '';
  if (typeof cell === 'boolean') return String(cell);
  return csvText(cell);
}

/** A cell with text from an untrusted source. */
export function csvText(cell: string): string {
  const text = `${FORMULA.test(cell) ? "'" : ''}${printable(cell)}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The cells of one line without its end; null: not a record. */
export function parseCsvRecord(line: string): string[] | null {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  if (!text.includes('"')) return text.split(',');
  const cells: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (;;) {
    const match = cell.exec(text);
    if (!match) return null;
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === '') return cells;
  }
}
