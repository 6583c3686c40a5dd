import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CHROMIUM, launchBrowser, openPage, showsText } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, RealClocks, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const HOUR_MS = 3_600_000;

t.test('the wall shows all nodes at a glance, and the node view one of them in detail', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
  await service.start();
  t.teardown(() => service.stop());
  let isLegThere = true;
  let arms = 0;
  const say = (): void => {
    service.measure({ cpu_percent: 25 });
    arms += 1;
    service.remoteNodes.onHealthStatus(
      statusOf('arm', Date.now() - 2 * HOUR_MS, { cpu_percent: 81.5, memory_percent: arms % 90, status: 'WARNING' }),
    );
    if (isLegThere) service.remoteNodes.onHealthStatus(statusOf('leg', Date.now(), { cpu_percent: arms % 50 }));
  };
  say();
  const timer = setInterval(say, 500);
  t.teardown(() => clearInterval(timer));
  service.remoteNodes.onAlert(alertOf('arm', '1', Date.now()));
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/`);

  const tile = (name: string) => page.locator('.tile', { hasText: name });
  const tab = (name: string) => page.getByRole('navigation').getByRole('link', { name, exact: true });
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('heading', { name: '3 nodes: 1 WARNING, 2 OK' }).waitFor();
  await tile('arm').filter({ hasText: 'WARNING' }).filter({ hasText: '82 %' }).waitFor();
  t.match(await page.locator('.tile').first().innerText(), 'arm', 'the worst is first');
  t.equal(await page.locator('.tile svg').count(), 3, 'a shape each, not colour alone');
  await until('the title has the worst status', async () => /^WARNING/.test(await page.title()), { describe: () => page.url() });
  await page.locator('link[rel=icon][href*=warning]').waitFor({ state: 'attached' });

  await tab('Node').click();
  const hint = page.locator('.hero').getByRole('link', { name: 'Other nodes: 1 open alert' });
  await page.locator('.hero').filter({ hasText: 'arm is WARNING. This machine is OK.' }).waitFor();
  await page.locator('.alerts').filter({ hasText: 'arm' }).waitFor();
  await hint.click();
  await page.locator('.hero').filter({ hasText: 'WARNING' }).waitFor();
  // The alerts of the shown node arrive with the next response.
  await hint.waitFor({ state: 'detached' });
  t.pass('the machine is OK, and says that another is not, and which');
  await page.locator('article', { hasText: 'CPU usage' }).filter({ hasText: '81.5' }).waitFor();
  await page.getByText(/The clock of arm is 2 h behind/).waitFor();
  await showsText(page.locator('.alerts'), /CPU usage is high/);
  t.match(page.url(), /#\/nodes\/arm$/, 'the address names it');
  await page
    .locator('article', { hasText: 'Memory usage' })
    .locator('.range')
    .filter({ hasText: / to |steady/ })
    .waitFor();
  await page.reload();
  await page.getByText('seen from').waitFor();
  t.pass('and it is shown again after a reload');

  await tab('All nodes').click();
  await tile('leg').click();
  await page.locator('.hero').filter({ hasText: 'OK' }).waitFor();
  await showsText(page.locator('.alerts'), /No open alerts of leg[\s\S]*Other nodes: 1 open alert/);
  await hint.waitFor();
  isLegThere = false;
  await page
    .locator('.hero')
    .filter({ hasText: /No data from leg since/ })
    .waitFor();
  await page.goBack();
  await tile('leg').filter({ hasText: 'UNKNOWN' }).filter({ hasText: 'ago' }).waitFor();
  t.match(await page.locator('.tile').first().innerText(), 'leg', 'a node without data is before a WARNING');
  const critical = alertOf('arm', '2', Date.now(), { severity: 'CRITICAL' });
  service.remoteNodes.onAlert(critical);
  await page.locator('header .mark.critical').waitFor();
  await until('the title has the worst status', async () => /^CRITICAL/.test(await page.title()), { describe: () => page.url() });
  t.match(await page.locator('.tile').first().innerText(), 'arm', 'and after a CRITICAL, which it does not hide');
  service.remoteNodes.onAlert({ ...critical, resolved: true, timestamp: new Date().toISOString() });
  await page.locator('header .mark.critical').waitFor({ state: 'detached' });
  await page.goForward();
  await page.locator('.alerts').filter({ hasText: 'ERROR' }).waitFor();
  isLegThere = true;
  await page.locator('.hero').filter({ hasText: 'OK' }).waitFor();
  await page.locator('.alerts').filter({ hasText: 'No open alerts of leg' }).waitFor();
  t.same(errors, [], 'no error in the page');
  const phone = await openPage(browser, `${service.url}/`, { width: 360, height: 740 });
  await phone.page.locator('.tile').first().waitFor();
  const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
  t.ok(width <= 360, `nothing sticks out of a phone: ${width} px`);
});
