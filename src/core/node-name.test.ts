import t from 'tap';
import { isNodeName } from './node-name.ts';

t.test('node names are short and contain only visible characters', async (t) => {
  for (const good of [
    'a',
    '7',
    'robot1/health_monitor',
    '/a/b/c',
    'Prüfstand 7',
    'e\u0301tage-2.b',
    '台車',
    'x'.repeat(64),
    '機'.repeat(64),
  ])
    t.ok(isNodeName(good), good);
  const bad = [
    ...['', ' ', ' a', 'a ', 'x'.repeat(65), 'a:b', 'a,b', 'a"b', 'a\\b', '<b>', 'a=b', 'a|b', '✓', '☂️'],
    // Controls, direction and format characters, surrogates, line ends.
    ...['a\nb', 'a\n', 'a\u001b[2J', 'a\u202eb', 'a\u2066b', 'a\u200bb', 'a\u00adb', '\ud800', 'a\ufeff', 'a\u2028b', 'a\0'],
    // Characters that look like blanks or show nothing.
    ...['a\u00a0b', 'a\u2003b', 'a\u3000b', '\u3164', 'a\u115fb', 'a\uffa0', 'a\u034fb', 'a\u2800b', 'a\ufe0f'],
  ];
  // Identified by code points, because test reports could not show them.
  for (const name of bad) t.notOk(isNodeName(name), Buffer.from(name, 'utf16le').toString('hex').slice(0, 40));
});
