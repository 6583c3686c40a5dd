import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { measured, problemOf, sendRequest, startIn, stillWell } from '../../testkit/service/rest.ts';
import { ROOT } from '../../testkit/service/service.ts';

const folder = temporaryFolder(t);
const service = await startIn(t, folder);
const contract = await Contract.of(service);
const { storage } = await service.json<{ storage: { path: string } }>('/status');
mkdirSync(join(storage.path, '../reports'), { recursive: true });
cpSync(join(ROOT, 'docs/develop/reports/run'), join(storage.path, '../reports/harness-20260304T050607Z'), { recursive: true });

t.test('the reports in the data folder are listed and served in each format', async (t) => {
  const list = await sendRequest(service, 'GET', '/reports');
  t.same(contract.violations('/reports', list), []);
  t.match(JSON.parse(list.body), { count: 1, data: [{ name: 'harness-20260304T050607Z', verdict: 'INCOMPLETE' }], running: null });
  for (const [format, type, beginning] of [
    ['html', 'text/html; charset=utf-8', /^<!doctype html>/i],
    ['json', 'application/json', /^\{/],
    ['markdown', 'text/markdown; charset=utf-8', /^#/],
    ['junit', 'application/xml; charset=utf-8', /^<\?xml/],
  ] as const) {
    const answer = await sendRequest(service, 'GET', `/reports?name=harness-20260304T050607Z&format=${format}`);
    t.match(answer, { status: 200, headers: { 'content-type': type }, body: beginning });
    t.match(answer.headers['content-security-policy'], /default-src 'none'.*sandbox allow-scripts/, 'a report cannot read the API');
  }
  t.match((await sendRequest(service, 'GET', '/reports?name=harness-20260304T050607Z')).headers['content-type'], 'text/html');
  for (const [typed, location] of [
    ['/reports/harness-20260304T050607Z', '../reports?name=harness-20260304T050607Z'],
    ['/reports/a%26b+c?format=json', '../reports?name=a%26b%2Bc&format=json'],
  ] as const)
    t.match(await sendRequest(service, 'GET', typed), { status: 308, headers: { location } }, typed);
});

t.test('other names and formats are refused, and no path leads out of the folder', async (t) => {
  const unknown = await sendRequest(service, 'GET', '/reports?name=harness-2');
  t.same(contract.violations('/reports', unknown), []);
  t.match(problemOf(unknown), { status: 404, code: 'unknown_report', detail: /"harness-2".*\/reports/ });
  for (const name of ['..', '.', '', '../edge-health.db', '%2e%2e%2fx', 'a/b', 'a%00b', '-x', 'x'.repeat(101)])
    t.match(problemOf(await sendRequest(service, 'GET', `/reports?name=${name}`)), { status: 400, parameter: 'name' }, name);
  t.match(problemOf(await sendRequest(service, 'GET', '/reports?name=a&format=pdf')), { status: 400, parameter: 'format' });
  t.match(problemOf(await sendRequest(service, 'GET', '/reports?format=json')), { status: 400, parameter: 'format' });
  await measured(service);
  await stillWell(t, service);
});
