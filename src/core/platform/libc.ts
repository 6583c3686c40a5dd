/** A function of the C library, by the types of node:ffi: `i32`, `u64`, `buffer` … 64-bit integers are bigints. */
export interface Signature {
  readonly arguments: readonly string[];
  readonly return: string;
}

/** The part of node:ffi that is used. It is experimental and has no types yet. */
interface Ffi {
  dlopen(
    file: string,
    signatures: Readonly<Record<string, Signature>>,
  ): { readonly functions: Readonly<Record<string, (...values: unknown[]) => number | bigint>> };
}

/** Opens functions of the C library that Node does not offer. Throws if node:ffi or one of the functions is missing. */
export function openLibc<Name extends string>(
  signatures: Readonly<Record<Name, Signature>>,
): Readonly<Record<Name, (...values: unknown[]) => number | bigint>> {
  const ffi = process.getBuiltinModule('node:ffi' as 'node:module') as unknown as Ffi | undefined;
  if (!ffi) throw new Error('this Node has no node:ffi, or was started with --no-experimental-ffi');
  return ffi.dlopen('libc.so.6', signatures).functions as Readonly<Record<Name, (...values: unknown[]) => number | bigint>>;
}
