import type { CoverageEvidence, Evidence } from '../evidence.ts';
import { decimalDuration, rounded } from '../format.ts';
import { type Judgement, marginOf, type Table } from '../judgement.ts';

const LIMIT_SECONDS = 300;

/** Passes if there is no gap above five minutes, neither in the stored samples nor in the rows collected by maintenance jobs. */
export function judgeIntegrity({ integrity }: Evidence): Judgement {
  const { stored, collected } = integrity;
  const scanned = [stored, collected].filter((coverage) => coverage !== null);
  const longest = scanned.length === 0 ? null : Math.max(...scanned.map(({ longestSeconds }) => longestSeconds));
  const missing: string[] = [];
  const unseen = integrity.reason ?? 'not scanned';
  if (stored === null) missing.push(`the stored samples: ${unseen}`);
  if (collected === null) missing.push(`the collected rows: ${unseen}`);
  if (stored !== null && stored.unscannedSeconds > LIMIT_SECONDS) missing.push(blind('the stored samples', stored));
  if (collected !== null && collected.unscannedSeconds > LIMIT_SECONDS) missing.push(blind('the collected rows', collected));
  const limit = { comparison: '<=', value: LIMIT_SECONDS, unit: 's' } as const;
  const verdict = (longest ?? 0) > LIMIT_SECONDS ? 'FAIL' : missing.length > 0 ? 'INCOMPLETE' : 'PASS';
  return {
    criterion: 'integrity',
    title: 'Data integrity',
    verdict,
    requirement: 'no gap longer than 5 minutes in collected metrics',
    formula:
      'longest difference of neighbouring time stamps, and from the begin and to the end of the run, less what recorded suspends and clock steps explain, ≤ 300 s; of the stored samples and of the rows of metrics/',
    measured: { label: 'longest gap', value: longest, unit: 's' },
    limit,
    margin: longest === null ? null : marginOf(longest, limit),
    summary:
      longest === null
        ? 'Neither the stored samples nor the collected rows were scanned.'
        : `The longest gap is ${decimalDuration(longest)}${missing.length > 0 ? ', as far as known' : ''}.`,
    evidence: [...quantities('stored samples', stored), ...quantities('collected rows', collected)],
    tables: [gapTable('Gaps in the stored samples', stored), gapTable('Gaps in the collected rows', collected)],
    missing,
  };
}

function blind(what: string, { unscannedSeconds }: CoverageEvidence): string {
  return `${what}: not scanned for ${decimalDuration(unscannedSeconds)}, where a gap may be hidden`;
}

function quantities(what: string, coverage: CoverageEvidence | null): Judgement['evidence'] {
  return [
    { label: what, value: coverage?.count ?? null, unit: '' },
    { label: `longest gap, ${what}`, value: coverage?.longestSeconds ?? null, unit: 's' },
    { label: `scanned, ${what}`, value: coverage === null ? null : coverage.covered * 100, unit: '%' },
  ];
}

function gapTable(title: string, coverage: CoverageEvidence | null): Table {
  const rows = (coverage?.gaps ?? []).map(({ from, to, seconds, excused, remark }) => [from, to, rounded(seconds, 3), excused, remark]);
  return { title, columns: ['from', 'to', 'seconds', 'excused', 'remark'], rows };
}
