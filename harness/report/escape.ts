import { printable } from '../../src/core/text.ts';

/**
 * Escaping of text from outside (node names, alert IDs, messages of systemd) for HTML, XML, Markdown, and JSON within HTML. All escaping
 * of a report is done here.
 */

/** A piece of HTML or XML. Text enters it only through `markup`, which escapes it, so text cannot become markup. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Piece = Markup | string | number | null | readonly Piece[];

/** Builds HTML or XML from a template: pieces are escaped as text unless they are Markup. Attributes need their quotes in the template. */
export function markup(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(parts.map((part, index) => part + (index < pieces.length ? rendered(pieces[index] as Piece) : '')).join(''));
}

function rendered(piece: Piece): string {
  if (piece instanceof Markup) return piece.text;
  if (piece === null) return '';
  if (typeof piece === 'object') return piece.map(rendered).join('');
  return visible(String(piece)).replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** `>` must be escaped for XML as well, because `]]>` ends a CDATA section. */
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };

/** A value for a script element of type application/json: nothing in it can end the element or start a comment. */
export function data(value: unknown): Markup {
  return new Markup(
    JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}

/** Escapes text to one line of Markdown without markup, HTML, links or table cells. An underscore within a word needs no escape. */
export function md(text: string): string {
  return visible(text)
    .replaceAll(/[\\`*[\]|~$]/g, '\\$&')
    .replaceAll(/&(?=[#\w]+;)/g, '&amp;')
    .replaceAll(/<(?![ \d=])/g, '&lt;')
    .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\_')
    .replace(/^ *(?:>|#+(?=\s|$)|[+-](?=[\s+-]|$))/, '\\$&')
    .replace(/^( *\d+)(?=[.)](?:\s|$))/, '$1\\');
}

/**
 * Converts text to one line in which every character is visible: line breaks and tabs become spaces, other hidden
 * characters become escapes.
 */
export function visible(text: string): string {
  return printable(text.replaceAll(/[\t\n\r\u2028\u2029]+/g, ' '));
}
