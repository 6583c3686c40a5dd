import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CHROMIUM, launchBrowser, openPage } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { InProcessService, RealClocks, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';

t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const NODES = 60;
const ROUNDS = 3;
/** A page that keeps each rendered tree in memory grows by about 25 MB in these rounds. */
const MAX_GROWTH_BYTES = 3e6;

for (const view of ['wall', 'nodes', 'alerts', 'system']) {
  t.test(`${view}: nodes that publish at different moments leave nothing in the page's memory`, { skip }, async (t) => {
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, 'run'));
    const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
    await service.start();
    t.teardown(() => service.stop());
    const publish = (n: number, cpu_percent: number): void => {
      if (n === 0) service.measure({ cpu_percent });
      else service.remoteNodes.onHealthStatus(statusOf(`robot_${n}`, Date.now(), { cpu_percent }));
    };
    for (let n = 0; n < NODES; n += 1) publish(n, 5);
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const { page, errors } = await openPage(browser, `${service.url}/#/wall`);
    await page
      .locator('.tile')
      .nth(NODES - 1)
      .waitFor();
    const session = await page.context().newCDPSession(page);
    const usedBytes = async (): Promise<number> => {
      await session.send('HeapProfiler.collectGarbage');
      return (await session.send('Runtime.getHeapUsage')).usedSize;
    };
    // Each publication is followed by a rendering, without waiting for the page's own interval.
    const render = (): Promise<void> =>
      page.evaluate(async () => {
        await new Promise(requestAnimationFrame);
        dispatchEvent(new Event('routechange'));
      });
    await page.goto(`${service.url}/#/${view}`);
    const publishAll = async (cpu: number): Promise<void> => {
      for (let n = 0; n < NODES; n += 1) {
        publish(n, cpu);
        await render();
      }
    };
    // The code is compiled and the caches are filled.
    await publishAll(10);
    const before = await usedBytes();
    for (let round = 1; round <= ROUNDS; round += 1) await publishAll(10 + round);
    const growth = (await usedBytes()) - before;
    t.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes after ${ROUNDS * NODES} publications`);
    await page.goto(`${service.url}/#/wall`);
    const last = page.locator('.tile', { hasText: new RegExp(`CPU\\s*${10 + ROUNDS} %`) });
    await last.nth(NODES - 1).waitFor();
    t.pass('the page has received all of them');
    t.same(errors, []);
  });
}
