import t from 'tap';
import { compose, type ReportInput } from './compose.ts';
import { badWeek } from './testing/bad-week.ts';
import { evidence, nothing, perfectWeek, tenMinutes } from './testing/runs.ts';

const WEEK = 604_800;
const stated = (input: ReportInput) => {
  const { is_168_hour_verdict, statement, verdict } = compose(input);
  return { is_168_hour_verdict, statement, verdict };
};

t.test('the statement of a short run makes clear that it is not the 168-hour verdict', async (t) => {
  t.same(stated(tenMinutes()), {
    verdict: 'INCOMPLETE',
    is_168_hour_verdict: false,
    statement: 'This run lasted 10 min. It is not the 168-hour verdict. Nothing has failed. Evidence is missing for Uptime and Stability.',
  });
  const failed = tenMinutes();
  const judgements = failed.judgements.map((one) => (one.criterion === 'alerts' ? { ...one, verdict: 'FAIL' as const } : one));
  t.same(
    stated({ ...failed, judgements }).statement,
    'This run lasted 10 min. It is not the 168-hour verdict. Failed: Alerts. Evidence is missing for Uptime and Stability.',
  );
  const ongoing = { ...failed, evidence: { ...evidence(600), ended: false, observed: [{ from: 0, to: 185, awakeSeconds: 185 }] } };
  t.match(
    stated(ongoing).statement,
    /^This run has lasted 3 min 5 s of the 10 min planned\. It is not the 168-hour verdict\. Nothing has failed yet\./,
  );
});

t.test('the statement of a week contains its outcome and its monitoring gaps', async (t) => {
  t.same(stated(perfectWeek()), {
    verdict: 'PASS',
    is_168_hour_verdict: true,
    statement: 'This is the verdict of a run of 168 h: PASS. All six criteria are met.',
  });
  t.same(stated(badWeek()), {
    verdict: 'FAIL',
    is_168_hour_verdict: true,
    statement:
      'This is the verdict of a run of 168 h: FAIL. Failed: Uptime, Reliability, Stability and Alerts. Evidence is missing for Data integrity. ' +
      'Monitoring gaps of 4 h 15 min in total count neither for nor against the service.',
  });
});

t.test('an unfinished week has no verdict unless it has failed already', async (t) => {
  const unfinished = { ...evidence(WEEK), ended: false, observed: [{ from: 0, to: 36_000, awakeSeconds: 36_000 }] };
  const judgements = tenMinutes().judgements;
  t.match(
    stated({ ...perfectWeek(), judgements, evidence: unfinished }).statement,
    /^This run of 168 h has not ended; observed: 10 h\. It is not the verdict yet\. Nothing has failed yet\./,
  );
  t.match(stated({ ...badWeek(), evidence: unfinished }).statement, /^This run of 168 h has failed after 10 h\. Failed: Uptime,/);
  t.match(stated(nothing()).statement, /has not ended; observed: 0 s\. It is not the verdict yet\./);
});

t.test('a report of collected files is not the verdict, though it may pass', async (t) => {
  const input = perfectWeek();
  const collected = stated({ ...input, evidence: { ...input.evidence, origin: 'collected' } });
  t.equal(collected.is_168_hour_verdict, false);
  t.equal(collected.verdict, 'PASS');
  t.match(
    collected.statement,
    /collected from 2026-03-02 07:30:00 UTC to 2026-03-09 07:30:00 UTC; the service was not observed.*It is not the 168-hour verdict\. All six criteria are met\.$/,
  );
});

t.test('the notes list truncated lines, suspends and clock steps, each once', async (t) => {
  const input = badWeek();
  const { notes } = compose({ ...input, run: { ...input.run, notes: ['twice', 'twice'] } });
  t.match(notes[0], /^1 line of the record was truncated/);
  t.match(notes[1], /The wall clock was set twice\. No criterion depends on it/);
  t.match(notes[2], /suspended once, for 2 h in total/);
  t.same(notes.slice(3), ['twice']);
  t.same(compose(perfectWeek()).notes, []);
});
