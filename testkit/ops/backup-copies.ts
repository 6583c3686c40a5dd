/** Checks of backup copies for every kind of target. Used by test/ops and test/system/ops. */
import { rmSync } from 'node:fs';
import type { Test } from 'tap';
import { BackupSite } from './backup-site.ts';

/** Checks copying and pruning; `there` lists the names at the target, `damage` truncates one of them. */
export async function copiesAsExpected(t: Test, site: BackupSite, there: () => string[], damage: (name: string) => void): Promise<void> {
  const days = ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05'];
  const at = (day: number): void => {
    site.nowMs = () => Date.parse(`${days[day]}T00:00:00Z`);
  };
  at(0);
  const first = await site.backup();
  t.equal(first.outcome.status, 'OK', first.text);
  t.same(first.document.copies[0]?.copied, [first.document.backup?.file]);
  t.same(there(), site.names);
  at(1);
  const second = await site.backup();
  t.same(second.document.copies[0]?.copied, [second.document.backup?.file], 'only what is missing');
  damage(site.names[0] as string);
  at(2);
  const third = await site.backup();
  t.same(third.document.copies[0]?.copied.length, 2, 'an incomplete copy is copied again');
  at(3);
  const fourth = await site.backup();
  t.same(fourth.document.copies[0]?.pruned, [first.document.backup?.file], 'the target keeps the same number');
  t.same(there(), site.names);
  // After the loss of the local backups, the copies at the target are not removed at once.
  rmSync(site.backups, { recursive: true });
  at(4);
  const fifth = await site.backup();
  t.equal(fifth.outcome.status, 'OK', fifth.text);
  t.equal(there().length, 3);
  t.same(there().slice(0, 2), [third.document.backup?.file, fourth.document.backup?.file]);
}

/** A site with a database whose backups are copied to these targets. */
export function siteCopyingTo(t: Test, copyTo: readonly string[], more: Readonly<Record<string, unknown>> = {}): BackupSite {
  const site = new BackupSite(t, { keep: 3, copy_to: copyTo, ...more });
  site.fill(60);
  return site;
}
