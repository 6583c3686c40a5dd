import t from 'tap';
import { week } from '../../testkit/weeks/weeks.ts';
import { Recorder } from './recorder.ts';

t.test('a run is judged rarely if that takes long, and soon after a change of the open alerts', async (t) => {
  const entries = [...week({ hours: 3, faults: [{ kind: 'alert', at: 7000, seconds: 600, severity: 'CRITICAL' }] })];
  const began = entries[0]?.mono ?? 0;
  // Each reading of this clock takes a second, and so does judging.
  let seconds = 0;
  const recorder = new Recorder(() => {
    seconds += 1;
    return seconds;
  });
  const judged: { at: number; alerts: string | undefined }[] = [];
  for (const entry of entries) {
    seconds = Math.max(seconds, entry.mono - began);
    const before = recorder.judgements;
    recorder.write([entry]);
    if (recorder.judgements === before) continue;
    judged.push({ at: entry.mono - began, alerts: recorder.judgements.find(({ criterion }) => criterion === 'alerts')?.verdict });
  }
  t.same(judged, [
    { at: 60, alerts: 'PASS' },
    { at: 4080, alerts: 'PASS' },
    { at: 7020, alerts: 'FAIL' },
    { at: 7620, alerts: 'PASS' },
  ]);
});
