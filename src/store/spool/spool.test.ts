import { deepStrictEqual } from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { SmallDisk, whyNotMountable } from '../../../testkit/machine/small-disk.ts';
import { anyText } from '../../../testkit/text.ts';
import { type Alert, STATUSES } from '../../core/alerts/alert.ts';
import { isoUtc } from '../../core/time/time.ts';
import type { Columns } from '../samples/chunk.ts';
import { type Row, row, toRows, toStatus } from '../testing/rows.ts';
import { parseSegment, Spool, spoolFolder } from './spool.ts';

const alert = (timestampMs: number, resolved = false): Alert => ({
  alert_id: `robots/arm/cpu_percent/${timestampMs}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 81.5,
  threshold: 80,
  timestamp: isoUtc(timestampMs),
  resolved,
});

function openSpool(t: Test, folder = temporaryFolder(t)): Spool {
  const spool = new Spool(folder);
  t.teardown(() => spool.end());
  return spool;
}

const line = (sample: Row, node = 'a'): string => JSON.stringify(toStatus(sample, node));

t.test('the next run reads back all records, by segment and node', async (t) => {
  const folder = temporaryFolder(t);
  const spool = openSpool(t, folder);
  const first = spool.begin(1000);
  spool.write(line(row(1, 10, 'WARNING')));
  spool.write(line(row(2, null, 'UNKNOWN'), 'b'));
  spool.write(JSON.stringify(alert(3)));
  const second = spool.begin(500); // The clock was set back.
  spool.write(line(row(4)));
  spool.end();
  t.equal(first, 1000);
  t.ok(second > first);

  const next = openSpool(t, folder);
  next.begin(10);
  const leftovers = next.leftovers();
  t.same(
    leftovers.map(({ segment }) => segment),
    [first, second],
    'without the current segment',
  );
  t.same(leftovers[0]?.alerts, [{ sequence: 3, alert: alert(3) }], 'with its line number');
  t.same(
    leftovers[0]?.samples.map(({ node, columns }) => [node, toRows(columns)]),
    [
      ['a', [row(1, 10, 'WARNING')]],
      ['b', [row(2, null, 'UNKNOWN')]],
    ],
  );
  t.same(
    leftovers[1]?.samples.map(({ columns }) => toRows(columns)),
    [[row(4)]],
  );
  next.remove(first);
  next.remove(first);
  t.same(
    next.leftovers().map(({ segment }) => segment),
    [second],
  );
});

t.test('a kill at any byte costs only the line being written', async (t) => {
  const samples = [row(1, 1.25), row(2, null, 'UNKNOWN'), row(3, 99)];
  const lines = [line(samples[0] as Row), JSON.stringify(alert(9)), line(samples[1] as Row, 'größe'), line(samples[2] as Row)];
  const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
  for (let length = 0; length <= bytes.length; length += 1) {
    const whole = bytes.subarray(0, length).toString('latin1').split('\n').length - 1;
    const { samples: found, alerts } = parseSegment(1, bytes.subarray(0, length).toString('utf8'));
    const count = found.reduce((sum, { columns }) => sum + columns.count, alerts.length);
    if (count !== whole) t.equal(count, whole, `after ${length} bytes`);
  }
  t.equal(
    parseSegment(1, bytes.toString()).samples.reduce((sum, { columns }) => sum + columns.count, 0),
    samples.length,
  );
});

t.test('any statuses are parsed back from their lines', async (t) => {
  const value = fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (number === 0 ? 0 : number)));
  const sample = fc.record(
    {
      timestampMs: fc.integer({ min: 0, max: 4e12 }),
      values: fc.array(value, { minLength: 4, maxLength: 4 }),
      status: fc.constantFrom(...STATUSES),
    },
    { noNullPrototype: true },
  );
  const node = fc.stringMatching(/^[a-z_/]{1,12}$/);
  fc.assert(
    fc.property(fc.array(fc.tuple(node, sample), { maxLength: 30, size: 'max' }), (written) => {
      const text = written.map(([name, one]) => `${line(one, name)}\n`).join('');
      const found = parseSegment(1, text).samples.flatMap(({ node: name, columns }) => toRows(columns).map((one) => [name, one]));
      const names = [...new Set(written.map(([name]) => name))];
      deepStrictEqual(
        found,
        names.flatMap((name) => written.filter(([other]) => other === name)),
      );
    }),
    { numRuns: runs(15, 500), seed: SEED },
  );
  t.pass();
});

t.test('unknown and damaged lines are skipped', async (t) => {
  const good = line(row(7));
  const poison = [
    '',
    'null',
    '3',
    '[]',
    '{}',
    '{"timestamp":"2026-01-01T00:00:00.000Z"}',
    good.replace('"OK"', '"FINE"'),
    good.replace(/"timestamp":"[^"]*"/, '"timestamp":"yesterday"'),
    good.replace(/"timestamp":"[^"]*"/, '"timestamp":"+200000-01-01T00:00:00.000Z"'),
    good.replace('"node_name":"a"', '"node_name":7'),
    good.slice(0, -5),
    `${good}${good}`,
    '\u0000\u0000\u0000',
    JSON.stringify({ ...alert(1), severity: 'FATAL' }),
    JSON.stringify({ ...alert(1), severity: undefined }),
    JSON.stringify({ ...alert(1), value: { a: 1 } }),
    JSON.stringify({ ...alert(1), threshold: 'high' }),
    JSON.stringify({ ...alert(1), metric: null }),
    JSON.stringify({ ...alert(1), resolved: 'no' }),
  ];
  const { samples, alerts } = parseSegment(
    1,
    [...poison, good, ...poison, JSON.stringify(alert(8)), ...poison].map((text) => `${text}\n`).join(''),
  );
  t.same(
    samples.map(({ node, columns }) => [node, toRows(columns)]),
    [['a', [row(7)]]],
  );
  t.same(
    alerts.map((one) => one.alert),
    [alert(8)],
  );
  fc.assert(
    fc.property(anyText(300), (garbage) => {
      const found = parseSegment(1, garbage);
      return found.alerts.length === 0 && found.samples.length === 0;
    }),
    { numRuns: runs(50, 1000), seed: SEED },
  );
});

t.test('files that are not segments are left alone', async (t) => {
  const folder = temporaryFolder(t);
  for (const name of ['notes.txt', '12.ndjson.new', '99999999999999999999.ndjson', 'x.ndjson'])
    writeFileSync(join(folder, name), `${line(row(1))}\n`);
  mkdirSync(join(folder, '5.ndjson'));
  const before = readdirSync(folder);
  const spool = openSpool(t, folder);
  const segment = spool.begin(100);
  t.equal(segment, 100);
  t.same(spool.leftovers(), []);
  spool.end();
  spool.remove(segment);
  t.same(readdirSync(folder), before);
});

t.test('a line keeps its number, also after the file system was full', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const spool = openSpool(t, disk.folder);
  const segment = spool.begin(1);
  const written: number[] = [];
  const write = (sequence: number): void => {
    try {
      spool.write(line(row(sequence)));
      written.push(sequence);
    } catch {
      // Full.
    }
  };
  for (let sequence = 1; sequence <= 400; sequence += 1) {
    if (sequence === 100 || sequence === 250) disk.fill();
    if (sequence === 200 || sequence === 350) disk.free();
    write(sequence);
  }
  spool.end();
  t.ok(written.length >= 200 && written.length < 350, `${written.length} were written`);
  const { samples } = parseSegment(segment, readFileSync(join(disk.folder, `${segment}.ndjson`), 'utf8'));
  const columns = samples[0]?.columns as Columns;
  t.same([...columns.sequence], written);
  t.same([...columns.timestampMs], written);
});

t.test('dropping the samples of a segment keeps its alerts, each with its number', async (t) => {
  const spool = openSpool(t);
  const quiet = spool.begin(1);
  spool.write(line(row(1)));
  const loud = spool.begin(2);
  spool.write(line(row(2)));
  spool.write(JSON.stringify(alert(2)));
  spool.write(JSON.stringify(alert(2, true)));
  spool.begin(3);
  t.equal(spool.dropSamples(quiet), 0);
  t.ok(spool.dropSamples(loud) > 0);
  t.same(
    spool.leftovers().map(({ segment, samples, alerts }) => ({ segment, samples, alerts })),
    [
      {
        segment: loud,
        samples: [],
        alerts: [
          { sequence: 2, alert: alert(2) },
          { sequence: 3, alert: alert(2, true) },
        ],
      },
    ],
  );
});

t.test('without a folder nothing is left over, and writing throws', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  const spool = openSpool(t, join(file, 'spool'));
  t.same(spool.leftovers(), []);
  t.throws(() => spool.begin(1), { code: 'EEXIST' });
  t.throws(() => spool.write('x'), { code: 'EEXIST' });
  t.equal(spool.segment, 1, 'samples still differ by segment');
});

t.test('a deleted spool is recreated by the next line, which keeps its number', async (t) => {
  const folder = join(temporaryFolder(t), 'spool');
  const spool = openSpool(t, folder);
  const segment = spool.begin(1000);
  spool.write(line(row(1)));
  spool.write(line(row(2)));
  rmSync(folder, { recursive: true });
  spool.write(JSON.stringify(alert(3)));
  spool.write(line(row(4)));
  rmSync(join(folder, `${segment}.ndjson`));
  spool.write(JSON.stringify(alert(5)));
  spool.write(line(row(6)));
  const next = openSpool(t, folder);
  next.begin(2000);
  const [leftover] = next.leftovers();
  t.equal(leftover?.segment, segment);
  t.same(leftover?.alerts, [{ sequence: 5, alert: alert(5) }]);
  t.same(
    leftover?.samples.map(({ columns }) => [toRows(columns), [...columns.sequence]]),
    [[[row(6)], [6]]],
  );
});

t.test('a spool that could not be created is created as soon as possible', async (t) => {
  const parent = temporaryFolder(t);
  const folder = join(parent, 'spool');
  writeFileSync(folder, 'a file has the folder’s path');
  const spool = openSpool(t, folder);
  t.throws(() => spool.begin(1000));
  t.throws(() => spool.write(line(row(1))), { code: 'EEXIST' });
  rmSync(folder);
  spool.write(line(row(2)));
  t.same(readFileSync(join(folder, `${spool.segment}.ndjson`), 'utf8').split('\n').length, 3, 'the lost line keeps its number');
  spool.end();
  const next = openSpool(t, folder);
  next.begin(2000);
  t.same(
    next.leftovers()[0]?.samples.map(({ columns }) => toRows(columns)),
    [[row(2)]],
  );
});

t.test('a closed spool accepts no lines and leaves no files', async (t) => {
  const folder = join(temporaryFolder(t), 'spool');
  const spool = openSpool(t, folder);
  t.throws(() => spool.write(line(row(1))), /not open/, 'nor does a spool that was never opened');
  const segment = spool.begin(1000);
  spool.end();
  spool.remove(segment);
  t.throws(() => spool.write(line(row(2))), /not open/);
  t.same(readdirSync(folder), []);
});

t.test('unreadable files are skipped and reported', async (t) => {
  const folder = join(temporaryFolder(t), 'spool');
  const spool = openSpool(t, folder);
  const first = spool.begin(1000);
  spool.write(line(row(1)));
  spool.begin(2000);
  spool.write(line(row(2)));
  spool.end();
  const problems: string[] = [];
  const next = openSpool(t, folder);
  next.begin(3000);
  const leftovers = next.leftovers(
    (path) => problems.push(path),
    (path) => {
      if (path.endsWith(`${first}.ndjson`)) throw new Error('EACCES');
      return readFileSync(path, 'utf8');
    },
  );
  t.same(
    leftovers.map(({ samples }) => samples.map(({ columns }) => toRows(columns))),
    [[[row(2)]]],
  );
  t.same(problems, [join(folder, `${first}.ndjson`)]);
  t.equal(next.leftovers().length, 2, 'the file stays for a later start');
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'no folder');
  problems.length = 0;
  t.same(
    next.leftovers((path) => problems.push(path)),
    [],
  );
  t.same(problems, [folder]);
});

t.test('the spool’s folder is systemd’s or a private one on tmpfs', async (t) => {
  const data = temporaryFolder(t);
  t.equal(spoolFolder(data, { RUNTIME_DIRECTORY: '/run/edge-health:/run/other' }), '/run/edge-health/spool');
  if (!existsSync('/dev/shm')) {
    t.equal(spoolFolder(data, {}), join(data, 'spool'));
    return;
  }
  const folder = spoolFolder(data, {});
  const other = spoolFolder(temporaryFolder(t), {});
  t.teardown(() => {
    for (const made of [folder, other]) rmdirSync(made);
  });
  t.match(folder, /^\/dev\/shm\/edge-health-\d+-[0-9a-f]{16}$/);
  t.equal(statSync(folder).mode & 0o777, 0o700);
  const alias = join(temporaryFolder(t), 'alias');
  symlinkSync(data, alias);
  t.equal(spoolFolder(alias, {}), folder, 'one data folder has one spool, under any name');
  t.not(other, folder);
  chmodSync(folder, 0o777);
  t.equal(spoolFolder(data, {}), join(data, 'spool'), 'a folder that others can write to is not used');
  chmodSync(folder, 0o700);
});

t.test('lines are written to the file at once', async (t) => {
  const folder = temporaryFolder(t);
  const spool = openSpool(t, folder);
  const segment = spool.begin(1);
  spool.write('{"a":1}');
  t.equal(readFileSync(join(folder, `${segment}.ndjson`), 'utf8'), '{"a":1}\n');
  t.equal(spool.bytes, 8);
});
