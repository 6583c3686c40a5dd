/**
 * Text of others (names of nodes, ids of alerts, what systemd says) so that nothing in it is without a picture: control characters,
 * marks that turn the direction of writing, half characters. Line breaks and tabs become blanks.
 */
export function visible(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\t\n\r\u2028\u2029]+/g, ' ')
    .replaceAll(INVISIBLE, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
}

const INVISIBLE = /[\p{Cc}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/gu;
