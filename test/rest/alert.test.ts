import t from 'tap';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { DAY_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Contract } from '../../testkit/service/openapi.ts';
import { alertOf, type InProcessService, LOCAL, startInProcess, TestClocks } from '../../testkit/service/remote-nodes.ts';
import { problemOf, sendRequest } from '../../testkit/service/rest.ts';

const PATH = '/alerts/{alert_id}';

const whole = t;
const folder = temporaryFolder(t);
const clocks = new TestClocks();
let service = await startInProcess(t, folder, clocks);
const contract = new Contract(await service.json('/openapi.json'));

/** `spelling`: how the id is written in the URL. */
async function getAlert(id: string, spelling: (id: string) => string = encodeURIComponent): Promise<Alert & { changes: Alert[] }> {
  const answer = await sendRequest(service, 'GET', `/alerts/${spelling(id)}`);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
  t.same(contract.violations(PATH, answer), []);
  return JSON.parse(answer.body);
}

const change = (alert: Alert, secondsLater: number, more: Partial<Alert>): Alert => ({
  ...alert,
  timestamp: new Date(Date.parse(alert.timestamp) + secondsLater * 1000).toISOString(),
  ...more,
});

async function record(to: InProcessService, ...alerts: Alert[]): Promise<void> {
  for (const alert of alerts) await to.store.recordAlert(alert);
}

t.test('an alert has its changes, however old it is, in every spelling of its id', async (t) => {
  // Namespaces, paths and percent signs are allowed in the names of nodes and disks.
  const ids = [`${LOCAL}/cpu_percent/1`, 'lab/east/arm/temperature/2', `${LOCAL}/disk:/mnt/a b%2F?#/3`, 'arm/cpu_percent/é'];
  const episodes = ids.map((alert_id, n) => {
    const raised = { ...alertOf('', '', clocks.wallMs - (n + 1) * 40 * DAY_MS), alert_id };
    return [
      raised,
      change(raised, 5, { severity: 'CRITICAL', value: 95, threshold: 90 }),
      change(raised, 9, { severity: 'CRITICAL', value: 70, threshold: 90, resolved: true }),
    ] as const;
  });
  await record(service, ...episodes.flat());
  for (const restart of [false, true]) {
    if (restart) {
      await service.stop();
      service = await startInProcess(whole, folder, clocks);
    }
    for (const changes of episodes) {
      const id = changes[0].alert_id;
      t.same(await getAlert(id), { ...changes[2], changes });
      t.same(
        await getAlert(id, (text) => encodeURIComponent(text).replaceAll('%2F', '/')),
        { ...changes[2], changes },
        'slashes as they are',
      );
    }
  }
});

t.test('an alert that is open, and a clock that was set back during an alert', async (t) => {
  const raised = alertOf(LOCAL, 'open', clocks.wallMs - 30 * DAY_MS);
  await record(service, raised);
  t.same(await getAlert(raised.alert_id), { ...raised, changes: [raised] });
  const resolved = change(raised, -3600, { resolved: true });
  await record(service, resolved);
  t.same(await getAlert(raised.alert_id), { ...resolved, changes: [raised, resolved] }, 'its resolution is its last change');
});

t.test('an id that is not stored is a 404; parameters and other methods are refused', async (t) => {
  const known = `${LOCAL}/cpu_percent/1`;
  for (const id of [
    'nobody/cpu_percent/1',
    known.slice(0, -1),
    `${known}/`,
    known.toUpperCase(),
    "' OR 1=1 --",
    '%00',
    '{alert_id}',
    '..%2Fhealth',
  ])
    for (const method of ['GET', 'HEAD']) {
      const answer = await sendRequest(service, method, `/alerts/${id.replaceAll(' ', '%20')}`);
      t.equal(answer.status, 404, id);
      if (method === 'GET') t.equal(problemOf(answer).code, 'unknown_alert', id);
      if (method === 'GET') t.same(contract.violations(PATH, answer), []);
    }
  t.equal(problemOf(await sendRequest(service, 'GET', `/alerts/${known}?node=${LOCAL}`)).code, 'unknown_parameter');
  t.equal((await sendRequest(service, 'POST', `/alerts/${known}`)).status, 405);
  t.equal(problemOf(await sendRequest(service, 'GET', '/alerts/%zz')).code, 'malformed_url');
  const head = await sendRequest(service, 'HEAD', `/alerts/${known}`);
  t.match(head, { status: 200, body: '' });
});
