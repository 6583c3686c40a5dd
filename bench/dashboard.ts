/** The dashboard in Chromium on a processor slowed four times: first data, a week of charts, an hour of live data, 300 nodes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { HOUR_MS } from '../src/core/time/time.ts';
import { CHROMIUM, launchBrowser } from '../testkit/browser.ts';
import { InProcessService, RealClocks, statusOf } from '../testkit/service/remote-nodes.ts';
import { ROOT } from '../testkit/service/service.ts';
import { fillDataFolder } from '../testkit/weeks/week-store.ts';
import type { Outcome } from './support/outcome.ts';
import { benchmark, type Context } from './support/program.ts';
import { startService } from './support/service-process.ts';
import { median, pause, worst } from './support/statistics.ts';

const SLOWED_TIMES = 4;
const LOADS = 5;
const WEEK_HOURS = 168;
const CROWD_MINUTES = 0.5;
const SIZE = { width: 1366, height: 768 };

interface Use {
  readonly cpuPercent: number;
  readonly gainedMegabytes: number;
}
const NO_USE: Use = { cpuPercent: Number.NaN, gainedMegabytes: Number.NaN };

interface Slowed {
  readonly page: Page;
  readonly cdp: CDPSession;
}

/** Opens an empty page with a slowed processor and an empty cache. */
async function slowedPage(browser: Browser): Promise<Slowed> {
  const context = await browser.newContext({ viewport: SIZE });
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: SLOWED_TIMES });
  await cdp.send('Performance.enable');
  return { page, cdp };
}

/** Milliseconds from the start of the navigation until an element with this text has been painted. */
async function paintedAfterMs(page: Page, url: string, selector: string, pattern: RegExp): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' });
  return page.evaluate(
    ({ selector: wanted, source }) =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          const shown = [...document.querySelectorAll(wanted)].some(({ textContent }) => new RegExp(source).test(textContent ?? ''));
          if (shown) requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
          else requestAnimationFrame(look);
        };
        look();
      }),
    { selector, source: pattern.source },
  );
}

/** Milliseconds from the end of the last response until the charts of a week have been painted. */
async function weekDrawnMs(page: Page): Promise<number> {
  await page.locator('[role=img]').first().waitFor();
  const drawn = page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          const charts = [...document.querySelectorAll('[role=img]')];
          // The value range of the chart, or a loading text, is beside each number. This machine may have no temperature.
          const ranges = [...document.querySelectorAll('.metric .range:not(.why)')];
          const areOfWeek = charts.length === 4 && charts.every((chart) => chart.getAttribute('aria-label')?.includes('7 days'));
          if (!areOfWeek || ranges.length < 3 || !ranges.every(({ textContent }) => /\d/.test(textContent ?? '')))
            return void requestAnimationFrame(look);
          const painted = performance.now();
          const answers = performance
            .getEntriesByType('resource')
            .filter(({ name }) => /history\?.*step=/.test(name) && !/value=/.test(name));
          const arrived = answers.map((entry) => (entry as PerformanceResourceTiming).responseEnd).filter((ms) => ms < painted);
          resolve(painted - Math.max(...arrived));
        };
        look();
      }),
  );
  const [milliseconds] = await Promise.all([drawn, page.getByRole('radio', { name: '7 d' }).check()]);
  return milliseconds;
}

/** The share of the slowed core that the page has used and the memory that it has gained in `minutes` of live data. */
async function liveUse({ cdp, page }: Slowed, minutes: number): Promise<Use> {
  const read = async (): Promise<{ taskSeconds: number; heapBytes: number; atMs: number }> => {
    await cdp.send('HeapProfiler.collectGarbage');
    const { metrics } = await cdp.send('Performance.getMetrics');
    const metricOf = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN;
    return { taskSeconds: metricOf('TaskDuration'), heapBytes: metricOf('JSHeapUsedSize'), atMs: performance.now() };
  };
  await pause(10); // Gives code that runs for the first time the time to be compiled.
  const before = await read();
  await page.waitForTimeout(minutes * 60_000);
  const after = await read();
  return {
    cpuPercent: (100_000 * (after.taskSeconds - before.taskSeconds)) / (after.atMs - before.atMs),
    gainedMegabytes: (after.heapBytes - before.heapBytes) / 1e6,
  };
}

/** A service that receives statuses of `robots` nodes at 1 Hz while `work` runs. */
async function withFleet({ cleanup }: Context, robots: number, work: (url: string) => Promise<void>): Promise<void> {
  const folder = cleanup.folderOnDisk();
  mkdirSync(join(folder, 'run'));
  const service = new InProcessService(folder, new RealClocks(), { dashboardFolder: join(ROOT, 'dist/dashboard') });
  await service.start();
  const publish = (): void => {
    service.measure({ cpu_percent: 20 + (Date.now() % 7) });
    for (let n = 1; n <= robots; n += 1) {
      const cpu_percent = (n * 7 + Math.round(Date.now() / 1000)) % 60;
      service.remoteNodes.onHealthStatus(statusOf(`robot-${n}`, Date.now(), { cpu_percent }));
    }
  };
  publish();
  const timer = setInterval(publish, 1000);
  try {
    await work(service.url);
  } finally {
    clearInterval(timer);
    await service.stop();
  }
}

async function measure(context: Context, browser: Browser): Promise<Outcome> {
  const { cleanup, minutes, progress } = context;
  progress('filling a week');
  const dataPath = join(cleanup.folderOnDisk(), 'data');
  fillDataFolder(dataPath, Date.now() - (WEEK_HOURS + 1) * HOUR_MS);
  const { url } = await startService(cleanup, { dataPath });
  const loads: number[] = [];
  const weeks: number[] = [];
  for (let n = 0; n < LOADS; n += 1) {
    progress(`first data and a week, ${n + 1} of ${LOADS}`);
    const { page } = await slowedPage(browser);
    loads.push(await paintedAfterMs(page, `${url}/#/nodes`, '.metric .value', /\d/));
    weeks.push(await weekDrawnMs(page));
    await page.context().close();
  }

  const partMinutes = minutes / 2;
  let wall = NO_USE;
  let charts = NO_USE;
  progress(`live data of 30 nodes for ${minutes} min`);
  await withFleet(context, 29, async (fleetUrl) => {
    const slowed = await slowedPage(browser);
    await slowed.page.goto(`${fleetUrl}/#/wall`);
    await slowed.page.locator('.tile').nth(29).waitFor();
    wall = await liveUse(slowed, partMinutes);
    await slowed.page.goto(`${fleetUrl}/#/nodes/robot-1?range=1h`);
    await slowed.page.locator('[role=img]').first().waitFor();
    charts = await liveUse(slowed, partMinutes);
    await slowed.page.context().close();
  });

  let allShownMs = Number.NaN;
  let crowd = NO_USE;
  progress('300 nodes');
  await withFleet(context, 299, async (fleetUrl) => {
    const slowed = await slowedPage(browser);
    allShownMs = await paintedAfterMs(slowed.page, `${fleetUrl}/#/wall`, 'main', /300 nodes/);
    crowd = await liveUse(slowed, CROWD_MINUTES);
  });

  const slow = `processor slowed ${SLOWED_TIMES} times`;
  return {
    rows: [
      {
        figure: `dashboard, ${slow}: navigation until the first values, median of ${LOADS}`,
        unit: 'ms',
        value: median(loads),
        atMost: 1500,
      },
      { figure: 'the same, worst', unit: 'ms', value: worst(loads) },
      {
        figure: `a week of minutes in four charts, response until painted, median of ${LOADS}`,
        unit: 'ms',
        value: median(weeks),
        atMost: 200,
      },
      { figure: 'the same, worst', unit: 'ms', value: worst(weeks) },
      { figure: '30 nodes live on the wall, of the slowed core', unit: '%', value: wall.cpuPercent, atMost: 5 },
      { figure: 'one of 30 nodes live with charts of an hour, of the slowed core', unit: '%', value: charts.cpuPercent, atMost: 5 },
      { figure: `heap gained in ${partMinutes} minutes, wall`, unit: 'MB', value: wall.gainedMegabytes, atMost: 1 },
      { figure: `heap gained in ${partMinutes} minutes, charts`, unit: 'MB', value: charts.gainedMegabytes, atMost: 1 },
      { figure: '300 nodes: navigation until all are shown', unit: 'ms', value: allShownMs },
      { figure: '300 nodes live on the wall, of the slowed core', unit: '%', value: crowd.cpuPercent },
    ],
    notes: [
      `Debian's Chromium, headless, window ${SIZE.width} × ${SIZE.height}, CPU slowed ${SLOWED_TIMES} times by its own emulation. First values: empty cache, until the frame after they are in the document. A week: from the end of the last response of its minutes until the frame in which all four charts have it; parsing is included, the query is not. Live: TaskDuration of the page and its heap after a garbage collection, ${partMinutes} minutes each.`,
    ],
  };
}

await benchmark('dashboard', async (context): Promise<Outcome> => {
  if (CHROMIUM === '') throw new Error('install the Debian package chromium');
  const browser = await launchBrowser();
  try {
    return await measure(context, browser);
  } finally {
    await browser.close();
  }
});
