import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CHROMIUM, launchBrowser, openPage } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, statusOf, TestClocks } from '../../../testkit/service/remote-nodes.ts';
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

t.test('a line at 100 % is drawn whole below the bar of an alert', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const clocks = new TestClocks();
  const options = { localNode: 'arm', dashboardFolder: join(ROOT, 'dist/dashboard') };
  const service = new InProcessService(folder, clocks, options);
  await service.start();
  t.teardown(() => service.stop());
  const fromMs = clocks.wallMs;
  const alert = alertOf('leg', '1', fromMs, { severity: 'CRITICAL', value: 100, threshold: 90 });
  await service.run(RANGE_SECONDS, (second) => {
    service.measure();
    service.remoteNodes.onHealthStatus(statusOf('leg', clocks.wallMs, { cpu_percent: 100 }));
    if (second === 5) service.remoteNodes.onAlert(alert);
  });
  const range = `from=${new Date(fromMs).toISOString()}&to=${new Date(clocks.wallMs).toISOString()}`;
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/nodes/leg?${range}`);
  const canvas = page.locator('article', { hasText: 'CPU usage' }).locator('canvas');
  /** Colours of a column of pixels in the middle of the chart, from the top to the first quarter: those of the bar and of the line. */
  const colours = (): Promise<{ bar: number; line: number }> =>
    canvas.evaluate((element: HTMLCanvasElement) => {
      const context = element.getContext('2d') as CanvasRenderingContext2D;
      const { data } = context.getImageData(Math.round(element.width / 2), 0, 1, Math.round(element.height / 4));
      const parts = (name: string): number[] => {
        context.save();
        context.fillStyle = getComputedStyle(element).getPropertyValue(name).trim();
        const hex = context.fillStyle;
        context.restore();
        return [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
      };
      const count = (name: string): number => {
        const colour = parts(name);
        let found = 0;
        for (let i = 0; i < data.length; i += 4) if (colour.every((part, c) => Math.abs(part - (data[i + c] as number)) < 30)) found += 1;
        return found;
      };
      return { bar: count('--critical'), line: count('--chart') };
    });
  let seen = { bar: 0, line: 0 };
  const both = async (): Promise<boolean> => {
    seen = await colours();
    return seen.bar >= 3 && seen.line >= 1;
  };
  await until('the bar and the line', both, { seconds: 30, describe: () => seen });
  t.same(errors, []);
});
