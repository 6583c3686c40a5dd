import { readFileSync } from 'node:fs';

/** What a program printed; testkit/fixtures/health-check/README.md says which and when. */
export function recorded(name: string): string {
  return readFileSync(new URL(`../../../testkit/fixtures/health-check/${name}`, import.meta.url), 'utf8');
}
