/**
 * A client of the safe shutdown in a separate process, started by shutdown-client.ts. Argument: the name of the service. Each line of
 * standard input is a request in JSON. A second argument: the address of the host that offers it, if it is not this one.
 */
import { createInterface } from 'node:readline';
import { SAFE_SHUTDOWN } from '../../src/ros/interfaces.generated.ts';
import type { Message } from '../../src/rtps/wire/cdr.ts';
import { LoopbackParticipant } from './loopback.ts';

const emit = (event: string, fields: object): void => {
  process.stdout.write(`${JSON.stringify({ event, wall_ms: Date.now(), ...fields })}\n`);
};

const client = new LoopbackParticipant({ teardown: () => undefined }, 0, process.argv[3]);
const service = client.client(process.argv[2] ?? '/safe_shutdown', SAFE_SHUTDOWN);
await client.start();
emit('started', { writer: service.writer.guid });
for await (const line of createInterface({ input: process.stdin })) {
  await service.found();
  const begun = performance.now();
  const data = await service.call(JSON.parse(line) as Message);
  emit('reply', { data, ms: performance.now() - begun });
}
client.participant.stop();
