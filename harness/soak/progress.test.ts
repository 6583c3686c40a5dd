import t from 'tap';
import type { Meter } from './meter.ts';
import type { Poller } from './poller.ts';
import { Progress, type SoFar } from './progress.ts';
import type { StoredCount } from './stored.ts';
import { Way } from './way.ts';

function setUp(isTTY: boolean) {
  let text = '';
  const progress = new Progress({ isTTY, write: (more) => (text += more) }, 200);
  const window = { fromMs: 0, toMs: 300_000 };
  const ways = { topic: new Way(window), events: new Way(window), peer: new Way(window) };
  for (let i = 0; i < 1980; i += 1) ways.topic.onStatus(new Date(i * 5).toISOString());
  for (let i = 0; i < 2000; i += 1) ways.events.onStatus(new Date(i * 5).toISOString());
  const soFar: SoFar = {
    meter: {
      readings: { at: [1], residentBytes: [80e6], files: [41], sockets: [6], databaseBytes: [7.8e6], databaseFolderBytes: [9e6] },
    } as unknown as Meter,
    stored: { count: 1000, countedToMs: 5000 } as unknown as StoredCount,
    poller: { results: () => [{ path: '/', asked: 3, failed: 1, medianMs: 1, p99Ms: 12.3, mostMs: 20 }] } as unknown as Poller,
    ways,
    window,
    turns: 2,
    maxBytes: 8e6,
  };
  return { progress, soFar, text: () => text };
}

t.test('a line now and then, with all that must hold so far', async (t) => {
  const { progress, soFar, text } = setUp(false);
  progress.show(10, 300, soFar);
  progress.show(11, 300, soFar);
  t.equal(
    text(),
    'soak: 0:10 elapsed, 4:50 left | topic 99.50 % | events 100.00 % | stored 100.00 % | memory 80 MB | files 41 | database 7.8 of 8 MB | alerts 0 (2 causes) | REST p99 12 ms, 1 failed\n',
  );
  progress.show(40, 300, soFar);
  t.equal(text().split('\n').length, 3);
});

t.test('on a terminal one line that is written anew, and other lines below it', async (t) => {
  const { progress, soFar, text } = setUp(true);
  progress.show(10, 300, soFar);
  progress.show(11.1, 300, soFar);
  progress.say('a note');
  progress.end();
  t.equal(text().split('\r\x1b[K').length, 3);
  t.ok(text().endsWith('\nsoak: a note\n'));
});
