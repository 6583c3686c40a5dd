import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import { CHROMIUM, launchBrowser, openPage, showsText } from '../../../testkit/browser.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT, RunningService } from '../../../testkit/service/service.ts';
import { until } from '../../../testkit/wait.ts';

t.setTimeout(600_000);
const skip = CHROMIUM === '' && 'needs the Debian package chromium';

/** A recorded machine, so that the load of other tests raises no alert. */
const RECORDED = { arguments: ['--proc', `${ROOT}/testkit/fixtures/pi5/proc`, '--sys', `${ROOT}/testkit/fixtures/pi5/sys`] };

/** The page of a recorded machine; all of it ends with the test. */
async function shown(t: Test): Promise<{ service: RunningService; page: Page; errors: string[] }> {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder, RECORDED);
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  return { service, ...(await openPage(browser, `${service.url}/`)) };
}

t.test('the page shows the machine live, reports when the service is gone, and recovers', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const config = {
    // Disk usage is always above 0: a WARNING that stays.
    thresholds: { disk: { warning: 0, critical: 99.9 } },
    alerts: { raise_after_seconds: 0 },
  };
  let service = await RunningService.start(folder, { config, ...RECORDED });
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors, requests } = await openPage(browser, `${service.url}/`);

  const body = page.locator('body');
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('Disk usage', { exact: true }).first().waitFor();
  const { data } = await service.until<{ data: Alert[] }>('/alerts?resolved=false', (list) => list.data.length > 0);
  t.equal(data[0]?.metric, 'disk_percent');
  const status = page.locator('.hero');
  await status.filter({ hasText: 'WARNING' }).waitFor();
  await page.locator('.alerts').filter({ hasText: 'WARNING' }).waitFor();
  t.pass('status and open alert are there');

  const disk = page.locator('article', { hasText: 'Disk usage' });
  // Other programs fill and empty the disk: read again until both values are of the same moment.
  await until('the page shows the value of /health', async () => {
    const health = await service.json<{ disk_percent: number }>('/health');
    return (await disk.innerText()).includes(health.disk_percent.toFixed(1));
  });
  const measured = async (): Promise<string> => (await page.locator('header').innerText()).match(/\d\d:\d\d:\d\d/)?.[0] ?? '';
  const before = await measured();
  await page.waitForFunction((text) => !document.querySelector('header')?.textContent?.includes(text), before);
  t.not(await measured(), before, 'it moves by itself');
  t.equal(await page.locator('canvas').count(), 4, 'a chart per metric');

  await service.end('SIGKILL');
  await body.filter({ hasText: /No data since .*\d\d:\d\d:\d\d/ }).waitFor();
  await status.filter({ hasText: 'UNKNOWN' }).waitFor();
  t.pass('gone is unmistakable');

  const port = Number(new URL(service.url).port);
  service = await RunningService.start(folder, { config: { ...config, rest: { port } }, ...RECORDED });
  await page.getByText('Live', { exact: true }).waitFor();
  await status.filter({ hasText: 'WARNING' }).waitFor();
  await body.filter({ hasNotText: /No data since/ }).waitFor();

  t.same(errors, [], 'no error in the page');
  t.same([...new Set(requests.map((url) => new URL(url).host))], [new URL(service.url).host], 'it asks nobody but the service');
});

t.test('ERROR has a look of its own, and the headline names the disk path that cannot be measured', { skip }, async (t) => {
  const config = {
    thresholds: { disk: { warning: 99.8, critical: 99.9 } },
    alerts: { sensor_timeout_seconds: 1 },
    disk: { paths: ['/', '/media/usb'] },
  };
  const service = await RunningService.start(temporaryFolder(t), { config, ...RECORDED });
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/`);
  const hero = page.locator('.hero.error');
  await hero.filter({ hasText: 'ERROR' }).filter({ hasText: 'Disk /media/usb cannot be measured.' }).waitFor();
  const colours = await page.evaluate(() =>
    ['ok', 'warning', 'error', 'critical', 'unknown', 'none'].map((name) => {
      const example = document.createElement('div');
      example.className = `hero ${name}`;
      document.body.append(example);
      const { backgroundColor, backgroundImage } = getComputedStyle(example);
      example.remove();
      return `${backgroundColor} ${backgroundImage}`;
    }),
  );
  t.equal(new Set(colours).size, colours.length, 'each status has a background of its own');
  t.same(errors, []);
});

t.test('a safe shutdown is shown', { skip }, async (t) => {
  const { errors, page } = await shown(t);
  await page.getByText('Live', { exact: true }).waitFor();
  const shutdown = {
    state: 'in_progress',
    action: 'poweroff',
    reason: 'MANUAL',
    requested_by: '<b>Zoë</b>',
    seconds_left: 9,
    message: 'x',
  };
  await page.route('**/status', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), shutdown } });
  });
  await page.locator('.notice', { hasText: 'safe shutdown in progress (MANUAL, requested by <b>Zoë</b>), 9 s left' }).waitFor();
  t.same(errors, []);
});

t.test('the system view shows how the machine takes part in the ROS 2 graph, and what is wrong with that', { skip }, async (t) => {
  const { errors, page, service } = await shown(t);
  const { ros } = await service.json<{ ros: { reason: string } }>('/status');
  await page.getByRole('link', { name: 'System' }).click();
  const card = page.getByRole('region', { name: 'ROS 2' });
  await showsText(card, /Transport\s+off/);
  await showsText(card, ros.reason);
  let problem: string | null = null;
  await page.route('**/status', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), ros: { ...ros, transport: 'embedded', problem } } });
  });
  await showsText(card, /Transport\s+built-in/);
  problem = 'another monitor has the same name';
  await card.getByText(problem).waitFor();
  t.same(errors, []);
});

t.test('a reliability report is opened from the system view, with its charts and without access to the API', { skip }, async (t) => {
  const { errors, page, service } = await shown(t);
  const { storage } = await service.json<{ storage: { path: string } }>('/status');
  cpSync(join(ROOT, 'docs/develop/reports/run'), join(storage.path, '../reports/harness-1'), { recursive: true });
  await page.getByRole('link', { name: 'System' }).click();
  const [report] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: /^Report of/ }).click()]);
  await report.getByRole('heading').first().waitFor();
  t.ok((await report.locator('canvas').count()) > 0, 'its script has drawn the charts');
  t.equal(
    await report.evaluate(() =>
      fetch('/health').then(
        () => 'read',
        () => 'refused',
      ),
    ),
    'refused',
  );
  t.same(errors, []);
});

t.test('the page fits a phone', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder);
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/`, { width: 360, height: 740 });
  await page.getByText('Live', { exact: true }).waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  t.ok(width <= 360, `nothing sticks out: ${width} px`);
  t.same(errors, []);
});

t.test('the page requires a token, and works with it', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const file = `${folder}/token`;
  writeFileSync(file, 'correct-horse-battery\n', { mode: 0o600 });
  const service = await RunningService.start(folder, { config: { rest: { token_file: file } } });
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page } = await openPage(browser, `${service.url}/`);
  await page.locator('#token').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
  await page.locator('#token').fill('correct-horse-battery');
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  t.pass('live with the token');
});

t.test('the scheduled jobs are shown if there is a scheduler', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const service = await RunningService.start(folder, RECORDED);
  t.teardown(() => service.end());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const { page, errors } = await openPage(browser, `${service.url}/#/system`);
  await page.getByText('Live', { exact: true }).waitFor();
  const panel = page.locator('.jobs');
  t.equal(await panel.count(), 0, 'other views have none');

  const live = join(folder, 'data/ops/live');
  mkdirSync(live, { recursive: true });
  const write = (beatMs: number): void => {
    const at = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();
    const counts = { runs: 9, failures: 1, missed: 0, overlaps: 0 };
    const run = (status: string, exit_code: number, line: string): object => ({
      last: { started: at(-60), duration_seconds: 1, status, exit_code, trigger: 'schedule', failed: false, lines: [line] },
      last_success: at(-60),
      running_since: null,
    });
    const jobs = [
      { name: 'health_check', schedule: '*/5 * * * *', next: at(200), ...counts, ...run('CRITICAL', 2, 'CRITICAL  disk: 0.4 GB free') },
      { name: 'collect_metrics', schedule: '* * * * *', next: at(20), ...counts, missed: 4, ...run('OK', 0, 'OK  one row') },
      { name: 'collect_alerts', schedule: '*/5 * * * *', next: at(200), ...counts, ...run('OK', 0, 'OK'), running_since: at(-2) },
      { name: 'backup_logs', schedule: '0 0 * * *', next: at(40_000), ...counts, ...run('WARNING', 1, 'WARNING  no copy'), last: null },
      { name: 'generate_7day_report', schedule: 'off', next: null, ...counts, ...run('OK', 0, ''), last: null },
    ];
    writeFileSync(
      join(live, 'jobs.new'),
      JSON.stringify({ scheduler: { state: 'running', started: at(-900), beat: new Date(beatMs).toISOString() }, jobs }),
    );
    renameSync(join(live, 'jobs.new'), join(live, 'jobs.json'));
  };
  write(Date.now());
  // A scheduler without a beat has stopped.
  const beating = setInterval(() => write(Date.now()), 1000);
  t.teardown(() => clearInterval(beating));
  await panel.waitFor();
  const job = (name: string) => panel.locator('li', { hasText: name });
  await job('health check').locator('.state.critical', { hasText: 'CRITICAL' }).waitFor();
  t.equal(await job('health check').getAttribute('title'), 'CRITICAL  disk: 0.4 GB free');
  await showsText(job('collect metrics'), /OK\s+last .*\d\d:\d\d:\d\d\s+next .*\s+4 missed/);
  await showsText(job('collect alerts'), /OK\s+running for \d+ s\s+last/);
  await showsText(job('backup logs'), /waiting\s+has not run yet/);
  t.equal(await panel.locator('li').count(), 4, 'one that is off is none');
  t.equal(await panel.locator('.stopped').count(), 0);
  clearInterval(beating);
  write(Date.now() - 600_000);
  await panel.locator('.stopped', { hasText: /has not run since .*\d\d:\d\d:\d\d/ }).waitFor();
  t.notMatch(await panel.innerText(), 'next');
  const phone = await openPage(browser, `${service.url}/#/system`, { width: 360, height: 740 });
  await phone.page.locator('.jobs').waitFor();
  t.ok((await phone.page.evaluate(() => document.documentElement.scrollWidth)) <= 360, 'nothing sticks out of a phone');
  t.same([...errors, ...phone.errors], [], 'no error in the page');
});
