import { readRegularFileSync } from '../core/files/regular-file.ts';

const MAX_BYTES = 4096;

export class UnusableToken extends Error {
  override readonly name = 'UnusableToken';
}

/** The bearer token in `rest.token_file`; null: no authentication. Throws UnusableToken for an invalid file. */
export function readToken(file: string | null): string | null {
  if (file === null) return null;
  let token: string;
  try {
    token = readRegularFileSync(file, MAX_BYTES).toString().trim();
  } catch (error) {
    throw new UnusableToken(`rest.token_file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
  if (!/^\S{16,512}$/.test(token)) throw new UnusableToken(`rest.token_file ${file} must hold one word of 16 to 512 characters`);
  return token;
}
