import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { DAY_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { appendMetrics, COLUMNS, HEADER, metricsRows } from './metrics-rows.ts';
import type { Observation } from './observation.ts';
import { statusWith } from './testing/status.ts';

const NOW = Date.parse('2026-03-04T05:06:07.089Z');
const CLOCKS = { wallMs: NOW, bootId: 'boot/1', bootSeconds: 5000.12, monotonicSeconds: 4000.11 };

function cellsOf(row: string): Record<string, string> {
  const cells = parseCsvRecord(row.trimEnd()) ?? [];
  return Object.fromEntries(COLUMNS.map((column, i) => [column, cells[i] ?? 'missing']));
}

const rowsOf = (more: Partial<Observation>): Record<string, string>[] =>
  metricsRows({ ...CLOCKS, status: statusWith(), values: new Map(), reason: null, ...more }, 'configured').map(cellsOf);

t.test('the header names each column once', async (t) => {
  t.equal(HEADER, `${COLUMNS.join(',')}\r\n`);
  t.equal(new Set(COLUMNS).size, COLUMNS.length);
});

t.test('this machine has a full row, every other node a short one', async (t) => {
  const [own] = statusWith().nodes;
  if (!own) throw new Error('unreachable');
  const other = { ...own, node_name: 'robot_2', local: false, stale: true, status: 'UNKNOWN' as const, age_seconds: 99 };
  const readings = { cpu_percent: 12.34, memory_percent: 50, disk_percent: 0, temperature: null };
  const values = new Map([['unit_7', { status: 'WARNING', sampleTime: '2026-03-04T05:06:07.050Z', readings }]]);
  const [first, second, ...more] = rowsOf({ status: statusWith({ nodes: [own, other] }), values });
  t.match(first, {
    time: '2026-03-04T05:06:07.089Z',
    boot_seconds: '5000.12',
    node_name: 'unit_7',
    local: 'true',
    answered: 'true',
    reason: '',
    status: 'WARNING',
    sample_time: '2026-03-04T05:06:07.050Z',
    cpu_percent: '12.34',
    disk_percent: '0',
    temperature: '',
    boot_id: 'boot/1',
    service_started: '2026-03-01T00:00:00.000Z',
    service_memory_bytes: '60000000',
    service_cpu_seconds: '4',
    samples: '1000',
    missed_samples: '0',
    published_statuses: '990',
    remote_statuses: '',
    undervoltage: '',
    undervoltage_events: '2',
    throttle_events: '3',
  });
  t.match(second, { node_name: 'robot_2', local: 'false', answered: 'true', status: 'UNKNOWN', stale: 'true', age_seconds: '99' });
  t.match(second, { cpu_percent: '', boot_id: '', samples: '', service_started: '', open_critical: '' });
  t.same(more, []);
});

t.test('the column of a null value is empty', async (t) => {
  const status = statusWith({ ros: { published: null } });
  t.match(rowsOf({ status }), [{ answered: 'true', samples: '1000', published_statuses: '' }]);
});

t.test('without a response there is one row with the reason and no value', async (t) => {
  const reason = 'http://127.0.0.1:5000/status: "no",\nanswer';
  const [row, ...more] = rowsOf({ status: null, reason });
  t.match(row, { node_name: 'configured', local: 'true', answered: 'false', reason: reason.replace('\n', '\\n'), boot_seconds: '5000.12' });
  const filled = COLUMNS.filter((column) => row?.[column] !== '');
  const known = ['time', 'boot_seconds', 'node_name', 'local', 'answered', 'reason', 'boot_id', 'monotonic_seconds'];
  t.same(filled, known);
  t.same(more, []);
});

const A = 'time,value\r\n';
const B = 'time,value,more\r\n';

t.test('a day has one file; changed columns begin another file, which is then continued', async (t) => {
  const folder = join(temporaryFolder(t), 'metrics');
  const append = (header: string, row: string, ms = NOW) => appendMetrics(folder, header, row, ms);
  const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
  t.match(await append(A, '1\r\n'), { file: 'metrics_2026-03-04.csv', isNew: true, cut: 0 });
  t.match(await append(A, '2\r\n'), { file: 'metrics_2026-03-04.csv', isNew: false });
  t.match(await append(B, '3\r\n'), { file: 'metrics_2026-03-04.2.csv', isNew: true });
  t.match(await append(B, '4\r\n'), { file: 'metrics_2026-03-04.2.csv', isNew: false });
  t.match(await append(A, '5\r\n'), { file: 'metrics_2026-03-04.3.csv', isNew: true }, 'the order of files is that of writing');
  t.match(await append(A, '6\r\n', NOW - DAY_MS), { file: 'metrics_2026-03-03.csv', isNew: true }, 'a clock that was set back');
  t.equal(text('metrics_2026-03-04.csv'), `${A}1\r\n2\r\n`);
  t.equal(text('metrics_2026-03-04.2.csv'), `${B}3\r\n4\r\n`);
  for (let n = 4; n < 12; n += 1) await append(n % 2 ? A : B, 'x\r\n');
  t.ok(readdirSync(folder).includes('metrics_2026-03-04.10.csv'));
});

t.test('a header torn at any byte is written again; a file of zeros is not continued', async (t) => {
  for (let at = 0; at <= A.length; at += 1) {
    const folder = temporaryFolder(t);
    const file = join(folder, 'metrics_2026-03-04.csv');
    writeFileSync(file, A.slice(0, at));
    t.match(await appendMetrics(folder, A, '1\r\n', NOW), { file: 'metrics_2026-03-04.csv', cut: at === A.length ? 0 : at });
    t.equal(readFileSync(file, 'utf8'), `${A}1\r\n`);
  }
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'metrics_2026-03-04.csv'), Buffer.alloc(4096));
  t.match(await appendMetrics(folder, A, '1\r\n', NOW), { file: 'metrics_2026-03-04.2.csv' });
});
