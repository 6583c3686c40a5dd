import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { CHROMIUM, launchBrowser, openPage } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, RealClocks, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(900_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
/** The longest name that is allowed. */
const LONG = 'school/building_2/classroom_204/turtlebot_turtlebot_number_00017';
const VIEWS = [
  '#/wall',
  '#/nodes',
  '#/nodes/robot-3?range=1h',
  '#/alerts',
  '#/alerts/robot-3%2Fcpu_percent%2F1',
  '#/system',
  `#/nodes/${encodeURIComponent(LONG)}`,
  `#/alerts/${encodeURIComponent(`${LONG}/cpu_percent/1`)}`,
  '#/nothing',
];
const SIZES = [
  { width: 360, height: 740 },
  { width: 1366, height: 768 },
  { width: 3840, height: 2160 },
];

/** A service that receives `count` robots at 1 Hz; robot-3 has a WARNING. */
async function fleet(t: Test, count: number): Promise<{ service: InProcessService; stop: (node: string) => void }> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
  await service.start();
  t.teardown(() => service.stop());
  const stopped = new Set<string>();
  const publish = (): void => {
    service.measure({ cpu_percent: 20 + (Date.now() % 7) });
    for (let n = 1; n <= count; n += 1) {
      const name = n === 4 ? LONG : `robot-${n}`;
      if (stopped.has(name)) continue;
      const isHot = n === 3;
      service.remoteNodes.onHealthStatus(
        statusOf(name, Date.now(), { cpu_percent: (n * 7) % 60, temperature: isHot ? 81 : 50, status: isHot ? 'WARNING' : 'OK' }),
      );
    }
  };
  publish();
  const timer = setInterval(publish, 1000);
  t.teardown(() => clearInterval(timer));
  for (const node of count < 4 ? ['robot-3'] : ['robot-3', LONG]) service.remoteNodes.onAlert(alertOf(node, '1', Date.now()));
  return { service, stop: (node) => stopped.add(node) };
}

/** Resolves once the page is live and shows data. */
async function ready(page: Page): Promise<void> {
  await page.getByText('Live', { exact: true }).waitFor();
}

t.test('no view has a barrier that axe-core finds, or content that overflows, in any size and scheme', { skip }, async (t) => {
  const { service } = await fleet(t, 5);
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  for (const address of VIEWS) {
    for (const size of SIZES) {
      const { page, errors } = await openPage(browser, `${service.url}/${address}`, size);
      await ready(page);
      // An expression, because the page's policy forbids eval() and inline scripts.
      await page.evaluate(readFileSync(axe, 'utf8'));
      for (const scheme of ['light', 'dark', 'contrast']) {
        await page.getByRole('combobox', { name: 'Appearance' }).selectOption(scheme);
        const findings = await page.evaluate(async () => {
          const { axe } = globalThis as unknown as {
            axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          };
          const { violations } = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] });
          return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
        });
        t.same(findings, [], `${address} ${size.width} px ${scheme}`);
      }
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      t.ok(width <= size.width, `${address}: ${width} of ${size.width} px`);
      t.same(errors, []);
      await page.close();
    }
  }
});

t.test('the keyboard alone reaches a node, another time and an alert', { skip }, async (t) => {
  const { service } = await fleet(t, 3);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/wall`);
  await ready(page);
  await page.locator('.tile', { hasText: 'robot-3' }).waitFor();
  const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent ?? '');
  const tabTo = async (text: RegExp): Promise<void> => {
    for (let n = 0; n < 80; n += 1) {
      await page.keyboard.press('Tab');
      if (text.test(await focused())) return;
    }
    throw new Error(`${text} cannot be reached with the Tab key`);
  };
  await tabTo(/robot-3/);
  await page.keyboard.press('Enter');
  await page.locator('.hero', { hasText: 'WARNING' }).waitFor();
  await page.locator('input[name=window]:checked').focus();
  await page.keyboard.press('ArrowRight');
  await until('the address names the range', async () => /range=1h/.test(page.url()));
  await page.getByRole('button', { name: 'Earlier' }).press('Enter');
  await until('a fixed range', async () => /from=.*&to=/.test(page.url()));
  t.same(errors, []);
});

t.test('300 nodes: the wall shows all of them, those with problems first', { skip }, async (t) => {
  const { service, stop } = await fleet(t, 299);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/wall`);
  await ready(page);
  await until('all nodes', async () => (await page.locator('.tile').count()) === 300);
  await until('the warning is first', async () => /robot-3/.test(await page.locator('.tile').first().innerText()));
  stop('robot-7');
  await until('a node without data is before it', async () =>
    /robot-7[\s\S]*UNKNOWN/.test(await page.locator('.tile').first().innerText()),
  );
  t.same(errors, []);
});

t.test('each view is shown again after a reload, and from a link', { skip }, async (t) => {
  const { service } = await fleet(t, 3);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  for (const [address, text] of [
    ['#/wall', '4 nodes'],
    ['#/nodes/robot-2', 'seen from'],
    ['#/alerts', 'CPU usage'],
    ['#/system', 'ROS 2'],
  ] as const) {
    const { page } = await openPage(browser, `${service.url}/${address}`);
    await page.locator('main, .subject').filter({ hasText: text }).first().waitFor();
    await page.reload();
    await page.locator('main, .subject').filter({ hasText: text }).first().waitFor();
    t.match(page.url(), address);
    await page.close();
  }
});

t.test('alerts are filtered by the address, and one of them is shown with its history and what to do', { skip }, async (t) => {
  const { service } = await fleet(t, 3);
  const nowMs = Date.now();
  service.remoteNodes.onAlert(alertOf('robot-2', '7', nowMs - 60_000, { severity: 'CRITICAL', value: 97 }));
  service.remoteNodes.onAlert(alertOf('robot-2', '7', nowMs - 20_000, { severity: 'CRITICAL', value: 60, resolved: true }));
  await service.settled();
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/alerts`);
  const rows = page.locator('.episode');
  await until('both are listed', async () => (await rows.count()) === 2);
  t.match(await rows.first().innerText(), /WARNING[\s\S]*robot-3 CPU usage is high[\s\S]*open for/, 'the open one first');
  await until('the past one with its length', async () =>
    /CRITICAL[\s\S]*robot-2 CPU usage was critically high[\s\S]*lasted 40 s/.test(await rows.last().innerText()),
  );
  await page.getByLabel('State').selectOption('past');
  await until('only the past one', async () => (await rows.count()) === 1);
  t.match(page.url(), /state=past/, 'the address has the filter');
  await page.reload();
  await until('again after a reload', async () => (await rows.count()) === 1);
  await rows.first().click();
  await page.getByRole('heading', { name: 'CPU usage was critically high' }).waitFor();
  await page.getByText('What to do now').waitFor();
  t.equal(await page.locator('tbody tr').count(), 2, 'its changes');
  const chart = page.getByRole('img', { name: /^CPU usage, .*: .* %$/ });
  await chart.waitFor();
  t.ok(((await chart.boundingBox())?.height ?? 0) > 100, 'the values around it, as a chart');
  await page.getByRole('link', { name: 'Show the measurements around it' }).click();
  await until('the node in that time', async () => /#\/nodes\/robot-2\?from=/.test(page.url()));
  await page.goto(`${service.url}/#/alerts/nobody%2Fcpu_percent%2F1`);
  await page.getByText('This alert is not known.').waitFor();
  t.same(errors, []);
});
