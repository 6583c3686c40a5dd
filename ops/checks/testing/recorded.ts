import { readFileSync } from 'node:fs';

/** The recorded output of a program; testkit/fixtures/health-check/README.md lists the programs and dates. */
export function recorded(name: string): string {
  return readFileSync(new URL(`../../../testkit/fixtures/health-check/${name}`, import.meta.url), 'utf8');
}
