/**
 * Records when this process synchronises files and folders with the disk, and its renames between. A quick test cannot cut the power, but
 * it can show that a file is synchronised before it gets its name, and both before the caller continues.
 */
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

type AnyFunction = (this: unknown, ...given: unknown[]) => unknown;

/**
 * From here on each call of the returned function gives what was recorded since the call before: `sync NAME`, `rename OLD NEW`, names
 * without their folder. A module that keeps functions of node:fs has to be imported after this.
 */
export async function recordSyncs(): Promise<() => string[]> {
  let recorded: string[] = [];
  const observe = (object: object, name: string, describe: (self: unknown, given: readonly unknown[]) => string): void => {
    const original = (object as Record<string, AnyFunction>)[name] as AnyFunction;
    const observed: AnyFunction = function (...given) {
      recorded.push(describe(this, given));
      return original.apply(this, given);
    };
    Object.assign(object, { [name]: observed });
  };
  const sync = (descriptor: number): string => `sync ${basename(fs.readlinkSync(`/proc/self/fd/${descriptor}`))}`;
  for (const name of ['fsync', 'fsyncSync', 'fdatasync', 'fdatasyncSync']) observe(fs, name, (_, [fd]) => sync(fd as number));
  for (const name of ['rename', 'renameSync'])
    observe(fs, name, (_, [from, to]) => `rename ${basename(from as string)} ${basename(to as string)}`);
  const handle = await open('/dev/null');
  for (const name of ['sync', 'datasync']) observe(Object.getPrototypeOf(handle), name, (self) => sync((self as typeof handle).fd));
  await handle.close();
  syncBuiltinESMExports();
  return () => {
    const taken = recorded;
    recorded = [];
    return taken;
  };
}
