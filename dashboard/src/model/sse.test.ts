import fc from 'fast-check';
import t from 'tap';
import { SEED } from '../../../testkit/effort.ts';
import { type ServerEvent, SseParser } from './sse.ts';

fc.configureGlobal({ seed: SEED });

function all(text: string): { events: ServerEvent[]; lastEventId: string } {
  const parser = new SseParser();
  const events = parser.push(text);
  return { events, lastEventId: parser.lastEventId };
}

t.test('an event has a type, data and an id', async (t) => {
  const { events, lastEventId } = all('id: 17-3\nevent: health\ndata: {"a":1}\n\n');
  t.same(events, [{ event: 'health', data: '{"a":1}' }]);
  t.equal(lastEventId, '17-3');
});

t.test('the default type is message; data lines are joined; one space after the colon is removed', async (t) => {
  t.same(all('data: a\ndata:b\ndata:  c\n\n').events, [{ event: 'message', data: 'a\nb\n c' }]);
});

t.test('comments, unknown fields and blocks without data produce no event', async (t) => {
  const { events, lastEventId } = all(': heartbeat\n\nretry: 2000\n\nevent: health\n\nid: 5\n\ndata\n\n');
  t.same(events, [{ event: 'message', data: '' }]);
  t.equal(lastEventId, '5', 'an id without data is kept');
});

t.test('an event cut off by the end of the stream is discarded, and so is its id', async (t) => {
  const parser = new SseParser('before');
  t.same(parser.push('id: 9\nevent: health\ndata: half\n'), []);
  t.equal(parser.lastEventId, 'before');
  t.same(parser.push('\n'), [{ event: 'health', data: 'half' }]);
  t.equal(parser.lastEventId, '9');
});

t.test('an id with a NUL is ignored, and an empty id resets the last one', async (t) => {
  const parser = new SseParser('7');
  parser.push('id: a\0b\ndata: x\n\n');
  t.equal(parser.lastEventId, '7');
  parser.push('id\ndata: x\n\n');
  t.equal(parser.lastEventId, '');
});

t.test('a byte order mark at the beginning is ignored', async (t) => {
  t.same(all('\uFEFFdata: x\n\n').events, [{ event: 'message', data: 'x' }]);
});

t.test('an endless line or event is rejected before it fills the memory', async (t) => {
  const line = new SseParser();
  t.throws(() => {
    for (let i = 0; i < 100; i += 1) line.push('x'.repeat(20_000));
  }, RangeError);
  const event = new SseParser();
  t.throws(() => {
    for (let i = 0; i < 100; i += 1) event.push(`data: ${'x'.repeat(20_000)}\n`);
  }, RangeError);
});

t.test('the events do not depend on the pieces of the stream or on its line endings', async (t) => {
  const lines = [
    'id: 1',
    'event: health',
    'data: one',
    'data: more',
    '',
    ': heartbeat',
    '',
    'id: 2',
    'event: alert',
    'data: zwei ü',
    '',
    '',
  ];
  const expected = [
    { event: 'health', data: 'one\nmore' },
    { event: 'alert', data: 'zwei ü' },
  ];
  fc.assert(
    fc.property(fc.constantFrom('\n', '\r', '\r\n'), fc.array(fc.nat(120), { maxLength: 30 }), (end, cuts) => {
      const text = lines.join(end);
      const offsets = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
      const parser = new SseParser();
      const events = offsets.slice(1).flatMap((to, i) => parser.push(text.slice(offsets[i], to)));
      t.same(events, expected);
      return parser.lastEventId === '2';
    }),
  );
});
