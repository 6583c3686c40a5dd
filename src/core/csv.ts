import { printable } from './text.ts';

/** What a cell may hold. Null: unavailable, an empty cell, which is neither 0 nor false. */
export type Cell = string | number | boolean | null;

/** Spreadsheets take a text that begins so for a formula, which may start programs; with an apostrophe before it, it is a text. */
const FORMULA = /^(?:\s*[=+\-@]|[\t\r])/;

/**
 * One record of RFC 4180, with its line end. Characters that cannot be seen are escaped: a record is always one line, so that
 * a torn one can be told by its missing end. A number that is not finite is unavailable.
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

/** A cell that holds text which others may have chosen. */
export function csvText(cell: string): string {
  const text = `${FORMULA.test(cell) ? "'" : ''}${printable(cell)}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The cells of one line without its end; null: it is not a record. */
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
