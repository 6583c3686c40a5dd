import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { linesOf } from './lines.ts';

async function read(file: string, start = 0): Promise<{ lines: string[]; torn: number[] }> {
  const lines: string[] = [];
  const torn: number[] = [];
  for await (const batch of linesOf(file, { start, torn: (characters) => torn.push(characters) })) lines.push(...batch);
  return { lines, torn };
}

const line = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replaceAll('\n', ' ')),
  fc.constantFrom('ü'.repeat(40_000), 'x'.repeat(65_535), ''),
);

t.test('whole lines are read wherever blocks end, and a torn end is told', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 8 }), line, async (whole, torn) => {
      writeFileSync(file, whole.map((text) => `${text}\n`).join('') + torn);
      t.same(await read(file), { lines: whole, torn: torn === '' ? [] : [torn.length] });
      const [first = '', ...others] = whole;
      if (whole.length > 0) t.same((await read(file, Buffer.byteLength(first) + 1)).lines, others, 'from the second line on');
      return true;
    }),
    { numRuns: runs(30, 500), seed: SEED },
  );
});

t.test('a stretch without an end of a line does not fill memory, and costs no other line', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, Buffer.concat([Buffer.from('one\n'), Buffer.alloc(20_000_000), Buffer.from('\ntwo\nthree\n')]));
  t.same(await read(file), { lines: ['one', 'two', 'three'], torn: [20_000_000] });
});
