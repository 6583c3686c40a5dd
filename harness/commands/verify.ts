import { resolve } from 'node:path';
import { LIMITS, verifyRun } from '../report/verify.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';

const HASH = /^[0-9a-f]{64}$/;

export const verify: HarnessCommand = {
  name: 'verify',
  summary: 'Find later changes of a record or its report',
  usage: 'verify DIR [--head HASH] [--json]',
  help: `Checks the hash chain of record.ndjson, judges the record again, and compares the report files with the result.
  --head HASH   a hash noted elsewhere (from the journal, from a printed report); it must be in the chain
  --json        one JSON document instead of text

${LIMITS}

Exit codes: 0 intact, 1 altered or inconsistent, 2 not judged (no record, a truncated record, no report of all of it), 64 wrong usage.`,
  options: { head: { type: 'string' }, json: { type: 'boolean' } },
  positionals: 1,
  run: async (given) => {
    const [named] = given.positionals;
    if (named === undefined) throw new Refusal(EXIT.usage, 'name the folder of a run: edge-health harness verify DIR');
    const head = text(given, 'head');
    if (head !== null && !HASH.test(head)) throw new Refusal(EXIT.usage, `--head is "${head}"; allowed: 64 hexadecimal digits`);
    const { document, exit, lines } = verifyRun(resolve(named), { head });
    process.stdout.write(given.options['json'] ? `${JSON.stringify(document, null, 2)}\n` : `${lines.join('\n')}\n`);
    return exit;
  },
};
