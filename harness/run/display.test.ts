import { Writable } from 'node:stream';
import t from 'tap';
import type { Judgement } from '../engine/judgement.ts';
import { block, Display, line, type Progress, statusLine } from './display.ts';

const JUDGEMENT: Judgement = {
  criterion: 'reliability',
  title: 'Reliability',
  verdict: 'PASS',
  requirement: '',
  formula: '',
  summary: '',
  missing: [],
  measured: { label: '', value: 99.987, unit: '%' },
  limit: { comparison: '>', value: 99, unit: '%' },
  margin: 1,
  evidence: [],
  tables: [],
};
const PROGRESS: Progress = {
  nodeName: 'robot',
  url: 'http://127.0.0.1:5000',
  folder: '/runs/1',
  plannedSeconds: 604_800,
  observedSeconds: 11_520,
  gapSeconds: 90,
  judgements: [JUDGEMENT],
  restarts: 1,
  openAlerts: [{ severity: 'CRITICAL', metric: 'cpu_percent' }],
  entries: 200,
  head: 'ab'.repeat(32),
  problem: null,
};
/** The escape sequences that move four lines up and clear to the end. */
const OVER_FOUR = '\u001b[4A\u001b[0J';

t.test('formats the progress of a run', async (t) => {
  const [first, second, third, fourth] = block(PROGRESS, 200, false);
  t.equal(first, 'robot at http://127.0.0.1:5000: 3 h 12 min of 168 h (1.9 %), 164 h 48 min to go, monitoring gaps 1 min 30 s');
  t.match(second, /^ {2}Reliability +PASS +99\.99 % \(> 99 %\)$/);
  t.equal(third, '  1 restart; open: CRITICAL cpu_percent');
  t.equal(fourth, '  /runs/1: 200 entries, head abababababababab');
  for (const one of block({ ...PROGRESS, problem: 'the disk is full' }, 40, false)) t.ok(one.length < 40, one);
  t.match(line(PROGRESS), 'Reliability PASS 99.99 % (> 99 %); 1 restart; open: CRITICAL cpu_percent');
  t.match(
    statusLine({ ...PROGRESS, openAlerts: [], restarts: 0, problem: 'the disk is full' }),
    'no restarts; no open alerts; the disk is full',
  );
  t.match(line({ ...PROGRESS, observedSeconds: 604_799.9 }), '(99.9 %)', '100 % is the end');
  const unknown = { ...JUDGEMENT, measured: { ...JUDGEMENT.measured, value: null } };
  t.match(line({ ...PROGRESS, judgements: [unknown] }), 'not known yet (> 99 %)');
});

function displayed(isTTY: boolean, watchdogSeconds: number | null = null, columns = 100) {
  let written = '';
  let now = 1000;
  const notified: string[] = [];
  const stream = Object.assign(
    new Writable({
      write: (chunk, _, done) => {
        written += String(chunk);
        done();
      },
    }),
    { isTTY, columns },
  ) as unknown as NodeJS.WriteStream;
  const manager = { via: 'test', notify: (state: string) => void notified.push(state) };
  const display = new Display({ stream, write: (text) => void stream.write(text), manager, watchdogSeconds, monotonicSeconds: () => now });
  const tick = (seconds: number): void => {
    for (let second = 0; second < seconds; second += 1) {
      display.tick(() => PROGRESS);
      now += 1;
    }
  };
  const taken = (): string => {
    const text = written;
    written = '';
    return text;
  };
  return { tick, display, notified, stream, taken };
}

t.test('without a terminal, prints a line after a minute, then every ten minutes, and the hash every hour', async (t) => {
  const { tick, taken } = displayed(false);
  tick(60);
  t.equal(taken(), '');
  tick(1);
  t.match(taken(), /^3 h 12 min of 168 h.*\n$/);
  tick(538);
  t.equal(taken(), '');
  tick(2);
  t.equal(taken().split('\n').length, 2);
  tick(3000);
  t.match(taken(), `record: 200 entries, head ${'ab'.repeat(32)}\n`);
});

t.test('on a terminal, redraws a block', async (t) => {
  const { tick, display, taken } = displayed(true);
  tick(1);
  t.equal(taken().split('\n').length, 5);
  tick(1);
  t.ok(taken().startsWith(OVER_FOUR), 'over the one before');
  display.print('a line above it');
  t.equal(taken(), `${OVER_FOUR}a line above it\n`);
  tick(1);
  t.notOk(taken().includes(OVER_FOUR));
});

t.test('a terminal without a size gets the default size', async (t) => {
  const { tick, taken } = displayed(true, null, 0);
  tick(1);
  t.match(taken(), 'robot at http://127.0.0.1:5000: 3 h 12 min of 168 h');
});

t.test('a closed terminal has no effect', async (t) => {
  const { tick, display, stream, taken } = displayed(true);
  stream.emit('error', new Error('EIO'));
  taken();
  tick(5);
  display.print('not shown');
  t.equal(taken(), '');
});

t.test('the service manager gets a status, and watchdog pings only from ticks', async (t) => {
  const { tick, notified } = displayed(false, 40);
  tick(1);
  t.equal(notified[0], 'READY=1');
  tick(60);
  const pings = notified.filter((state) => state === 'WATCHDOG=1').length;
  t.ok(pings >= 6 && pings <= 8, `${pings} pings in a minute`);
  t.equal(notified.filter((state) => state.startsWith('STATUS=')).length, 1, 'the line when it changes');
});
