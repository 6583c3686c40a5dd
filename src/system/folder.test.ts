import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { nearestExisting } from './folder.ts';

t.test('the nearest folder that exists', async (t) => {
  const folder = temporaryFolder(t);
  t.equal(nearestExisting(folder), folder);
  t.equal(nearestExisting(join(folder, 'a/b/c')), folder);
  t.notOk(existsSync(join(folder, 'a')));
});
