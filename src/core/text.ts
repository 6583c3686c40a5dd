/**
 * What must not reach a terminal, a log or a header as it is: control characters; format characters, which turn the direction of
 * writing or have no width; lone surrogates, unassigned and private characters; every blank but the space, and what is drawn as one.
 */
const HIDDEN = /[[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u{2800}]--[ ]]/gv;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escaped(character: string): string {
  const code = (character.codePointAt(0) as number).toString(16);
  return SHORT[character] ?? (code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u{${code}}`);
}

/** A character takes two units of a string at most: beyond this nothing needs to be looked at. */
const UNITS_PER_CHARACTER = 2;

/**
 * A text from outside as one line in which every character can be seen: the others are escaped (`\n`, `\x1b`, `\u{202e}`). With `max`
 * it has at most so many characters, the last of a cut one an ellipsis, and the work does not grow with the text.
 */
export function printable(text: string, max = Number.POSITIVE_INFINITY): string {
  if (max === Number.POSITIVE_INFINITY) return text.replaceAll(HIDDEN, escaped);
  const characters = [...text.slice(0, (max + 1) * UNITS_PER_CHARACTER).replaceAll(HIDDEN, escaped)];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : characters.join('');
}

/** JSON for a terminal, with the same characters as `\u` escapes: the same document. */
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

/** A text whose URLs show scheme and host only: what follows, or a password before the host, is often what gives access. */
export function withoutUrlPaths(text: string): string {
  return text.replaceAll(URLS, (_, scheme: string, host: string, rest: string | undefined) => `${scheme}${host}${rest ? '/…' : ''}`);
}
