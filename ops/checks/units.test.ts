import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { parseShownUnits } from '../../src/client/systemctl-show.ts';
import { MAIN_UNIT, SCHEDULER_UNIT } from '../../src/client/unit-limits.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { UNIT_PROPERTIES, type Unit } from './check.ts';
import { recorded } from './testing/recorded.ts';
import { evaluateMemory, evaluateUnit, parseFailures, readUsedBytes } from './units.ts';

const units = (name: string): Unit[] => parseShownUnits(recorded(`systemctl-${name}.txt`), UNIT_PROPERTIES);
const main = (name: string): Unit => units(name).find(({ Id }) => Id === MAIN_UNIT) as Unit;
const evaluated = (unit: Unit, restarted = 0, failures: readonly string[] | null = null) => evaluateUnit(unit, restarted, failures);

t.test('parses the output of systemctl', async (t) => {
  t.same(
    units('running').map(({ Id }) => Id),
    [MAIN_UNIT, SCHEDULER_UNIT, 'edge-health@sensor_node.service'],
  );
  t.match(main('running'), {
    LoadState: 'loaded',
    UnitFileState: 'enabled',
    ActiveState: 'active',
    SubState: 'running',
    NRestarts: '0',
    MemoryCurrent: '233472',
    MemoryMax: '268435456',
    ControlGroup: '/system.slice/edge-health.service',
    StateChangeTimestamp: 'Sat 2026-11-21 20:22:53 UTC',
  });
  t.match(main('not-installed'), { LoadState: 'not-found', MemoryCurrent: '[not set]', MemoryMax: 'infinity' });
});

t.test('parsing does not fail for any output', async () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'Id=\n[]x9 infty') }), (text) => Array.isArray(parseFailures(text))),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('judges the state of the unit', async (t) => {
  t.match(evaluated(main('running')), { status: 'OK', message: /^runs since Sat 2026-11-21 20:22:53 UTC$/ });
  t.match(evaluated(main('not-installed')), { status: 'OK', isNote: true });
  t.match(evaluated(main('stopped')), {
    status: 'CRITICAL',
    message: 'it is stopped',
    remedy: 'systemctl enable --now edge-health.service',
  });
  t.match(evaluated({ ...main('stopped'), UnitFileState: 'enabled' }), { remedy: 'systemctl start edge-health.service' });
  t.match(evaluated(main('auto-restart')), { status: 'CRITICAL', message: 'it was killed, and is about to be restarted' });
  t.match(evaluated(main('failed')), {
    status: 'CRITICAL',
    message: 'it failed: it ended with an error',
    remedy: 'journalctl -u edge-health -n 50; then systemctl reset-failed edge-health.service; systemctl start edge-health.service',
  });
  t.match(evaluated(main('failed-configuration')), {
    status: 'CRITICAL',
    message: /its configuration has errors/,
    remedy: /^edge-health check-config/,
  });
  t.match(evaluated(main('masked')), { status: 'CRITICAL', remedy: /unmask/ });
  t.match(evaluated({ ...main('failed'), Result: 'watchdog' }), { message: /killed by the watchdog/ });
  t.match(evaluated({ ...main('failed'), Result: 'something-new' }), { message: 'it failed: something-new' });
  t.match(evaluated({ ...main('running'), LoadState: 'bad-setting' }), { status: 'CRITICAL', message: /bad-setting/ });
  t.match(evaluated({ ...main('running'), ActiveState: 'activating', SubState: 'start' }), { status: 'WARNING' });
});

t.test('reports restarts since the last check, with their causes from the journal', async (t) => {
  const failures = parseFailures(recorded('journal.ndjson'));
  t.same(failures.slice(0, 3), ['signal', 'watchdog', 'exit-code']);
  t.match(evaluated(main('restarted')), { status: 'OK', message: /restarted once before/ });
  t.match(evaluated(main('restarted'), 1), {
    status: 'WARNING',
    message: 'restarted once since the last check',
    remedy: 'journalctl -u edge-health -n 50',
  });
  t.match(evaluated(main('restarted'), 2, failures.slice(0, 2)), {
    status: 'WARNING',
    message: 'restarted 2 times since the last check (signal, watchdog); 1 watchdog kill in 24 h',
    measured: { watchdog_kills_24h: 1, restarts_since_last_check: 2 },
  });
});

t.test('roles are judged when they are enabled or have failed', async (t) => {
  const roles = units('roles').filter(({ Id }) => Id.includes('@'));
  t.same(roles.map(({ Id }) => Id).sort(), ['edge-health@a.service', 'edge-health@b.service']);
  for (const role of roles) {
    t.match(evaluated(role), {
      name: /^unit edge-health@[ab]$/,
      status: 'CRITICAL',
      remedy: /^systemctl start edge-health@[ab]\.service$/,
    });
    t.equal(evaluated({ ...role, UnitFileState: 'disabled' }), null);
    t.match(evaluated({ ...role, UnitFileState: 'disabled', ActiveState: 'failed' }), { status: 'CRITICAL' });
  }
});

t.test('memory: the page cache is not counted', async (t) => {
  const root = temporaryFolder(t);
  const group = join(root, 'sys/fs/cgroup/system.slice/edge-health.service');
  mkdirSync(group, { recursive: true });
  const unit = { ...main('running'), MemoryCurrent: '250000000', MemoryMax: '256000000' };
  t.equal(await readUsedBytes(unit, root), null);
  writeFileSync(join(group, 'memory.stat'), 'anon 70000000\nfile 165000000\nshmem 5000000\nslab_reclaimable 10000000\nslab 12000000\n');
  const used = await readUsedBytes(unit, root);
  t.equal(used, 80_000_000);
  rmSync(group, { recursive: true });
  const older = join(root, 'sys/fs/cgroup/memory/system.slice/edge-health.service');
  mkdirSync(older, { recursive: true });
  writeFileSync(join(older, 'memory.stat'), 'cache 1\ntotal_cache 175000000\ntotal_rss 70000000\ntotal_shmem 5000000\n');
  t.equal(await readUsedBytes(unit, root), 80_000_000, 'with control groups of version 1');
  t.match(evaluateMemory(unit, used), { status: 'OK', message: '80 of 256 MB' });
  t.match(evaluateMemory(unit, 240_000_000), { status: 'WARNING', name: 'memory of edge-health', remedy: /MemoryMax=/ });
  t.equal(evaluateMemory(unit, null), null);
  t.equal(evaluateMemory({ ...unit, MemoryMax: 'infinity' }, 1), null);
  t.equal(await readUsedBytes({ ...unit, ControlGroup: '' }, root), null);
});
