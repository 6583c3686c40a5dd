/** A function of the C library, by the types of node:ffi: `i32`, `u64`, `buffer` … 64-bit integers are bigints. */
export interface Signature {
  readonly arguments: readonly string[];
  readonly return: string;
}

/** What of node:ffi is used; it is experimental, and its types are not there yet. */
interface Ffi {
  dlopen(
    file: string,
    signatures: Readonly<Record<string, Signature>>,
  ): { readonly functions: Readonly<Record<string, (...values: unknown[]) => number | bigint>> };
}

/** Functions of the system's C library, for what Node has no way to. Throws where they, or node:ffi, are not there. */
export function openLibc<Name extends string>(
  signatures: Readonly<Record<Name, Signature>>,
): Readonly<Record<Name, (...values: unknown[]) => number | bigint>> {
  const ffi = process.getBuiltinModule('node:ffi' as 'node:module') as unknown as Ffi | undefined;
  if (!ffi) throw new Error('this Node has no node:ffi, or was started with --no-experimental-ffi');
  return ffi.dlopen('libc.so.6', signatures).functions as Readonly<Record<Name, (...values: unknown[]) => number | bigint>>;
}
