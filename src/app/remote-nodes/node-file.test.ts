import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { leftNodes } from './node-file.ts';

t.test('changes that cannot be written are written later', async (t) => {
  const folder = join(temporaryFolder(t), 'data');
  writeFileSync(folder, ''); // A file in the place of the data folder, in which nothing can be written.
  const logged: string[] = [];
  const file = leftNodes(folder, (_level, message) => logged.push(message));
  file.write(new Map([['robot1', 1000]]));
  await file.flush();
  await file.flush();
  t.same(logged, ['file about remote nodes not saved'], 'logged once');
  t.same([...file.read()], [['robot1', 1000]]);
  rmSync(folder);
  mkdirSync(folder);
  await file.flush();
  t.same([...leftNodes(folder, () => undefined).read()], [['robot1', 1000]]);
});
