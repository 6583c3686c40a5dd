import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { type Cell, csvRecord, parseCsvRecord } from './csv.ts';
import { printable } from './text.ts';

/** Equivalent to `unit: 'binary'`, whose tables take a second to build. */
const character = fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code));
const cell: fc.Arbitrary<Cell> = fc.oneof(
  fc.string({ unit: character, maxLength: 20 }),
  fc.constantFrom('a,b', 'say "no"', '"', ',', '""', 'line\nbreak', 'nul\0', ' padded ', 'ü → €'),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
);

/** Parsed by an independent reader. */
function expected(value: Cell): string {
  if (value === null || (typeof value === 'number' && !Number.isFinite(value))) return '';
  const guard = typeof value === 'string' && /^(\s*[=+\-@]|\t|\r)/.test(value) ? "'" : '';
  return guard + printable(String(value));
}

t.test('a record is one line, and every cell is parsed back', async (t) => {
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 8 }), (cells) => {
      const record = csvRecord(cells);
      const line = record.slice(0, -2);
      const back = parseCsvRecord(line);
      return (
        record.endsWith('\r\n') &&
        !/\p{C}/u.test(line) &&
        JSON.stringify(back) === JSON.stringify(cells.map(expected)) &&
        JSON.stringify(parseCsvRecord(`${line}\r`)) === JSON.stringify(back)
      );
    }),
    { numRuns: runs(150, 5000), seed: SEED },
  );
  t.pass();
});

t.test('no text becomes a formula in a spreadsheet; numbers stay unchanged', async (t) => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(1)', '\t=1', '\r=1', ' =1', '\n=1']) {
    const [cell = ''] = parseCsvRecord(csvRecord([text]).slice(0, -2)) ?? [];
    t.match(cell, /^'/, JSON.stringify(text));
  }
  t.equal(csvRecord([-1.5, '=HYPERLINK("http://x","y")', 'a=b', "'"]), `-1.5,"'=HYPERLINK(""http://x"",""y"")",a=b,'\r\n`);
});

t.test('quoting is that of RFC 4180', async (t) => {
  t.equal(csvRecord(['a,b', 'say "no"', null, 1.5, true, Number.NaN, '']), '"a,b","say ""no""",,1.5,true,,\r\n');
  t.equal(parseCsvRecord('a,"b'), null, 'an unterminated quote');
  t.equal(parseCsvRecord('a,b"c'), null, 'a quote inside an unquoted cell');
  t.same(parseCsvRecord(''), ['']);
});
