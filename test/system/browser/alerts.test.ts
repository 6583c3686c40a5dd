import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import { DAY_MS } from '../../../src/core/time/time.ts';
import { CHROMIUM, launchBrowser, openPage } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, LOCAL, RealClocks } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';

/** A service with alerts that were raised the given number of days ago; `isOpen`: they are not resolved. */
async function withAlerts(t: Test, alerts: readonly { id: string; days: number; isOpen: boolean }[]): Promise<InProcessService> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
  await service.start();
  t.teardown(() => service.stop());
  for (const { days, id, isOpen } of alerts) {
    const raisedMs = Date.now() - days * DAY_MS;
    const changes: Alert[] = [
      alertOf(LOCAL, id, raisedMs),
      alertOf(LOCAL, id, raisedMs + 60_000, { severity: 'CRITICAL', value: 97, threshold: 90 }),
      alertOf(LOCAL, id, raisedMs + 120_000, { severity: 'CRITICAL', value: 60, threshold: 90, resolved: true }),
    ];
    for (const change of isOpen ? changes.slice(0, 2) : changes) {
      await service.store.recordAlert(change);
      service.live.setAlert(change);
    }
  }
  service.measure();
  const timer = setInterval(() => service.measure(), 500);
  t.teardown(() => clearInterval(timer));
  return service;
}

t.test('the page of an alert takes one request, however old the alert is', { skip }, async (t) => {
  const service = await withAlerts(t, [{ id: 'old', days: 200, isOpen: false }]);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors, requests } = await openPage(browser, `${service.url}/#/alerts/${encodeURIComponent(`${LOCAL}/cpu_percent/old`)}`);
  await page.getByRole('heading', { name: 'CPU usage was critically high' }).waitFor();
  t.equal(await page.locator('tbody tr').count(), 3, 'with its changes');
  t.equal(requests.filter((url) => /\/alerts\/|[?&]hours=720/.test(url)).length, 1, requests.join('\n'));
  t.same(errors, []);
});

t.test('a request that failed is neither an unknown alert nor an empty list, and can be repeated', { skip }, async (t) => {
  const service = await withAlerts(t, [{ id: 'old', days: 3, isOpen: false }]);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  for (const [address, requested, found] of [
    [`#/alerts/${encodeURIComponent(`${LOCAL}/cpu_percent/old`)}`, /\/alerts\/./, 'CPU usage was critically high'],
    ['#/alerts?period=7d', /\/alerts\?.*hours=/, '1 alert'],
    ['#/system', /\/reports$/, 'No test has been run.'],
  ] as const) {
    const { page, errors } = await openPage(browser, 'about:blank');
    const refuse = { status: 503, contentType: 'application/problem+json', body: '{"code":"storage_unavailable"}' };
    await page.route(requested, (route) => route.fulfill(refuse));
    await page.goto(`${service.url}/${address}`);
    const again = page.getByRole('button', { name: 'Try again' });
    await page.getByText('Could not be loaded').waitFor();
    t.notMatch(await page.locator('body').innerText(), /not known|0 alerts|No alert matches|Loading/, address);
    await Promise.all([page.waitForResponse(requested), again.click()]);
    await page.getByText('Could not be loaded').waitFor();
    await page.unroute(requested);
    await again.click();
    await page.getByText(found).first().waitFor();
    await again.waitFor({ state: 'detached' });
    t.same(errors, [], address);
    await page.close();
  }
  const { page } = await openPage(browser, `${service.url}/#/alerts/${encodeURIComponent(`${LOCAL}/cpu_percent/other`)}`);
  await page.getByText('This alert is not known.').waitFor();
});

t.test('an open alert leads to its page, and is on the timeline however long it has been open', { skip }, async (t) => {
  const service = await withAlerts(t, [
    { id: 'long', days: 3, isOpen: true },
    { id: 'over', days: 10, isOpen: false },
  ]);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/nodes`);
  const events = page.locator('.events');
  await events.getByRole('link', { name: 'CPU usage' }).waitFor();
  await events.getByText('still open').waitFor();
  const begun = await events.locator('time').first().getAttribute('datetime');
  t.equal(Math.round((Date.now() - Date.parse(begun as string)) / DAY_MS), 3, 'with its beginning');
  t.equal(await events.getByRole('link').count(), 1, 'those of other times are not');
  await page
    .locator('.alerts')
    .getByRole('link', { name: /CPU usage/ })
    .click();
  await page.getByRole('heading', { name: 'CPU usage is critically high' }).waitFor();
  await until('its changes are listed', async () => (await page.locator('tbody tr').count()) === 2);
  // A time during which the other alert was open: it was resolved after that time.
  const raisedMs = Date.now() - 10 * DAY_MS;
  const query = [raisedMs - 30_000, raisedMs + 60_000].map((ms, i) => `${i === 0 ? 'from' : 'to'}=${new Date(ms).toISOString()}`).join('&');
  await page.goto(`${service.url}/#/nodes/${LOCAL}?${query}`);
  await events.getByRole('link', { name: 'CPU usage' }).waitFor();
  t.notMatch(await events.innerText(), 'still open');
  t.same(errors, []);
});
