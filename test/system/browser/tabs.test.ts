import { writeFileSync } from 'node:fs';
import type { BrowserContext, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { CHROMIUM, launchBrowser, PLAIN_HOST, TIMEOUT_MS } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT, RunningService } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(900_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';

const TABS = 20;
/** A recorded machine, so that the load of other tests raises no alert. */
const RECORDED = { arguments: ['--proc', `${ROOT}/testkit/fixtures/pi5/proc`, '--sys', `${ROOT}/testkit/fixtures/pi5/sys`] };
const LIVE = /^\s*Live\s*$/m;

interface Status {
  readonly rest: { readonly event_streams: number };
}

interface Tabs {
  service: RunningService;
  readonly context: BrowserContext;
  /** Opens a tab with the page over plain HTTP, under a name that is no secure context. */
  readonly open: (address?: string) => Promise<Page>;
  readonly errors: string[];
  /** Starts the service again on the same port. */
  readonly restart: () => Promise<void>;
}

/** A service and the tabs of one browser. */
async function tabsOf(t: Test, rest: object = {}): Promise<Tabs> {
  const folder = temporaryFolder(t);
  const config = { rest: { allowed_hosts: [PLAIN_HOST], ...rest } };
  const service = await RunningService.start(folder, { config, ...RECORDED });
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext();
  context.setDefaultTimeout(TIMEOUT_MS);
  const port = Number(new URL(service.url).port);
  const errors: string[] = [];
  context.on('weberror', (error) => errors.push(error.error().message));
  const tabs: Tabs = {
    service,
    context,
    errors,
    open: async (address = '') => {
      const page = await context.newPage();
      await page.goto(`http://${PLAIN_HOST}:${port}/${address}`);
      return page;
    },
    restart: async () => {
      tabs.service = await RunningService.start(folder, { config: { rest: { ...config.rest, port } }, ...RECORDED });
    },
  };
  t.teardown(() => tabs.service.end());
  return tabs;
}

const isLive = async (page: Page): Promise<boolean> => LIVE.test(await page.locator('header').innerText());

async function allLive(pages: readonly Page[]): Promise<void> {
  await until(`${pages.length} tabs are live`, async () => (await Promise.all(pages.map(isLive))).every(Boolean));
}

async function streamsOpen({ service }: Tabs, count: number, headers: Record<string, string> = {}): Promise<void> {
  let found = Number.NaN;
  const isReached = async (): Promise<boolean> => {
    found = ((await (await service.get('/status', { headers })).json()) as Status).rest.event_streams;
    return found === count;
  };
  await until(`${count} event streams`, isReached, { describe: () => `${found} streams` });
}

/** What the browser does when another tab is selected, or this one again. */
async function setVisible(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate(
    (visibility) => {
      Object.defineProperty(document, 'visibilityState', { value: visibility, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    },
    isVisible ? 'visible' : 'hidden',
  );
}

t.test('all tabs of a browser share one event stream, which leaves its connections to other requests', { skip }, async (t) => {
  const tabs = await tabsOf(t);
  const pages: Page[] = [];
  for (let n = 0; n < TABS; n += 1) pages.push(await tabs.open());
  await allLive(pages);
  t.equal(await pages[0]?.evaluate(() => isSecureContext), false, 'without HTTPS');
  await streamsOpen(tabs, 1);
  t.equal(await pages[TABS - 1]?.evaluate(() => fetch('health').then(({ status }) => status)), 200, 'another request is answered');

  await tabs.service.end('SIGKILL');
  await until('every tab shows that the data is old', async () => !(await Promise.all(pages.map(isLive))).some(Boolean));
  await tabs.restart();
  await allLive(pages);
  await streamsOpen(tabs, 1);

  const [last, ...others] = pages.toReversed() as [Page, ...Page[]];
  for (const page of others) await page.close();
  const shown = (): Promise<string> => last.locator('header').innerText();
  const before = await shown();
  await until('the last tab continues', async () => (await shown()) !== before && (await isLive(last)));
  await last.goto('about:blank');
  await streamsOpen(tabs, 0);
  t.same(tabs.errors, []);
});

t.test('a hidden tab costs nothing, and is up to date once it is visible again', { skip }, async (t) => {
  const tabs = await tabsOf(t);
  for (const hasWorker of [true, false]) {
    // Chromium on Android has no shared workers.
    if (!hasWorker) await tabs.context.addInitScript(() => Reflect.deleteProperty(globalThis, 'SharedWorker'));
    const page = await tabs.open('#/nodes');
    await allLive([page]);
    await streamsOpen(tabs, 1);
    await setVisible(page, false);
    await streamsOpen(tabs, 0);
    await until(
      'its title shows no status, which may be wrong by now',
      async () => !/^(OK|WARNING|ERROR|CRITICAL)/.test(await page.title()),
    );
    const requests: string[] = [];
    page.on('request', (request) => {
      if (!/\/status\/\w+\.svg$/.test(request.url())) requests.push(request.url()); // The icon of that title.
    });
    await page.evaluate(() => {
      const counted = globalThis as unknown as { changes: number };
      counted.changes = 0;
      new MutationObserver((records) => {
        counted.changes += records.length;
      }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    });
    const { timestamp } = await tabs.service.json<{ timestamp: string }>('/health');
    await tabs.service.until<{ timestamp: string }>('/health', (now) => Date.parse(now.timestamp) - Date.parse(timestamp) >= 6000);
    t.equal(await page.evaluate(() => (globalThis as unknown as { changes: number }).changes), 0, 'nothing is drawn');
    t.same(requests, [], 'nothing is requested');
    await setVisible(page, true);
    await allLive([page]);
    await streamsOpen(tabs, 1);
    await page.close();
    await streamsOpen(tabs, 0);
  }
  t.same(tabs.errors, []);
});

t.test('each tab uses its own token, and a wrong one affects no other tab', { skip }, async (t) => {
  const file = `${temporaryFolder(t)}/token`;
  const write = (token: string): void => writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const enter = async (page: Page, token: string): Promise<void> => {
    await page.locator('#token').fill(token);
    await page.keyboard.press('Enter');
  };
  write('correct-horse-battery');
  const tabs = await tabsOf(t, { token_file: file });
  const pages = [await tabs.open(), await tabs.open()] as const;
  await enter(pages[0], 'correct-horse-battery');
  await allLive([pages[0]]);
  t.equal(await pages[1].locator('#token').count(), 1, 'the other tab has no token yet');
  await enter(pages[1], 'wrong');
  await pages[1].getByRole('alert').filter({ hasText: /./ }).waitFor();
  t.ok(await isLive(pages[0]));
  await enter(pages[1], 'correct-horse-battery');
  await allLive(pages);
  await streamsOpen(tabs, 1, { Authorization: 'Bearer correct-horse-battery' });

  write('staple-of-the-second-year');
  tabs.service.process.kill('SIGHUP');
  for (const page of pages) await page.locator('#token').waitFor();
  for (const page of pages) await enter(page, 'staple-of-the-second-year');
  await allLive(pages);
  await streamsOpen(tabs, 1, { Authorization: 'Bearer staple-of-the-second-year' });
  t.same(tabs.errors, []);
});
