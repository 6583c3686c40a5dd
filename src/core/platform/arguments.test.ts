import t from 'tap';
import { parseArguments } from './arguments.ts';

t.test('arguments are parsed, or refused with the reason', async (t) => {
  const parse = (...argv: string[]) =>
    parseArguments(argv, { config: { type: 'string' }, json: { type: 'boolean' } }, 1, (reason) => new RangeError(reason));
  t.same(parse('--config', 'file', 'name', '--json'), { options: { config: 'file', json: true }, positionals: ['name'] });
  t.same(parse(), { options: {}, positionals: [] });
  const refused: [argv: string[], message: RegExp][] = [
    [['--confg', 'file'], /Unknown option '--confg'$/],
    [['--config'], /argument missing/],
    [['one', 'two'], /unexpected argument "two"/],
    [['--config', ''], /--config is empty: give a value/],
    [['--config='], /--config is empty/],
    [[''], /an argument is empty/],
    [['--config', 'file', ''], /an argument is empty/],
  ];
  for (const [argv, message] of refused) t.throws(() => parse(...argv), { name: 'RangeError', message }, JSON.stringify(argv));
});
