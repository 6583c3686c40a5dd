import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { BackupSite } from '../../../testkit/ops/backup-site.ts';

t.test('`tar --zstd`, as in the manual, unpacks a backup', async (t) => {
  const site = new BackupSite(t);
  site.fill(60);
  site.write('metrics/metrics_2026-03-04.csv', 'time,node\n1,a\n');
  t.equal((await site.backup()).outcome.status, 'OK');
  const out = temporaryFolder(t);
  execFileSync('tar', ['--zstd', '-xf', site.newest, '-C', out]);
  t.equal(readFileSync(join(out, 'metrics/metrics_2026-03-04.csv'), 'utf8'), 'time,node\n1,a\n');
});
