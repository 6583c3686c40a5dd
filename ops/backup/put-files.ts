import { chmod, link, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { FILE_MODE, makeFolder } from '../lib/folder.ts';
import type { ManifestFile } from './manifest.ts';
import type { Undone } from './swap-database.ts';

/** What becomes of a file of a backup: it is not there yet; it is the same; or another of its name is there, which stays or gives way. */
export type Fate = 'added' | 'same' | 'kept' | 'replaced';

export interface Placed {
  readonly path: string;
  readonly fate: Fate;
}

export interface PutOptions {
  readonly files: readonly ManifestFile[];
  /** Where the backup was unpacked. */
  readonly from: string;
  /** Where a file of a backup belongs. */
  readonly placeOf: (path: string) => string;
  /** Where what gives way goes. */
  readonly asideOf: (path: string) => string;
  /** Whether a file of the same name and other content gives way. */
  readonly replaces: boolean;
}

/** What would become of each file. `from` holds the contents. */
export async function fatesOf({ files, from, placeOf, replaces }: Omit<PutOptions, 'asideOf'>): Promise<Placed[]> {
  const fates: Placed[] = [];
  for (const { path, size } of files) {
    const there = await stat(placeOf(path)).catch(() => null);
    if (!there) fates.push({ path, fate: 'added' });
    else if (there.isFile() && there.size === size && (await readFile(placeOf(path))).equals(await readFile(join(from, path))))
      fates.push({ path, fate: 'same' });
    else fates.push({ path, fate: replaces ? 'replaced' : 'kept' });
  }
  return fates;
}

/** Puts files in their places, each at once; `undone` collects how each is undone, the last first. */
export async function putFiles(options: PutOptions, undone: Undone): Promise<Placed[]> {
  const { asideOf, from, placeOf } = options;
  const fates = await fatesOf(options);
  for (const { fate, path } of fates) {
    if (fate === 'same' || fate === 'kept') continue;
    const source = join(from, path);
    const place = placeOf(path);
    const aside = asideOf(path);
    await makeFolder(dirname(place));
    await chmod(source, FILE_MODE);
    if (fate === 'replaced') await link(place, aside);
    await rename(source, place);
    await syncFolder(dirname(place));
    undone.unshift(() => (fate === 'replaced' ? rename(aside, place) : rm(place, { force: true })));
  }
  return fates;
}
