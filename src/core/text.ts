/**
 * Characters that must be escaped in terminals, logs and headers: control characters; format characters, which change the writing
 * direction or have no width; lone surrogates, unassigned and private characters; every blank other than the space, and characters drawn
 * as blanks.
 */
const HIDDEN = /[[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}]--[ ]]/gv;

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
