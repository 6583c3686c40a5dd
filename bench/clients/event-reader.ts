/** Reads a stream of server-sent events until SIGTERM, then prints how many health statuses came. */
import { get } from 'node:http';

let received = 0;
let rest = '';
const request = get(process.argv[2] as string, (response) => {
  response.setEncoding('utf8').on('data', (text: string) => {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) if (/^event: health$/m.test(event)) received += 1;
  });
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
