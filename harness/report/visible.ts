import { printable } from '../../src/core/text.ts';

/** Text of others (names of nodes, ids of alerts, what systemd says) with blanks for its line breaks and tabs, and every character visible. */
export function visible(text: string): string {
  return printable(text.replaceAll(/[\t\n\r\u2028\u2029]+/g, ' '));
}
