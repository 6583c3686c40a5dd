import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { recorded } from './testing/recorded.ts';
import { judgeMemory, judgeUnit } from './unit-check.ts';
import { type Failure, MAIN_UNIT, parseFailures, parseUnits, readUsedBytes, SCHEDULER_UNIT, type Unit, unitOfConfig } from './units.ts';

const units = (name: string): Unit[] => parseUnits(recorded(`systemctl-${name}.txt`));
const main = (name: string): Unit => units(name).find(({ id }) => id === MAIN_UNIT) as Unit;
const judged = (unit: Unit, grown = 0, failures: readonly Failure[] | null = null) => judgeUnit({ unit, grown, failures });

t.test('what systemctl prints', async (t) => {
  t.same(
    units('running').map(({ id }) => id),
    [MAIN_UNIT, SCHEDULER_UNIT, 'edge-health@sensor_node.service'],
  );
  t.match(main('running'), {
    load: 'loaded',
    file: 'enabled',
    active: 'active',
    sub: 'running',
    restarts: 0,
    memoryBytes: 233472,
    memoryMaxBytes: 268435456,
    controlGroup: '/system.slice/edge-health.service',
    since: 'Sat 2026-11-21 20:22:53 UTC',
  });
  t.match(main('not-installed'), { load: 'not-found', memoryBytes: null, memoryMaxBytes: null });
  t.same(parseUnits(''), []);
});

t.test('whatever it prints, parsing does not fail', async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'Id=\n[]x9 infty') }),
      (text) => Array.isArray(parseUnits(text)) && Array.isArray(parseFailures(text)),
    ),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('the states of the unit', async (t) => {
  t.match(judged(main('running')), { status: 'OK', message: /^runs since Sat 2026-11-21 20:22:53 UTC$/ });
  t.match(judged(main('not-installed')), { status: 'OK', isNote: true });
  t.match(judged(main('stopped')), { status: 'CRITICAL', message: 'it is stopped', remedy: 'systemctl enable --now edge-health.service' });
  t.match(judged({ ...main('stopped'), file: 'enabled' }), { remedy: 'systemctl start edge-health.service' });
  t.match(judged(main('auto-restart')), { status: 'CRITICAL', message: 'it was killed, and is about to be restarted' });
  t.match(judged(main('failed')), {
    status: 'CRITICAL',
    message: 'it failed: it ended with an error',
    remedy: 'journalctl -u edge-health -n 50; then systemctl reset-failed edge-health.service; systemctl start edge-health.service',
  });
  t.match(judged(main('failed-configuration')), {
    status: 'CRITICAL',
    message: /its configuration has errors/,
    remedy: /^edge-health check-config/,
  });
  t.match(judged(main('masked')), { status: 'CRITICAL', remedy: /unmask/ });
  t.match(judged({ ...main('failed'), result: 'watchdog' }), { message: /killed by the watchdog/ });
  t.match(judged({ ...main('failed'), result: 'something-new' }), { message: 'it failed: something-new' });
  t.match(judged({ ...main('running'), load: 'bad-setting' }), { status: 'CRITICAL', message: /bad-setting/ });
  t.match(judged({ ...main('running'), active: 'activating', sub: 'start' }), { status: 'WARNING' });
});

t.test('restarts since the last check, with what the journal knows of them', async (t) => {
  const failures = parseFailures(recorded('journal.ndjson'));
  t.same(
    failures.slice(0, 3).map(({ result }) => result),
    ['signal', 'watchdog', 'exit-code'],
  );
  t.equal(failures[0]?.atMs, 1795292573771.586);
  t.match(judged(main('restarted')), { status: 'OK', message: /restarted once before/ });
  t.match(judged(main('restarted'), 1), {
    status: 'WARNING',
    message: 'restarted once since the last check',
    remedy: 'journalctl -u edge-health -n 50',
  });
  t.match(judged(main('restarted'), 2, failures.slice(0, 2)), {
    status: 'WARNING',
    message: 'restarted 2 times since the last check (signal, watchdog); 1 watchdog kill in 24 h',
    measured: { watchdog_kills_24h: 1, restarts_since_last_check: 2 },
  });
});

t.test('roles count when they are enabled or have failed', async (t) => {
  const roles = units('roles').filter(({ id }) => id.includes('@'));
  t.same(roles.map(({ id }) => id).sort(), ['edge-health@a.service', 'edge-health@b.service']);
  for (const role of roles) {
    t.match(judged(role), { name: /^unit edge-health@[ab]$/, status: 'CRITICAL', remedy: /^systemctl start edge-health@[ab]\.service$/ });
    t.equal(judged({ ...role, file: 'disabled' }), null);
    t.match(judged({ ...role, file: 'disabled', active: 'failed' }), { status: 'CRITICAL' });
  }
});

t.test('the unit of a configuration file', async (t) => {
  t.equal(unitOfConfig('/etc/edge-health/edge_health_config.yaml'), MAIN_UNIT);
  t.equal(unitOfConfig('/home/me/config/edge_health_config.yaml'), MAIN_UNIT);
  t.equal(unitOfConfig('/etc/edge-health/sensor_node_config.yaml'), 'edge-health@sensor_node.service');
});

t.test('memory: the page cache is not counted', async (t) => {
  const root = temporaryFolder(t);
  const group = join(root, 'sys/fs/cgroup/system.slice/edge-health.service');
  mkdirSync(group, { recursive: true });
  const unit = { ...main('running'), memoryBytes: 250_000_000, memoryMaxBytes: 256_000_000 };
  t.equal(await readUsedBytes(unit, root), null);
  writeFileSync(join(group, 'memory.stat'), 'anon 70000000\nfile 165000000\nshmem 5000000\nslab_reclaimable 10000000\nslab 12000000\n');
  const used = await readUsedBytes(unit, root);
  t.equal(used, 80_000_000);
  rmSync(group, { recursive: true });
  const older = join(root, 'sys/fs/cgroup/memory/system.slice/edge-health.service');
  mkdirSync(older, { recursive: true });
  writeFileSync(join(older, 'memory.stat'), 'cache 1\ntotal_cache 175000000\ntotal_rss 70000000\ntotal_shmem 5000000\n');
  t.equal(await readUsedBytes(unit, root), 80_000_000, 'with control groups of version 1');
  t.match(judgeMemory(unit, used), { status: 'OK', message: '80 of 256 MB' });
  t.match(judgeMemory(unit, 240_000_000), { status: 'WARNING', name: 'memory of edge-health', remedy: /MemoryMax=/ });
  t.equal(judgeMemory(unit, null), null);
  t.equal(judgeMemory({ ...unit, memoryMaxBytes: null }, 1), null);
  t.equal(await readUsedBytes({ ...unit, controlGroup: '' }, root), null);
});
