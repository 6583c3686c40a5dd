import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CHROMIUM, launchBrowser, openPage } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { InProcessService, TestClocks } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const RANGE_SECONDS = 1800;

t.test('the range of values in each step is drawn whenever it arrives, also if the first value is unavailable', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const clocks = new TestClocks();
  const service = new InProcessService(folder, clocks, { dashboardFolder: join(ROOT, 'dist/dashboard') });
  await service.start();
  t.teardown(() => service.stop());
  const fromMs = clocks.wallMs;
  await service.run(RANGE_SECONDS, (second) => service.measure({ cpu_percent: second < 60 ? null : 20 + 60 * (second % 2) }));
  const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(clocks.wallMs).toISOString()}`;
  // The page stays live, since a notice of a loss would change the size of the chart.
  const timer = setInterval(() => {
    clocks.pass(1);
    service.measure();
  }, 1000);
  t.teardown(() => clearInterval(timer));
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, 'about:blank');
  // The means and the range of values are held back until the test has seen what is drawn without them.
  const [means, values] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route(/\/health\/history/, async (route) => {
    await (/value=/.test(route.request().url()) ? values : means).promise;
    await route.continue();
  });
  await page.goto(`${service.url}/#/nodes?${range}`);
  const card = page.locator('article', { hasText: 'CPU usage' });
  await card.locator('.range', { hasText: 'Loading' }).waitFor();
  /** The picture; empty if nothing is drawn yet. */
  const drawn = (): Promise<string> =>
    card.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const blank = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
      const picture = canvas.toDataURL();
      return picture === blank.toDataURL() ? '' : picture;
    });
  let axes = '';
  await until('the axes are drawn', async () => {
    axes = await drawn();
    return axes !== '';
  });
  means.resolve();
  let before = axes;
  await until('the means are drawn', async () => {
    before = await drawn();
    return before !== axes;
  });
  values.resolve();
  await until('the text names the lowest and the highest value', async () => /20.0 to 80.0/.test(await card.innerText()));
  await until('the chart shows them', async () => (await drawn()) !== before, { seconds: 20 });
  t.same(errors, []);
});
