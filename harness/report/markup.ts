import { visible } from './visible.ts';

/** A piece of HTML. Only the tag below makes it, so that text cannot be taken for it. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Piece = Markup | string | number | null | readonly Piece[];

/** HTML of a template: what is put in is text, escaped, unless it is markup itself. Attributes want their quotes in the template. */
export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(parts.map((part, index) => part + (index < pieces.length ? rendered(pieces[index] as Piece) : '')).join(''));
}

function rendered(piece: Piece): string {
  if (piece instanceof Markup) return piece.text;
  if (piece === null) return '';
  if (typeof piece === 'object') return piece.map(rendered).join('');
  return visible(String(piece)).replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A value for a script of type application/json: nothing in it can end the element or begin a comment. */
export function data(value: unknown): Markup {
  return new Markup(
    JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
