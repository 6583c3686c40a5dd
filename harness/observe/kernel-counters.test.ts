import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { readControlGroup, readProcess } from './kernel-counters.ts';

const PATH = '/system.slice/edge-health.service';
const NOTHING = { cpuSeconds: null, memoryBytes: null, anonBytes: null };

function tree(root: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
}

t.test('reads a control group of version 2', async (t) => {
  const root = temporaryFolder(t);
  tree(root, {
    [`${PATH}/cgroup.controllers`]: 'memory pids\n',
    [`${PATH}/cpu.stat`]: 'usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n',
    [`${PATH}/memory.current`]: '104857600\n',
    [`${PATH}/memory.stat`]: 'anon 52428800\nfile 41943040\nkernel 4194304\ninactive_anon 1\n',
  });
  t.same(readControlGroup(root, PATH), { cpuSeconds: 1.234567, memoryBytes: 104_857_600, anonBytes: 52_428_800 });
});

t.test('reads the CPU time without the memory controller', async (t) => {
  const root = temporaryFolder(t);
  tree(root, { [`${PATH}/cgroup.controllers`]: '\n', [`${PATH}/cpu.stat`]: 'usage_usec 5000000\n' });
  t.same(readControlGroup(root, PATH), { ...NOTHING, cpuSeconds: 5 });
});

t.test('reads control groups of version 1', async (t) => {
  const root = temporaryFolder(t);
  tree(root, {
    [`memory${PATH}/memory.usage_in_bytes`]: '104857600\n',
    [`memory${PATH}/memory.stat`]: 'cache 1\nrss 2\ntotal_cache 3\ntotal_rss 52428800\n',
    [`unified${PATH}/cpu.stat`]: 'usage_usec 2500000\n',
  });
  t.same(
    readControlGroup(root, PATH),
    { cpuSeconds: 2.5, memoryBytes: 104_857_600, anonBytes: 52_428_800 },
    'its controller of CPU time is off',
  );
  tree(root, { [`cpu,cpuacct${PATH}/cpuacct.usage`]: '3000000000\n' });
  t.equal(readControlGroup(root, PATH).cpuSeconds, 3);
  tree(root, { [`cpuacct${PATH}/cpuacct.usage`]: '4000000000\n' });
  t.equal(readControlGroup(root, PATH).cpuSeconds, 4);
});

t.test('returns no values for a group that does not exist or has unknown files', async (t) => {
  const root = temporaryFolder(t);
  t.same(readControlGroup(root, PATH), NOTHING);
  tree(root, {
    [`${PATH}/cgroup.controllers`]: '\n',
    [`${PATH}/cpu.stat`]: 'novel 1\n',
    [`${PATH}/memory.current`]: 'max\n',
    [`${PATH}/memory.stat`]: '',
  });
  t.same(readControlGroup(root, PATH), NOTHING);
});

t.test('reads the memory of a process, and its CPU time with that of its ended children', async (t) => {
  const root = temporaryFolder(t);
  const fields = ['S', ...Array.from({ length: 10 }, () => '0'), '150', '50', '20', '5', ...Array.from({ length: 20 }, () => '9')];
  tree(root, {
    '7/status': 'Name:\tnode\nVmHWM:\t   90000 kB\nVmRSS:\t   80000 kB\nThreads:\t9\n',
    '7/stat': `7 (a ) (b) ${fields.join(' ')}\n`,
    '8/status': 'Name:\tkthread\n',
    '8/stat': '8 (x) S 0\n',
  });
  t.same(readProcess(root, 7), { residentBytes: 81_920_000, cpuSeconds: 2.25 });
  t.same(readProcess(root, 8), { residentBytes: null, cpuSeconds: null });
  t.same(readProcess(root, 9), { residentBytes: null, cpuSeconds: null });
  const own = readProcess('/proc', process.pid);
  const { system, user } = process.cpuUsage();
  const tickSeconds = 0.01;
  t.ok((own.cpuSeconds ?? 0) > 0 && (own.cpuSeconds ?? 0) <= (system + user) / 1e6 + 2 * tickSeconds, 'as of this process');
  t.ok((own.residentBytes ?? 0) > 0);
});
