import { readFileSync } from 'node:fs';

/** What a program printed; test/fixtures/health-check/README.md says which and when. */
export function recorded(name: string): string {
  return readFileSync(new URL(`../../../test/fixtures/health-check/${name}`, import.meta.url), 'utf8');
}
