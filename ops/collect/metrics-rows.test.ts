import t from 'tap';
import { parseCsvRecord } from '../../src/core/csv.ts';
import { COLUMNS, HEADER, metricsRows } from './metrics-rows.ts';
import type { Observation } from './observation.ts';
import { statusWith } from './testing/status.ts';

const CLOCKS = { wallMs: Date.parse('2026-03-04T05:06:07.089Z'), bootId: 'boot/1', bootSeconds: 5000.12, monotonicSeconds: 4000.11 };

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
  const other = { ...own, node_name: 'robot_2', local: false, silent: true, status: 'UNKNOWN' as const, age_seconds: 99 };
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
    throttle_events: '3',
  });
  t.match(second, { node_name: 'robot_2', local: 'false', answered: 'true', status: 'UNKNOWN', stale: 'true', age_seconds: '99' });
  t.match(second, { cpu_percent: '', boot_id: '', samples: '', service_started: '', open_critical: '' });
  t.same(more, []);
});

t.test('what a service of an older version does not return is empty', async (t) => {
  const { process: _, ros: __, ...older } = statusWith();
  for (const status of [older, { ...older, process: null, ros: { published: null } }]) {
    const empty = { service_memory_bytes: '', service_cpu_seconds: '', published_statuses: '' };
    t.match(rowsOf({ status }), [{ answered: 'true', samples: '1000', ...empty }]);
  }
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
