import { hostname } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { STORAGE, statusDocument } from '../../testkit/service/status-document.ts';
import { discover } from './discover.ts';
import { refuse, serve } from './testing/server.ts';

const atFolder = (folder: string) => ({ storage: { ...STORAGE, path: `${folder}/edge-health.db` } });

t.test('finds the observed service once it is ready', async (t) => {
  const folder = temporaryFolder(t);
  let visits = 0;
  const { rest } = await serve(t, (_request, response) => {
    visits += 1;
    if (visits === 1) return refuse(response, 503, 'starting');
    const { ros } = statusDocument();
    const young = { host: null, ros: { ...ros, transport: 'off' as const, reason: 'not decided yet' } };
    response.end(JSON.stringify(statusDocument({ ...atFolder(folder), ...(visits === 2 ? young : {}) })));
  });
  const { dataFolderProblem, domainId, machine, target } = await discover({ rest, kind: 'unit', unit: 'edge-health.service', seconds: 30 });
  t.equal(visits, 3, 'polled until the machine and the transport are known');
  t.same(target, {
    kind: 'unit',
    url: rest.base,
    unit: 'edge-health.service',
    node_name: 'robot',
    version: '1.2.3',
    configured_hertz: 1,
    service_transport: 'embedded',
    data_folder: folder,
  });
  t.same(machine, {
    hostname: 'robot',
    model: 'a board',
    os: 'Debian 13',
    kernel: '6.12',
    architecture: 'arm64',
    cpu: 'Cortex-A76',
    cores: 4,
    memory_bytes: 8e9,
  });
  t.equal(dataFolderProblem, null);
  t.equal(domainId, 0);
});

t.test('reports whether the data folder can be read from this machine', async (t) => {
  const folder = temporaryFolder(t);
  const at = async (path: string, host: string, kind: 'url' | 'started') => {
    const { rest } = await serve(t, (_request, response) => {
      const status = statusDocument(atFolder(path));
      response.end(JSON.stringify({ ...status, host: { ...status.host, hostname: host } }));
    });
    const { dataFolderProblem, target } = await discover({ rest, kind, unit: null, seconds: 5 });
    return [target.data_folder, dataFolderProblem];
  };
  t.same(await at(folder, hostname(), 'url'), [folder, null]);
  t.same(await at(folder, 'another', 'started'), [folder, null]);
  t.match(await at(folder, 'another', 'url'), [null, /on another machine/]);
  const missing = join(folder, 'missing');
  t.same(await at(missing, hostname(), 'started'), [null, `${missing} cannot be read (ENOENT)`]);
});

t.test('rejects an unusable service with the remedy', async (t) => {
  const absent = new RestClient({ base: 'http://127.0.0.1:9', token: null });
  const at = (kind: 'unit' | 'started' | 'url') => discover({ rest: absent, kind, unit: 'edge-health.service', seconds: 0 });
  await t.rejects(at('unit'), {
    name: 'NoService',
    message: /no response from http:\/\/127.0.0.1:9: systemctl start edge-health.service, or .* --url/,
  });
  await t.rejects(at('url'), /no response from .*is the address right/);
  await t.rejects(at('started'), /see its log/);

  const refusing = await serve(t, (_request, response) => refuse(response, 401, 'a token is needed'));
  await t.rejects(discover({ rest: refusing.rest, kind: 'url', unit: null, seconds: 60 }), /requires a token; .*--config/);
  t.equal(refusing.requests.length, 1, 'a wrong token does not become valid');

  const otherProgram = await serve(t, (_request, response) => response.end('{"status":"ok"}'));
  await t.rejects(discover({ rest: otherProgram.rest, kind: 'url', unit: null, seconds: 60 }), /is not that of edge-health/);
  const page = await serve(t, (_request, response) => response.end('<html>'));
  await t.rejects(discover({ rest: page.rest, kind: 'url', unit: null, seconds: 0 }), /does not answer with JSON: is it edge-health\?/);

  const signal = AbortSignal.abort(new Error('enough'));
  await t.rejects(discover({ rest: absent, kind: 'url', unit: null, seconds: 60, signal }), /enough/);
});
