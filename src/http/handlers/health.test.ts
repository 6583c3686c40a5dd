import type { IncomingMessage, ServerResponse } from 'node:http';
import t from 'tap';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Context } from '../context.ts';
import { health } from './health.ts';

const STATUS: HealthStatus = {
  cpu_percent: 10,
  memory_percent: 50,
  disk_percent: null,
  temperature: -5.5,
  status: 'OK',
  node_name: 'a',
  timestamp: '2026-01-31T12:00:00.000Z',
};

/** Responds to a client that has the version `known`; returns the status code and the ETag. */
function respond(current: HealthStatus, known?: string): { code: number; tag: string } {
  let answer = { code: 0, tag: '' };
  const response = {
    writeHead: (code: number, headers: { ETag: string }) => {
      answer = { code, tag: headers.ETag };
    },
    end: () => undefined,
  } as unknown as ServerResponse;
  const request = { method: 'GET', headers: known === undefined ? {} : { 'if-none-match': known } } as IncomingMessage;
  void health({
    request,
    response,
    query: {},
    view: { localNode: 'a', isKnownNode: () => true, current: () => current },
  } as unknown as Context);
  return answer;
}

t.test('a status with the same timestamp and other content is sent, and the same one is not', async (t) => {
  const { tag } = respond(STATUS);
  t.match(tag, /^"[\x21\x23-\x7e]+"$/);
  t.same(respond(STATUS, tag), { code: 304, tag });
  for (const change of [
    { cpu_percent: 10.1 },
    { cpu_percent: 11, memory_percent: 19 },
    { disk_percent: 0 },
    { temperature: null },
    { disk_percent: -5.5, temperature: null },
    { status: 'WARNING' },
    { timestamp: '2026-01-31T12:00:00.001Z' },
  ] as const)
    t.equal(respond({ ...STATUS, ...change }, tag).code, 200, JSON.stringify(change));
});
