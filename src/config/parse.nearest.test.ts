import t from 'tap';
import { nearest } from './parse.ts';

const KNOWN = ['warning', 'critical', 'port', 'host', 'publish_frequency'];

t.test('the nearest word is the one with the fewest edits', async (t) => {
  for (const [typo, meant] of [
    ['warnings', 'warning'],
    ['wraning', 'warning'],
    ['WARNING', 'warning'],
    ['critcal', 'critical'],
    ['prot', 'port'],
    ['hots', 'host'],
    ['publishfrequency', 'publish_frequency'],
    ['warn', 'warning'],
    ['crit', 'critical'],
    ['publish', 'publish_frequency'],
  ] as const) {
    t.equal(nearest(typo, KNOWN), meant, typo);
  }
});

t.test('a word that is close to none has no suggestion', async (t) => {
  for (const word of ['', 'pu', 'temperature', 'x'.repeat(65), 'warning'.repeat(4)]) t.equal(nearest(word, KNOWN), null, word);
  t.equal(nearest('port', []), null);
});
