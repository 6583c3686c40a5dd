import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { account, compare, type MutationReport } from './report.ts';
import { REVIEWED } from './reviewed.ts';

/** Fails when a mutant survived that nobody looked at, or a review is of none: `node harness/mutation/check.ts FOLDER`. */
const [folder = 'build/mutation'] = process.argv.slice(2);
const report = JSON.parse(readFileSync(join(folder, 'mutation.json'), 'utf8')) as MutationReport;
const outcome = compare(report, REVIEWED);
const text = account(outcome, REVIEWED);
writeFileSync(join(folder, 'mutation.md'), text);
process.stdout.write(text);
const { counts, stale, unknown } = outcome;
if (unknown.length > 0)
  process.stderr.write(`${unknown.length} mutants were noticed by no test: test them, or review them in harness/mutation/reviewed.ts\n`);
if (stale.length > 0)
  process.stderr.write(`${stale.length} reviews are of mutants that do not survive: take them out of harness/mutation/reviewed.ts\n`);
if ((counts['Killed'] ?? 0) === 0) process.stderr.write('no mutant was killed: nothing was tried\n');
process.exitCode = unknown.length > 0 || stale.length > 0 || (counts['Killed'] ?? 0) === 0 ? 1 : 0;
