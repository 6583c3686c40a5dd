/** REST client within the network namespace of the service: reads paths as lines and prints each response as a line of JSON. */
import { createInterface } from 'node:readline';
import { fetchTimed, keepAliveAgent } from '../support/http.ts';

const base = process.argv[2] ?? '';
const agent = keepAliveAgent();
createInterface({ input: process.stdin }).on('line', (path) => {
  fetchTimed(base + path, agent).then(
    ({ body, milliseconds, status }) => process.stdout.write(`${JSON.stringify({ status, milliseconds, body })}\n`),
    (error: Error) => process.stdout.write(`${JSON.stringify({ status: 0, milliseconds: 0, body: error.message })}\n`),
  );
});
process.stdin.once('end', () => process.exit(0));
