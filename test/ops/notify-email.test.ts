import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { emailSender } from '../../ops/notify/email.ts';
import { messageOf } from '../../ops/notify/message.ts';
import type { Result } from '../../ops/notify/queue.ts';
import { facts, line, open } from '../../ops/notify/testing/lines.ts';
import { until } from '../../testkit/wait.ts';

// Deliveries to a real mail server are tested in test/system/ops/notify-email.test.ts.

const message = messageOf(facts, [line('raised', 'CRITICAL', 'robot 7')], [open('CRITICAL')]);

function send({ port }: { port: number }, signal = new AbortController().signal): Promise<Result> {
  const nothing = { user: null, password_file: null, from: null, ca_file: null };
  const config = { host: '127.0.0.1', port, security: 'none' as const, to: ['ops@example.org'], ...nothing };
  return emailSender(config, 'robot-7', '1.2.3').send(message, signal);
}

t.test('a server that is not there, and one that says nothing until the end', async (t) => {
  const sockets: { destroyed: boolean }[] = [];
  const mute = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
  }).listen(0, '127.0.0.1');
  t.teardown(() => mute.close());
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  const ending = new AbortController();
  const sending = send({ port }, ending.signal);
  await until('it connected', () => sockets.length > 0);
  ending.abort(new Error('ended with the scheduler'));
  t.same(await sending, { kind: 'retry', detail: 'ended with the scheduler' });
  await until('the connection is closed', () => sockets.every(({ destroyed }) => destroyed));
  mute.close();
  t.match(await send({ port }), { kind: 'retry', detail: /refused: is the server running, and the port right/ });
});
