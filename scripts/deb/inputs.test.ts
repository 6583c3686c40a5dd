import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { newestInput } from './inputs.ts';

const FILES = ['src/main.ts', 'scripts/dashboard.ts', 'scripts/install.sh', 'new-folder/file', 'package.json', 'LICENSE'];
const RESULTS = [
  'dist/main.cjs',
  'build/deb/file',
  'node_modules/a/index.js',
  'data/edge-health.db',
  'src/main.test.ts',
  'test/a.ts',
  '.git/index',
];

t.test('a package is out of date after a change to any file but tests and results', async (t) => {
  process.chdir(temporaryFolder(t));
  for (const file of [...FILES, ...RESULTS]) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
  }
  let seconds = Math.floor(Date.now() / 1000) + 60;
  for (const file of RESULTS) utimesSync(file, seconds, seconds);
  t.ok(newestInput() < seconds * 1000, 'results and tests');
  for (const file of FILES) {
    seconds += 60;
    utimesSync(file, seconds, seconds);
    t.equal(newestInput(), seconds * 1000, file);
  }
  utimesSync('new-folder', seconds + 60, seconds + 60);
  t.equal(newestInput(), (seconds + 60) * 1000, 'as after a file in it was removed');
});
