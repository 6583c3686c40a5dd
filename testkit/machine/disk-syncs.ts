/**
 * Records calls of fsync and rename in this process. A unit test cannot cut the power, but it can verify that a file is synchronised before
 * it is renamed, and the folder before the caller continues.
 */
import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

type AnyFunction = (this: unknown, ...given: unknown[]) => unknown;

/**
 * Starts recording. Each call of the returned function returns the calls since the previous one: `sync NAME`, `rename OLD NEW`, with names
 * without their folder. Modules that store references to functions of node:fs must be imported afterwards.
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
    const result = recorded;
    recorded = [];
    return result;
  };
}
