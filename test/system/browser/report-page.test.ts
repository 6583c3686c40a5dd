import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import type { ReportInput } from '../../../harness/report/compose.ts';
import { badWeek } from '../../../harness/report/testing/bad-week.ts';
import { assets, forms } from '../../../harness/report/testing/forms.ts';
import { HOSTILE, named } from '../../../harness/report/testing/hostile.ts';
import { nothing, perfectWeek, tenMinutes } from '../../../harness/report/testing/runs.ts';
import { writeDocument } from '../../../harness/report/write.ts';
import { CHROMIUM, launchBrowser, showsText, TIMEOUT_MS } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { until } from '../../../testkit/wait.ts';

/** report.html as its readers have it: a file, opened in a browser without a network. */
t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';
const browser = skip === false ? await launchBrowser() : null;
t.teardown(() => browser?.close());
const folder = temporaryFolder(t);

interface Opened {
  readonly page: Page;
  readonly errors: string[];
  readonly requests: string[];
}

async function open(t: Test, input: ReportInput, options: Parameters<NonNullable<typeof browser>['newContext']>[0] = {}): Promise<Opened> {
  const { document } = await forms(input);
  const place = join(folder, String(Math.random()).slice(2));
  mkdirSync(place);
  await writeDocument(place, document, await assets());
  const context = await (browser as NonNullable<typeof browser>).newContext({
    offline: true,
    viewport: { width: 1280, height: 900 },
    ...options,
  });
  t.teardown(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const errors: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => errors.push(`${message.type()}: ${message.text()}`));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(join(place, 'report.html')).href);
  return { page, errors, requests: requests.filter((url) => !url.startsWith('data:')) };
}

/** Coloured pixels of each canvas, without grid and labels. */
function colours(page: Page): Promise<number[]> {
  return page.locator('canvas').evaluateAll((canvases) =>
    canvases.map((canvas) => {
      const { height, width } = canvas as HTMLCanvasElement;
      const pixels = (canvas as HTMLCanvasElement).getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
      let coloured = 0;
      for (let at = 0; at < pixels.length; at += 4) {
        const [red = 0, green = 0, blue = 0, alpha = 0] = pixels.slice(at, at + 4);
        if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
      }
      return coloured;
    }),
  );
}

for (const [name, run] of Object.entries({ perfectWeek, badWeek, tenMinutes })) {
  t.test(`${name}: the report opens offline, loads nothing and draws its charts`, { skip }, async (t) => {
    const { errors, page, requests } = await open(t, run());
    await page.locator('canvas').nth(5).waitFor();
    t.equal(await page.locator('canvas').count(), 6, 'five charts, and the lanes');
    await until('something is drawn on each chart', async () => (await colours(page)).every((coloured) => coloured > 40));
    t.same(errors, [], 'nothing goes wrong, the policy of the page included');
    t.equal(requests.length, 1, requests.join());
    t.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out');
  });
}

t.test('the cursor shows values and marks, by pointer and by keyboard, and zooming is possible', { skip }, async (t) => {
  const { errors, page } = await open(t, badWeek());
  const lanes = page.locator('.lanes .u-over');
  await lanes.scrollIntoViewIfNeeded();
  const box = await lanes.boundingBox();
  if (box === null) throw new Error('the lanes are not there');
  const end = 604_800 + 15_300;
  const x = (at: number): number => box.x + (box.width * at) / end;
  await page.mouse.move(x(309_200), box.y + (box.height * 3.5) / 6);
  const figure = (title: string) => page.locator('figure', { hasText: title }).locator('.now');
  const tip = page.locator('.tip');
  await showsText(tip, /^Restart of the service: exit, exit status 70 · 2026-03-05 21:23:20 UTC$/);
  await page.mouse.move(x(100_000), box.y + 5);
  await showsText(page.locator('.readout'), /^2026-03-03 1\d:\d\d:\d\d UTC, 2[678] h( \d+ min)? after the start$/);
  await showsText(figure('Received of expected'), /^(100\.00|98\.33) %$/);
  await showsText(figure('Memory of the service'), /^6[45]\.\d MB$/);
  await showsText(figure('CPU and memory of the machine'), /^CPU \d+\.\d %, memory 4\d\.\d %$/);
  await tip.waitFor({ state: 'hidden' });

  // A drag on one chart makes all of them show the same part.
  await page.mouse.move(x(200_000), box.y + 20);
  await page.mouse.down();
  await page.mouse.move(x(300_000), box.y + 20, { steps: 4 });
  await page.mouse.up();
  await page.mouse.move(box.x + 1, box.y + 20);
  const first = page.locator('.readout');
  await showsText(first, /, 5[456] h( \d+ min)? after the start$/);
  await page.getByRole('button', { name: 'Whole run' }).click();
  await page.mouse.move(box.x + 1, box.y + 20);
  await showsText(first, /^2026-03-02 07:.* (s|min) after the start$/);

  await page.mouse.move(1, 1);
  const charts = page.locator('.charts');
  await charts.focus();
  await page.keyboard.press('End');
  await showsText(first, /^2026-03-09 /);
  await page.keyboard.press('Home');
  await showsText(first, /^2026-03-02 07:/);
  await page.keyboard.press('Shift+ArrowRight');
  await showsText(first, /^2026-03-02 1\d:/);
  await page.keyboard.press('+');
  await page.keyboard.press('End');
  await showsText(first, /^(?!2026-03-09 )/);
  await page.keyboard.press('Escape');
  await showsText(first, /^Point at a chart/);
  t.same(errors, []);
});

t.test('without JavaScript the verdict, the criteria and the tables are shown', { skip }, async (t) => {
  const { page } = await open(t, badWeek(), { javaScriptEnabled: false });
  const text = await page.locator('body').innerText();
  t.match(text, /FAIL[\s\S]*This is the verdict of a run of 168 h: FAIL\./);
  for (const words of ['97.53 %', '> 99 %', '1.47 % short of the limit', 'The charts need JavaScript']) t.ok(text.includes(words), words);
  await page.locator('#criterion-uptime summary').click();
  await showsText(page.locator('#criterion-uptime table'), /watchdog\s+SIGABRT/);
  await page.getByText('The charts in figures').click();
  t.equal(
    await page
      .getByRole('region', { name: /The charts in figures/ })
      .locator('tbody tr')
      .count(),
    8,
    'a row a day',
  );
  t.equal(await page.locator('#chart').isVisible(), false);
});

t.test('the verdict is reported to a screen reader, and by more than colour', { skip }, async (t) => {
  const { page } = await open(t, tenMinutes());
  const verdict = page.getByRole('region', { name: 'Verdict' });
  t.match(await verdict.innerText(), /^INCOMPLETE\s+Not the 168-hour verdict\s+This run lasted 10 min\. It is not the 168-hour verdict\./);
  for (const name of ['The six criteria', 'The run over time', 'The run'])
    t.equal(await page.getByRole('heading', { name, exact: true, level: 2 }).count(), 1, name);
  t.equal(await page.getByRole('article').count(), 6);
  t.same(await page.locator('.criterion .verdict').allInnerTexts(), ['INCOMPLETE', 'PASS', 'INCOMPLETE', 'PASS', 'PASS', 'PASS']);
  t.equal(await page.locator('button:not([aria-label])').count(), 0);
});

t.test('nothing overflows on a narrow screen, in the dark scheme or on paper', { skip }, async (t) => {
  const narrow = await open(t, badWeek(), { viewport: { width: 360, height: 700 }, colorScheme: 'dark' });
  await narrow.page.locator('canvas').nth(5).waitFor();
  t.equal(await narrow.page.evaluate(() => document.documentElement.scrollWidth), 360);
  t.same(narrow.errors, []);
  const { page } = await open(t, badWeek(), { colorScheme: 'dark' });
  await page.locator('canvas').nth(5).waitFor();
  const pdf = await page.pdf({ format: 'A4' });
  t.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  t.equal(await page.evaluate(() => getComputedStyle(document.body).color), 'rgb(22, 32, 43)', 'dark on light, whatever the screen is');
  t.equal(await page.locator('details:not([open])').count(), 0, 'all of it is printed');
  writeFileSync(join(folder, 'report.pdf'), pdf);
});

t.test('an empty report is shown as such', { skip }, async (t) => {
  const { errors, page } = await open(t, nothing());
  const text = await page.locator('body').innerText();
  t.match(text, /INCOMPLETE/);
  t.match(text, /There is nothing to draw: no minute was recorded\./);
  t.same(errors, []);
});

t.test('names from other machines have no effect in the page, and junit.xml is always well-formed', { skip }, async (t) => {
  const { errors, page, requests } = await open(t, named(HOSTILE.join(' ')));
  await page.locator('canvas').nth(5).waitFor();
  const lanes = page.locator('.lanes .u-over');
  await lanes.scrollIntoViewIfNeeded();
  await lanes.hover({ position: { x: 2, y: 40 } });
  await showsText(page.locator('.tip'), /<script>alert\(1\)<\/script>/);
  t.equal(await page.locator('img, evil, main script').count(), 0);
  const elements = ['error', 'failure', 'properties', 'property', 'system-err', 'system-out', 'testcase', 'testsuite', 'testsuites'];
  for (const text of HOSTILE) {
    const { files } = await forms(named(text));
    const found = await page.evaluate((xml) => {
      const made = new DOMParser().parseFromString(xml, 'application/xml');
      return (
        made.querySelector('parsererror')?.textContent ?? [...new Set([...made.querySelectorAll('*')].map(({ tagName }) => tagName))].sort()
      );
    }, files['junit.xml']);
    t.same(found, elements, JSON.stringify(text));
  }
  t.same(errors, []);
  t.equal(requests.length, 1);
});
