import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { CHROMIUM, launchBrowser, TIMEOUT_MS } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { alertOf, InProcessService, RealClocks, statusOf } from '../../../testkit/service/remote-nodes.ts';
import { ROOT } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(900_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const SIZES = [
  { width: 390, height: 844 },
  { width: 1366, height: 768 },
  { width: 1920, height: 1080 },
  { width: 3840, height: 2160 },
];
const FULL = { cpu_percent: 100, memory_percent: 100, disk_percent: 100, temperature: 105 };

/** A service with `count` nodes whose values need the most space; some have alerts, some are stale. */
async function fleet(t: Test, count: number, nameOf: (n: number) => string): Promise<InProcessService> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'run'));
  const options = { localNode: nameOf(0), dashboardFolder: join(ROOT, 'dist/dashboard') };
  const service = new InProcessService(folder, new RealClocks(), options);
  await service.start();
  t.teardown(() => service.stop());
  const publish = (isFirst: boolean): void => {
    service.measure(FULL);
    for (let n = 1; n < count; n += 1) {
      if (!isFirst && n % 5 === 2) continue;
      const status = n % 7 === 3 ? 'CRITICAL' : 'OK';
      service.remoteNodes.onHealthStatus(statusOf(nameOf(n), Date.now() - (n % 5 === 2 ? 3_700_000 : 0), { ...FULL, status }));
    }
  };
  publish(true);
  const timer = setInterval(() => publish(false), 1000);
  t.teardown(() => clearInterval(timer));
  for (let n = 3; n < count; n += 7) {
    service.remoteNodes.onAlert(alertOf(nameOf(n), '1', Date.now(), { severity: 'CRITICAL', value: 100, threshold: 90 }));
  }
  await service.settled();
  return service;
}

/** What cannot be read in a tile: text that is cut off, or outside of its tile, or on top of other text. */
function unreadable(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const findings: string[] = [];
    const overlap = (a: DOMRect, b: DOMRect): boolean =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    for (const tile of document.querySelectorAll<HTMLElement>('.tile')) {
      const node = tile.querySelector('.name')?.textContent ?? '';
      const add = (what: string, element: Element): number => findings.push(`${node}: ${what}: ${element.textContent}`);
      const outer = tile.getBoundingClientRect();
      if (tile.scrollHeight > tile.clientHeight || tile.scrollWidth > tile.clientWidth) add('does not fit', tile);
      const texts = [...tile.querySelectorAll<HTMLElement>('.name, .word, .cause, .cause span, .age, .what, .reading')];
      for (const element of texts) {
        const { height, left, right } = element.getBoundingClientRect();
        if (left < outer.left || right > outer.right) add('outside', element);
        if (element.scrollHeight > element.clientHeight && getComputedStyle(element).overflow !== 'visible') add('cut off below', element);
        if (!element.matches('.name, .cause span') && element.scrollWidth > element.clientWidth + 1) add('cut off', element);
        if (height === 0 || Number.parseFloat(getComputedStyle(element).fontSize) < 8) add('too small', element);
      }
      // The beginning of a name may be cut off, but not its end.
      const name = tile.querySelector('.name bdi') as HTMLElement;
      const letters = name.firstChild as Text;
      const end = document.createRange();
      end.setStart(letters, Math.max(0, letters.length - 15));
      end.setEnd(letters, letters.length);
      const [inner, shown] = [(name.parentElement as HTMLElement).getBoundingClientRect(), end.getBoundingClientRect()];
      if (shown.left < inner.left - 1 || shown.right > inner.right + 1) add('end cut off', name);
      const boxes = texts.filter((element) => !element.matches('.what, .cause span')).map((element) => element.getBoundingClientRect());
      for (const [i, a] of boxes.entries()) if (boxes.slice(i + 1).some((b) => overlap(a, b))) add('overlap', texts[i] as Element);
    }
    return findings.slice(0, 8);
  });
}

/** The smallest share of a name that is shown. */
function shortened(page: Page): Promise<number> {
  return page.evaluate(() => {
    const names = [...document.querySelectorAll<HTMLElement>('.tile .name')];
    return Math.min(...names.map(({ clientWidth, scrollWidth }) => clientWidth / scrollWidth));
  });
}

const NAMES = {
  short: (n: number) => `robot_${n}`,
  long: (n: number) => `classroom_${1 + (n % 4)}_turtlebot_${String(n).padStart(3, '0')}`,
};

for (const [kind, count] of [
  ['short', 1],
  ['short', 6],
  ['long', 6],
  ['long', 30],
  ['short', 41],
  ['long', 100],
  ['short', 300],
  ['long', 300],
] as const) {
  t.test(`${count} nodes with ${kind} names: everything on the wall can be read`, { skip }, async (t) => {
    const service = await fleet(t, count, NAMES[kind]);
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    for (const locale of ['en', 'de']) {
      const context = await browser.newContext({ locale });
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      await page.goto(`${service.url}/#/wall`);
      await page
        .locator('.tile')
        .nth(count - 1)
        .waitFor();
      if (count > 2) await page.locator('.tile.stale').first().waitFor();
      // The last values of stale nodes are requested for some only.
      const current = Array.from({ length: count }, (_, n) => n % 5 !== 2 || n === 0).filter(Boolean).length;
      const values = page.locator('.tile:not(.stale) .reading', { hasText: '105' });
      await until('the values', async () => (await values.count()) === current);
      for (const size of SIZES) {
        await page.setViewportSize(size);
        let findings: string[] = [];
        const fits = async (): Promise<boolean> => {
          findings = await unreadable(page);
          return findings.length === 0;
        };
        await until(`${locale} ${size.width} px`, fits, { seconds: 20, describe: () => findings });
        if (kind === 'short') t.equal(await shortened(page), 1, `${size.width} px: no name is shortened`);
        else t.ok((await shortened(page)) > 0.7, `${size.width} px: names show most of their letters`);
      }
      await context.close();
    }
  });
}

t.test('values of a node without current data are marked', { skip }, async (t) => {
  const service = await fleet(t, 4, NAMES.short);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${service.url}/#/wall`);
  const stale = page.locator('.tile', { hasText: 'robot_2' });
  await stale.filter({ hasText: 'last known' }).filter({ hasText: ' ago' }).waitFor();
  t.equal(await page.locator('.tile', { hasText: 'last known' }).count(), 1);
  await service.stop();
  await until('no value is current', async () => (await page.locator('.tile', { hasText: /last known|since/ }).count()) === 4);
  t.equal(await page.locator('.tile', { hasText: /live|here/ }).count(), 0);
});

t.test('in full screen, the tiles fill the screen', { skip }, async (t) => {
  const service = await fleet(t, 12, NAMES.short);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1366, height: 768 } });
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${service.url}/#/wall`);
  await page.locator('.tile').nth(11).waitFor();
  const gapBelow = (): Promise<number> =>
    page.evaluate(() => {
      const bottom = Math.max(...[...document.querySelectorAll('.tile')].map((tile) => tile.getBoundingClientRect().bottom));
      const wall = document.querySelector('.wall') as HTMLElement;
      return innerHeight - bottom - Number.parseFloat(getComputedStyle(wall).paddingBottom);
    });
  const fills = async (): Promise<boolean> => Math.abs(await gapBelow()) <= 2;
  await until('the tiles fill the window', fills, { describe: () => 'not filled' });
  await page.getByRole('button', { name: 'Full screen' }).click();
  await page.locator('.wall.full').waitFor();
  await until('the tiles fill the screen', fills, { describe: () => 'a blank strip' });
  await page.getByRole('button', { name: 'Leave full screen' }).click();
  await page.locator('.wall:not(.full)').waitFor();
  await until('the tiles fill the window again', fills, { describe: () => 'not filled' });
  t.pass('no blank strip');
});
