import { execFileSync } from 'node:child_process';
import t from 'tap';
import { unchangedMappings } from './program-pages.ts';

interface Mapped {
  readonly where: string;
  readonly mode: string;
  readonly path: string;
  readonly anonymous?: number;
  readonly swap?: number;
  readonly dirty?: number;
}

const mapping = ({ where, mode, path, anonymous = 0, swap = 0, dirty = 0 }: Mapped): string =>
  `${where} ${mode} 00001000 fe:00 1234                       ${path}
Size:               1024 kB
Rss:                 512 kB
Private_Dirty:    ${String(dirty).padStart(6)} kB
Anonymous:        ${String(anonymous).padStart(6)} kB
Swap:             ${String(swap).padStart(6)} kB
VmFlags: rd ex mr mw me sd
`;

t.test('only unmodified mappings of the program may be released', async (t) => {
  const node = '/opt/edge health/node';
  const smaps = [
    { where: '00400000-00500000', mode: 'r--p', path: node },
    { where: '7f0000500000-7f0000600000', mode: 'r-xp', path: node },
    { where: '00600000-00610000', mode: 'r--p', path: node, anonymous: 8, dirty: 8 },
    { where: '00610000-00620000', mode: 'r--p', path: node, anonymous: 8 },
    { where: '00620000-00630000', mode: 'r--p', path: node, swap: 8 },
    { where: '00630000-00640000', mode: 'rw-p', path: node },
    { where: '00640000-00650000', mode: 'rwxp', path: node },
    { where: '00700000-00800000', mode: 'r-xp', path: `${node} (deleted)` },
    { where: '00800000-00900000', mode: 'r-xp', path: '/usr/lib/libc.so.6' },
    { where: '00900000-00a00000', mode: 'r-xp', path: '' },
  ]
    .map(mapping)
    .join('');
  t.same(unchangedMappings(smaps, node), [
    { from: 0x400000n, to: 0x500000n, residentBytes: 512 * 1024 },
    { from: 0x7f0000500000n, to: 0x7f0000600000n, residentBytes: 512 * 1024 },
  ]);
  t.same(unchangedMappings('', node), []);
  t.same(unchangedMappings(smaps.replace(/^Swap:.*\n/gm, ''), node), [], 'what the kernel does not tell may be anything');
});

/** Resident file memory before and after in kB, the bytes reported as released, and what a program can still do afterwards. */
function released(...options: string[]): { before: number; after: number; bytes: number; works: string } {
  const program = `
    import { readFileSync } from 'node:fs';
    import { releaseProgramPages } from ${JSON.stringify(new URL('program-pages.ts', import.meta.url).href)};
    const resident = () => Number(/^RssFile:\\s+(\\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
    const before = resident();
    const bytes = releaseProgramPages();
    const after = resident();
    const works = (await import('node:zlib')).gunzipSync((await import('node:zlib')).gzipSync('all of it')).toString();
    console.log(JSON.stringify({ before, after, bytes, works }));
  `;
  const argv = ['--disable-warning=ExperimentalWarning', ...options, '--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, argv, { encoding: 'utf8' }));
}

t.test('a process releases the pages of its program and continues', async (t) => {
  const { after, before, bytes, works } = released();
  t.ok(after < before / 2, `${before} kB before, ${after} kB after`);
  t.ok(bytes > 0 && bytes <= before * 1024, `${bytes} bytes`);
  t.equal(works, 'all of it');
});

t.test('without node:ffi the pages are kept', async (t) => {
  t.match(released('--no-experimental-ffi'), { bytes: 0, works: 'all of it' });
});
