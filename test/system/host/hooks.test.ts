import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { ShutdownContext } from '../../../src/core/shutdown/shutdown.ts';
import { hookItems } from '../../../src/shutdown/runners.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';

const NOBODY = 65_534;
const CONTEXT: ShutdownContext = {
  requestId: '01J',
  reason: 'MAINTENANCE',
  requestedBy: 'operator',
  action: 'dry-run',
  secondsLeft: () => 12,
};

t.test('a hook of another user is not run', async (t) => {
  const folder = temporaryFolder(t);
  const hook = join(folder, '10-foreign');
  writeFileSync(hook, '#!/bin/sh\n', { mode: 0o755 });
  chownSync(hook, NOBODY, NOBODY);
  const [item] = await hookItems({ folder, required: true, environment: process.env, log: () => undefined, uid: 0 });
  t.match(await item?.start(CONTEXT).ended, /not run: .*10-foreign belongs to user 65534/);
});
