import t from 'tap';
import { isLookAlike, markLookAlike } from './look-alike.ts';

t.test('names that can be mistaken for others', async (t) => {
  const marked: Readonly<Record<string, string>> = {
    'a Cyrillic o': 'm\u043en',
    'all letters Cyrillic': '\u0440\u043e\u0440',
    'a Greek omicron': 'r\u03bfbot',
    'an Armenian letter': 'r\u0585bot',
    'a separate accent': 'e\u0301tage',
    'a stroke over a letter': 'mon\u0338',
    'a sign around a letter': 'a\u0488',
    'a letter for a colon': 'mon\u02d0',
    'a full-width letter': '\uff4don',
    'a mathematical letter': '\u{1d426}on',
    'a ligature': '\ufb01eld',
    'a dotless i': 'm\u0131x',
    'a Latin letter outside of ASCII': 'lo\u0261',
    'a Chinese character for a dash': 'arm\u4e001',
    'a digit of another script': 'arm-\u0661',
    'Cyrillic with Greek': '\u0431\u03bf\u0442',
    'Latin with Hebrew': 'a\u05e1',
  };
  for (const [what, name] of Object.entries(marked)) t.ok(isLookAlike(name), what);
  for (const name of [
    'robot_1',
    'robot1/health_monitor',
    'Prüfstand 7',
    'étage-2.b',
    '台車',
    'ロボットA',
    '로봇 1',
    'робот',
    'ρομπότ',
    'Straße',
    'мост',
    'רובוט',
  ])
    t.notOk(isLookAlike(name), name);
});

t.test('a marked name shows its spelling', async (t) => {
  t.equal(markLookAlike('mon'), 'mon');
  t.equal(markLookAlike('m\u043en/health_monitor'), 'm\u043en/health_monitor (m\\u{43e}n/health_monitor)');
});
