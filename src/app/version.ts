import { readFileSync } from 'node:fs';
import { PROGRAMS } from './programs.ts';

/** The product's version, from its package manifest. */
export function productVersion(): string {
  return (JSON.parse(readFileSync(PROGRAMS.manifest, 'utf8')) as { version: string }).version;
}
