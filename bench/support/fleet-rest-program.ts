/** Asks the service of its network namespace, since nobody else can: takes paths as lines, answers each with a line of JSON. */
import { createInterface } from 'node:readline';
import { fetchTimed, keptConnection } from './http.ts';

const base = process.argv[2] ?? '';
const agent = keptConnection();
createInterface({ input: process.stdin }).on('line', (path) => {
  fetchTimed(base + path, agent).then(
    ({ body, milliseconds, status }) => process.stdout.write(`${JSON.stringify({ status, milliseconds, body })}\n`),
    (error: Error) => process.stdout.write(`${JSON.stringify({ status: 0, milliseconds: 0, body: error.message })}\n`),
  );
});
process.stdin.once('end', () => process.exit(0));
