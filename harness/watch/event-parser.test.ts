import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../testkit/effort.ts';
import { EventParser, type StreamEvent } from './event-parser.ts';

fc.configureGlobal({ seed: SEED });

function read(pieces: readonly string[]): StreamEvent[] {
  const events: StreamEvent[] = [];
  const parser = new EventParser((event) => events.push(event));
  for (const piece of pieces) parser.take(piece);
  return events;
}

const HEAD = 'retry: 2000\n\n';

t.test('events as the service sends them', async (t) => {
  const text = `${HEAD}id: a_1\nevent: health\ndata: {"x":1}\n\n: still here\n\nid: a_2\nevent: alert\ndata: {}\n\n`;
  t.same(read([text]), [
    { id: 'a_1', kind: 'health', data: '{"x":1}' },
    { id: 'a_2', kind: 'alert', data: '{}' },
  ]);
});

t.test('as the standard has them: CRLF, several lines of data, an id that stays, names without a value, unknown names', async (t) => {
  t.same(read(['id:7\r\ndata\r\ndata:  b\r\nfoo: x\r\n\r\nevent: e\r\ndata: c\r\n\r\nevent: none\r\n\r\n']), [
    { id: '7', kind: '', data: '\n b' },
    { id: '7', kind: 'e', data: 'c' },
  ]);
  t.same(read(['id: a\0b\ndata: 1\n\n']), [{ id: '', kind: '', data: '1' }], 'an id with NUL is none');
  t.same(read(['data: half\n']), [], 'what has no end is no event');
});

t.test('wherever the pieces are cut', async (t) => {
  const events = Array.from({ length: 20 }, (_, at) => ({ id: `x_${at}`, kind: at % 3 ? 'health' : 'alert', data: `{"n":${at}}` }));
  for (const end of ['\n', '\r\n']) {
    const text =
      HEAD + events.map(({ data, id, kind }) => [`id: ${id}`, `event: ${kind}`, `data: ${data}`, '', ''].join(end)).join(`:x${end}${end}`);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 40 }), (cuts) => {
        const at = [0, ...cuts, text.length].sort((a, b) => a - b);
        t.same(read(at.slice(1).map((to, i) => text.slice(at[i], to))), events);
      }),
      { numRuns: 30 },
    );
  }
});

t.test('what never ends an event does not fill memory', async (t) => {
  const parser = new EventParser(() => undefined);
  const flood = (text: string): void => {
    for (let i = 0; i < 100; i += 1) parser.take(text.repeat(20_000));
  };
  t.throws(() => flood('x'), /an event without an end/);
  t.throws(() => flood('data: x\n'), /an event without an end/);
});
