/**
 * Letters, marks and symbols that are drawn as blanks: those to ignore where they are not supported, such as the Hangul fillers; the empty
 * Braille pattern; blanks of musical notes and hieroglyphs; the Khitan filler; the place of an object. For the class of a regular expression.
 */
export const DRAWN_AS_BLANK = String.raw`\p{Default_Ignorable_Code_Point}\u{2800}\u{1d159}\u{13441}\u{13442}\u{16fe4}\u{fffc}`;
/**
 * Characters that must be escaped in terminals, logs and headers: control characters; format characters, which change the writing
 * direction or have no width; lone surrogates, unassigned and private characters; every blank other than the space.
 */
const HIDDEN = new RegExp(String.raw`[[\p{C}\p{Z}${DRAWN_AS_BLANK}]--[ ]]`, 'gv');
/** A mark alone, such as an accent, is drawn on a blank. */
const SEEN = /[\p{L}\p{N}\p{P}\p{S}]/u;

/** Whether a text has only visible characters and spaces, and not only spaces. */
export function isVisible(text: string): boolean {
  return text.search(HIDDEN) < 0 && SEEN.test(text);
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(character: string): string {
  const code = (character.codePointAt(0) as number).toString(16);
  return SHORT[character] ?? (code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u{${code}}`);
}

/** A character has at most two UTF-16 units, so the rest of a longer string need not be scanned. */
const UNITS_PER_CHARACTER = 2;

/**
 * Text from an untrusted source as one line of visible characters; all others are escaped (`\n`, `\x1b`, `\u{202e}`). With `max` it has at
 * most that many characters, ending in an ellipsis if truncated, and the work does not grow with the text.
 */
export function printable(text: string, max = Number.POSITIVE_INFINITY): string {
  if (max === Number.POSITIVE_INFINITY) return text.replaceAll(HIDDEN, escaped);
  const characters = [...text.slice(0, (max + 1) * UNITS_PER_CHARACTER).replaceAll(HIDDEN, escaped)];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : characters.join('');
}

/** JSON for a terminal, with the same characters as `\u` escapes; it parses to the same document. */
export function printableJson(value: unknown, indent = 0): string {
  return JSON.stringify(value, null, indent).replaceAll(HIDDEN, (character) =>
    character === '\n'
      ? character // Between members: within a string it is escaped already.
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

/** A URL in a text: scheme, user and password, host and port, the rest. */
const URLS = /\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s"'/?#]*@)?([^\s"'/?#]*)([/?#][^\s"']*)?/gi;

/** Reduces URLs in a text to scheme and host, because paths and passwords often grant access. */
export function withoutUrlPaths(text: string): string {
  return text.replaceAll(URLS, (_, scheme: string, host: string, rest: string | undefined) => `${scheme}${host}${rest ? '/…' : ''}`);
}
