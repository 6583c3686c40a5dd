/** Chromium for the page tests, which wait for content of the page and never for a fixed time. */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { until } from './wait.ts';

/** Path of Debian's Chromium; empty if it is not installed. */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path)) ?? '';

/** Disables background traffic of the browser. */
const QUIET = ['--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** A host name that the browser resolves to 127.0.0.1, but which is not, as localhost is, a secure context without HTTPS. */
export const PLAIN_HOST = 'robot.test';

export function launchBrowser(): Promise<Browser> {
  const names = `--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`;
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', names, ...QUIET] });
}

/** Limits only a broken test. */
export const TIMEOUT_MS = 120_000;

/** Opens a page and collects its errors. Requests that fail because the service has stopped are not errors of the page. */
export async function openPage(
  browser: Browser,
  url: string,
  size = { width: 1280, height: 900 },
): Promise<{ page: Page; errors: string[]; requests: string[] }> {
  const page = await browser.newPage({ viewport: size });
  page.setDefaultTimeout(TIMEOUT_MS);
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

/** Waits until the visible text of the element matches. */
export async function showsText(element: Locator, pattern: RegExp | string): Promise<void> {
  let text = '';
  const matches = async (): Promise<boolean> => {
    text = await element.innerText();
    return typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text);
  };
  await until(`text ${pattern}`, matches, { describe: () => text });
}
