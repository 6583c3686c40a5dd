import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { RestServer } from './server.ts';

t.test('a name that the machine got after its names were read is allowed at the first request', async (t) => {
  const names: string[] = [];
  let reads = 0;
  const server = new RestServer({
    host: '127.0.0.1',
    port: 0,
    token: null,
    allowedOrigins: [],
    allowedHosts: ['proxy.example'],
    machineNames: {
      names: () => names,
      readAgain: async () => {
        reads += 1;
        names.push('robot.lab.example');
      },
    },
    maxConnections: 8,
    maxEventStreams: 1,
    boundSockets: () => false,
    dashboardFolder: '/nowhere',
    openapiFile: '/nowhere',
    view: {} as never,
    log: () => undefined,
  });
  const { port } = (await server.start()) as AddressInfo;
  t.teardown(() => server.stop());
  /** Status of a path that does not exist: 404 if the host is allowed. */
  const statusFor = (host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, path: '/nowhere', headers: { Host: host }, agent: false }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      });
      outgoing.once('error', reject).end();
    });
  t.equal(await statusFor('127.0.0.1'), 404);
  t.equal(await statusFor('proxy.example'), 404);
  t.equal(reads, 0, 'known names cost nothing');
  t.equal(await statusFor('robot.lab.example:5000'), 404);
  t.equal(await statusFor('robot.lab.example'), 404);
  t.equal(reads, 1);
  t.equal(await statusFor('evil.example'), 421);
  t.equal(reads, 2);
});
