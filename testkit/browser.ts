import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Debian's browser; empty where it is not installed. */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path)) ?? '';

/** Without the background traffic that a browser has of its own. */
const QUIET = ['--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', ...QUIET] });
}

/** Opens a page and collects what goes wrong in it. Requests that fail because the service is gone are not errors of the page. */
export async function openPage(
  browser: Browser,
  url: string,
  size = { width: 1280, height: 900 },
): Promise<{ page: Page; errors: string[]; requests: string[] }> {
  const page = await browser.newPage({ viewport: size });
  const errors: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION|net::/.test(message.text())) errors.push(message.text());
  });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, errors, requests };
}
