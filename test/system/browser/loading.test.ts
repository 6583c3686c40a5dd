import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import t from 'tap';
import { CHROMIUM, launchBrowser, TIMEOUT_MS } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, RealClocks, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(900_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const ADDRESSES = ['', '#/wall', '#/nodes?range=24h', '#/nodes/robot_3', '#/alerts', '#/alerts/robot_3%2Fcpu_percent%2F1', '#/system'];
const SIZES = [
  { width: 390, height: 844 },
  { width: 1366, height: 768 },
];
const NETWORKS = {
  fast: null,
  slow: { offline: false, latency: 200, downloadThroughput: 150_000, uploadThroughput: 50_000 },
};
/** The limit that web.dev states for a good layout shift. */
const MAX_SHIFT = 0.1;

/** Loads a page until everything has arrived and one more measurement is shown. Returns its layout shift and what it said of a loss. */
async function load(browser: Browser, url: string, viewport: (typeof SIZES)[number], network: keyof typeof NETWORKS) {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const pending = new Set<string>();
  page.on('request', (request) => !/events|event-worker/.test(request.url()) && pending.add(request.url()));
  page.on('requestfinished', (request) => pending.delete(request.url()));
  await page.addInitScript(() => {
    const found = { shift: 0, losses: '' };
    Object.assign(globalThis, { found });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) found.shift += (entry as PerformanceEntry & { value: number }).value;
    }).observe({ type: 'layout-shift', buffered: true });
    const read = (): void => {
      found.losses += /(No data|No response|Trying)[^\n]*/.exec(document.body?.innerText ?? '')?.[0] ?? '';
    };
    new MutationObserver(read).observe(document, { subtree: true, childList: true, characterData: true });
  });
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  const conditions = NETWORKS[network];
  if (conditions) await session.send('Network.emulateNetworkConditions', conditions);
  await page.goto(url);
  await page.getByText('Live', { exact: true }).waitFor();
  await until('everything has arrived', async () => pending.size === 0, { describe: () => [...pending].join(' ') });
  const measured = await page.locator('.link .second').textContent();
  await page.waitForFunction((text) => document.querySelector('.link .second')?.textContent !== text, measured);
  const found = await page.evaluate(() => (globalThis as unknown as { found: { shift: number; losses: string } }).found);
  await context.close();
  return found;
}

for (const [count, addresses, networks] of [
  [6, ADDRESSES, ['fast', 'slow']],
  [300, ['', '#/nodes/robot_3', '#/alerts'], ['slow']],
] as const) {
  t.test(`${count} nodes: loading is not a loss, and what is shown stays where it is`, { skip }, async (t) => {
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, 'run'));
    const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
    await service.start();
    t.teardown(() => service.stop());
    const publish = (): void => {
      service.measure({ cpu_percent: 20 });
      for (let n = 1; n < count; n += 1) {
        const status = n === 3 ? 'WARNING' : 'OK';
        service.remoteNodes.onHealthStatus(statusOf(`robot_${n}`, Date.now(), { cpu_percent: (n * 7) % 60, status }));
      }
    };
    publish();
    const timer = setInterval(publish, 1000);
    t.teardown(() => clearInterval(timer));
    service.remoteNodes.onAlert(alertOf('robot_3', '1', Date.now()));
    service.remoteNodes.onAlert(alertOf('robot_2', '2', Date.now() - 60_000));
    service.remoteNodes.onAlert(alertOf('robot_2', '2', Date.now() - 20_000, { resolved: true }));
    await service.settled();
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    for (const network of networks) {
      for (const size of SIZES) {
        const loads = addresses.map(async (address) => {
          const { losses, shift } = await load(browser, `${service.url}/${address}`, size, network);
          t.equal(losses, '', `${address}, ${size.width} px, ${network}`);
          t.ok(shift <= MAX_SHIFT, `${address}, ${size.width} px, ${network}: layout shift ${shift.toFixed(3)}`);
        });
        await Promise.all(loads);
      }
    }
  });
}
