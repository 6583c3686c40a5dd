import fc from 'fast-check';

/**
 * Any text of at most `maxLength` code points, including lone surrogates and control characters. Replaces fast-check's unit 'binary', which
 * first builds a table of all code points in two seconds and 100 MB.
 */
export function anyText(maxLength: number): fc.Arbitrary<string> {
  const point = fc.oneof(
    fc.integer({ min: 0x20, max: 0x7e }),
    fc.integer({ min: 0, max: 0xff }),
    fc.integer({ min: 0, max: 0xffff }),
    fc.integer({ min: 0xd800, max: 0xdfff }),
    fc.integer({ min: 0, max: 0x10ffff }),
  );
  return fc.array(point, { maxLength, size: 'max' }).map((points) => String.fromCodePoint(...points));
}

/** Characters that are drawn as a blank or not at all, of each general category that has some. */
export const BLANKS: readonly string[] = [
  ...'\u00a0\u1680\u2000\u3000\u2028\u2029\u00ad\u200b\u200d\u2060\ufeff\u180e\u115f\u1160\u3164\uffa0\u17b4\u034f\ufe0f\u2800\ufffc',
  ...'\u{e0020}\u{1d159}\u{1d173}\u{13441}\u{13442}\u{16fe4}\u{1bca0}',
];
