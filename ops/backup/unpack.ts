import { chmod, open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../lib/folder.ts';
import { MANIFEST } from './manifest.ts';
import { type Checked, Damaged, readArchive } from './read-archive.ts';

export interface UnpackOptions {
  readonly folder: string;
  /** What is wanted; all by default. */
  readonly wants?: (path: string) => boolean;
  readonly signal: AbortSignal;
}

/** Unpacks a backup that was checked before, into a folder of its own, and checks it once more on the way. Files get their modes of the backup. */
export async function unpack(archive: string, checked: Checked, { folder, signal, wants = () => true }: UnpackOptions): Promise<void> {
  const made = new Set<string>();
  const again = await readArchive(
    archive,
    async ({ name }) => {
      if (!wants(name)) return null;
      const path = join(folder, name);
      if (!made.has(dirname(path))) await makeFolder(dirname(path));
      made.add(dirname(path));
      return open(path, 'wx', 0o600);
    },
    signal,
  );
  if (again.sha256 !== checked.sha256) throw new Damaged(`${archive} changed while it was read`);
  for (const { mode, path } of checked.manifest.files) if (wants(path)) await chmod(join(folder, path), Number.parseInt(mode, 8));
  await writeFile(join(folder, MANIFEST), `${JSON.stringify(checked.manifest, null, 1)}\n`, { mode: 0o640 });
}
