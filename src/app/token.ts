import { readFileSync, statSync } from 'node:fs';

export class UnusableToken extends Error {
  override readonly name = 'UnusableToken';
}

/** The bearer token in `rest.token_file`; null: no authentication. Throws UnusableToken for an invalid file. */
export function readToken(file: string | null): string | null {
  if (file === null) return null;
  let token: string;
  try {
    if (!statSync(file).isFile()) throw new Error('not a file'); // Reading a FIFO would block until it has a writer.
    token = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UnusableToken(`rest.token_file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  }
  if (!/^\S{16,512}$/.test(token)) throw new UnusableToken(`rest.token_file ${file} must hold one word of 16 to 512 characters`);
  return token;
}
