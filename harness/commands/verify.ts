import { resolve } from 'node:path';
import { LIMITS, verifyRun } from '../report/verify.ts';
import { EXIT, type HarnessCommand, Refusal, text } from './command.ts';

const HASH = /^[0-9a-f]{64}$/;

export const verify: HarnessCommand = {
  name: 'verify',
  summary: 'Find any change that was made to a record or its report afterwards',
  usage: 'verify DIR [--head HASH] [--json]',
  help: `Follows the chain of hashes through record.ndjson, judges it anew, and holds the reports beside it against that.
  --head HASH   a hash that was noted elsewhere (of the journal, of a printed report): it must be in the chain
  --json        one JSON document instead of text

${LIMITS}

Exit codes: 0 intact, 1 altered or disagreeing, 2 not judged: no record, one that is cut off at its end, no report of all of it; 64 wrong usage.`,
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
