import { existsSync, globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { ROOT } from '../../testkit/service/service.ts';
import { PARTS } from './parts.ts';

t.test('every part has tests, and every folder of system tests is a part', async (t) => {
  for (const { name, folder } of PARTS) t.ok(globSync(`${folder}/**/*.test.ts`, { cwd: ROOT }).length > 0, name);
  const folders = new Set(globSync('test/system/*/', { cwd: ROOT }).map((folder) => folder.replace(/\/$/, '')));
  t.ok(folders.size > 5, 'the folders were found');
  t.same(
    [...folders].filter((folder) => !PARTS.some((part) => part.folder === folder)),
    [],
  );
  t.ok(existsSync(`${ROOT}/test/faults`));
});

t.test('CONTRIBUTING.md contains the table of parts', async (t) => {
  const page = readFileSync(`${ROOT}/CONTRIBUTING.md`, 'utf8');
  for (const { name, proves, needs, minutes } of PARTS) t.match(page, `| \`${name}\` | ${proves} | ${needs} | ${minutes} |`);
});
