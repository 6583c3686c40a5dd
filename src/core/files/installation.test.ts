import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { installation } from './installation.ts';

t.test('the default action is dry-run in a checkout and poweroff in the package', async (t) => {
  const folder = temporaryFolder(t);
  const manifest = join(folder, 'package.json');
  const of = (text: object) => {
    writeFileSync(manifest, JSON.stringify(text));
    return installation(pathToFileURL(manifest));
  };
  t.same(of({ version: '1.2.3' }), {
    version: '1.2.3',
    isPackage: false,
    standardAction: 'dry-run',
    folder,
    dataFolder: join(folder, 'data'),
  });
  t.same(of({ version: '1.2.3', packaged: true }), {
    version: '1.2.3',
    isPackage: true,
    standardAction: 'poweroff',
    folder: '/var/lib/edge-health',
    dataFolder: '/var/lib/edge-health',
  });
  t.equal(installation().standardAction, 'dry-run', 'this is a checkout');
});
