import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { anyText, BLANKS } from '../../testkit/text.ts';
import { isNodeName } from './node-name.ts';
import { isVisible, printable, printableJson, withoutUrlPaths } from './text.ts';

const EFFORT = { numRuns: runs(300, 5000), seed: SEED };
/** Contains no character that controls a terminal, is invisible, or looks like a space. */
const IS_SEEN = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;
const isSeen = (text: string): boolean => IS_SEEN.test(text) && !/(?! )\p{Z}/u.test(text) && text.isWellFormed();

t.test('for any text, every character of the result is visible', async (t) => {
  fc.assert(
    fc.property(anyText(60), fc.integer({ min: 1, max: 80 }), (text, max) => {
      const cut = printable(text, max);
      const whole = printable(text);
      return isSeen(whole) && isSeen(cut) && [...cut].length <= max && ([...whole].length <= max ? cut === whole : cut.endsWith('…'));
    }),
    EFFORT,
  );
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
      const json = printableJson(value, indent);
      return json.split('\n').every(isSeen) && JSON.stringify(JSON.parse(json)) === JSON.stringify(value);
    }),
    EFFORT,
  );
  t.pass();
});

t.test('each kind of character has its escape', async (t) => {
  t.equal(printable('robot 7: "Jörg", 運用, 🤖, \\ and $(id)'), 'robot 7: "Jörg", 運用, 🤖, \\ and $(id)');
  t.equal(printable('a\nb\r\tc\x1b[31m\x7f\x85'), 'a\\nb\\r\\tc\\x1b[31m\\x7f\\x85');
  t.equal(printable('\u202e\u2066\u200b\ufeff\u2028\u{e0001}\ud800'), '\\u{202e}\\u{2066}\\u{200b}\\u{feff}\\u{2028}\\u{e0001}\\u{d800}');
  t.equal(printable('a\u00a0b\u3000c\u2800d\u3164e'), 'a\\xa0b\\u{3000}c\\u{2800}d\\u{3164}e', 'what is drawn as a space');
  t.equal(printableJson({ 'a\u202e': '\x1b\u{e0001}\ud800\n' }), '{"a\\u202e":"\\u001b\\udb40\\udc01\\ud800\\n"}');
});

t.test('no character that is drawn as a blank is visible, by itself or within a text', async (t) => {
  for (const blank of BLANKS) {
    const code = String(blank.codePointAt(0)?.toString(16));
    t.notOk(isVisible(blank) || isVisible(`a${blank}b`), code);
    t.notMatch(printable(`a${blank}b`), blank, code);
    t.notOk(isNodeName(`a${blank}b`), `node ${code}`);
  }
  for (const text of ['', ' ', '\u0301', ' \u0301']) t.notOk(isVisible(text) || isNodeName(text), JSON.stringify(text));
  for (const text of ['a b', 'e\u0301', '運用', '🤖', '-', 'ก็', 'हिन्दी']) t.ok(isVisible(text), text);
});

t.test('printable text is truncated at a character boundary', async (t) => {
  t.equal(printable('abc', 3), 'abc');
  t.equal(printable('abcd', 3), 'ab…');
  t.equal(printable('🤖🤖🤖🤖', 3), '🤖🤖…');
  t.equal(printable('a\nb', 9), 'a\\nb');
  t.equal(printable('\n\n\n', 4), '\\n\\…');
});

t.test('URLs in a text are reduced to scheme and host', async (t) => {
  t.equal(withoutUrlPaths('to https://a.example:8443/b/c?d#e, then'), 'to https://a.example:8443/… then');
  t.equal(withoutUrlPaths('"https://user:word@a.example" and http://[::1]:5000'), '"https://a.example" and http://[::1]:5000');
  t.equal(withoutUrlPaths('https://a.example?key=1'), 'https://a.example/…');
  t.equal(withoutUrlPaths('no address: /etc/edge-health//x'), 'no address: /etc/edge-health//x');
});
