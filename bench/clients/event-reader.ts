/** Reads a stream of server-sent events until SIGTERM, then prints the number of health statuses. */
import { get } from 'node:http';
import { eventParser } from '../../src/client/event-stream.ts';

let received = 0;
const request = get(process.argv[2] as string, (response) => {
  response.setEncoding('utf8').on(
    'data',
    eventParser(({ event }) => {
      if (event === 'health') received += 1;
    }),
  );
});
let ending = false;
request.on('error', (error) => {
  if (!ending) throw error;
});
process.on('SIGTERM', () => {
  ending = true;
  request.destroy();
  process.stdout.write(String(received));
});
