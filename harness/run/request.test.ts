import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Requests, readRequest, settleRequest } from './request.ts';
import { folderName, newestRun, reportsFolder } from './run-folder.ts';

const REQUEST = { out: '/var/lib/edge-health/reports/x', duration: '168h', transport: 'auto', unit: 'edge-health.service', requested: '' };

t.test('a request is there until it is settled', async (t) => {
  const folder = temporaryFolder(t);
  const requests = new Requests(folder);
  t.equal(requests.current(), null);
  requests.write(REQUEST);
  t.same(requests.current(), REQUEST);
  t.same(readRequest(requests.currentFile), REQUEST);
  t.equal(statSync(requests.currentFile).mode & 0o007, 0);
  settleRequest(requests.currentFile);
  t.equal(requests.current(), null);
  t.same(requests.last(), REQUEST);
  settleRequest(requests.currentFile);
  t.same(requests.last(), REQUEST, 'once more changes nothing');
});

t.test('something else in its place', async (t) => {
  const requests = new Requests(temporaryFolder(t));
  requests.write(REQUEST);
  for (const content of ['', '{}', 'null', '[]']) {
    writeFileSync(requests.currentFile, content);
    t.throws(() => requests.current(), { message: /is no request of `edge-health harness start`; remove it/ });
  }
});

t.test('where runs are kept', async (t) => {
  t.equal(folderName(Date.parse('2026-03-04T05:06:07.089Z')), 'harness-20260304T050607Z');
  t.equal(reportsFolder('/var/lib/edge-health', false), '/var/lib/edge-health/reports');
  const reports = temporaryFolder(t);
  t.equal(newestRun(join(reports, 'missing')), null);
  for (const name of ['harness-20260304T050607Z', 'harness-20260305T050607Z', 'harness-20260306T050607Z', 'other']) {
    mkdirSync(join(reports, name));
    if (!name.includes('0306')) writeFileSync(join(reports, name, 'record.ndjson'), '');
  }
  t.equal(newestRun(reports), join(reports, 'harness-20260305T050607Z'), 'the newest that has a record');
});
