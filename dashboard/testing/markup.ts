/**
 * The markup of the whole page for a state, without a browser: the page is bundled as for the browser and rendered to text. Effects do
 * not run, so charts are empty boxes with their labels.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { DASHBOARD_BUILD } from '../../scripts/dashboard.ts';
import type { chooseLanguage } from '../src/messages/messages.ts';
import type * as AlertBook from '../src/model/alert-book.ts';
import type * as Page from '../src/page/page.ts';
import type { PageState } from '../src/page/page-state.ts';
import { readRoute } from '../src/page/route.ts';
import type { Alert, HealthStatus, NodeState, ReliabilityReports, StatusDocument } from '../src/types.ts';

interface Bundle {
  readonly App: unknown;
  readonly h: (type: unknown, props: object) => unknown;
  readonly renderToString: (element: unknown) => string;
  readonly Reports: unknown;
  readonly viewProps: typeof Page.viewProps;
  readonly initialState: () => PageState;
  readonly buildBook: typeof AlertBook.buildBook;
  readonly chooseLanguage: typeof chooseLanguage;
}

const SOURCE = `
export { h } from 'preact';
export { renderToString } from 'preact-render-to-string';
export { App } from './page/app.tsx';
export { Reports } from './views/system/reports.tsx';
export { viewProps } from './page/page.ts';
export { initialState } from './page/page-state.ts';
export { buildBook } from './model/alert-book.ts';
export { chooseLanguage } from './messages/messages.ts';
`;

async function bundle(): Promise<Bundle> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-markup-'));
  try {
    const outfile = join(folder, 'page.mjs');
    await build({
      ...DASHBOARD_BUILD,
      stdin: { contents: SOURCE, resolveDir: join(import.meta.dirname, '../src') },
      outfile,
      platform: 'node',
      loader: { '.css': 'empty' },
    });
    return (await import(pathToFileURL(outfile).href)) as Bundle;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Sizes of the window, from which a layout starts.
Object.assign(globalThis, { innerWidth: 1366, innerHeight: 768 });
const page = await bundle();

/** In the time zone of this machine, in which the page shows times. */
export const NOW_MS = new Date(2026, 2, 4, 12, 3, 10).getTime();

export function statusOf(name: string, more: Partial<HealthStatus> = {}): HealthStatus {
  const timestamp = new Date(NOW_MS - 1000).toISOString();
  return { cpu_percent: 20, memory_percent: 40, disk_percent: 30, temperature: 50, status: 'OK', node_name: name, timestamp, ...more };
}

export function nodeOf({ node_name, status, timestamp }: HealthStatus, more: Partial<NodeState> = {}): NodeState {
  return {
    node_name,
    local: false,
    status,
    timestamp,
    age_seconds: 0.5,
    period_seconds: 1,
    clock_ahead_seconds: null,
    conflict_addresses: [],
    left: null,
    ...more,
  };
}

export interface Scene {
  /** The address as in the address bar, such as `#/wall`. */
  readonly address?: string;
  /** The first node is the machine itself. */
  readonly nodes?: readonly HealthStatus[];
  readonly alerts?: readonly Alert[];
  readonly status?: Partial<StatusDocument> | null;
  readonly state?: Partial<PageState>;
  readonly languages?: readonly string[];
}

/** The markup of the page in a scene; by default one machine that is OK and live. */
export function markupOf({
  address = '',
  nodes = [statusOf('pi')],
  alerts = [],
  status = {},
  state = {},
  languages = ['en'],
}: Scene): string {
  page.chooseLanguage(languages);
  const nowMs = performance.now();
  const route = readRoute(address);
  const base = page.initialState();
  for (const health of nodes) base.fleet.recordStatus(health, nowMs - 500);
  const local = nodes[0]?.node_name ?? null;
  const shown = route.view === 'nodes' && route.item !== null ? route.item : local;
  const full: PageState = {
    ...base,
    connection: { ...base.connection, phase: 'live', measuredMs: nowMs },
    status: status && { ...STATUS, nodes: nodes.map((health, i) => nodeOf(health, { local: i === 0 })), ...status },
    statusAtMs: nowMs,
    local,
    node: shown,
    health: nodes.find(({ node_name }) => node_name === shown) ?? null,
    book: page.buildBook(alerts, [], []),
    alerts: 'ready',
    history: 'ready',
    ...state,
  };
  const clocks = { machineNowMs: NOW_MS, shownNowMs: NOW_MS, differenceMs: 0 };
  const api = { getJson: () => new Promise(() => undefined), getPage: () => new Promise(() => undefined) };
  const sources = { api, clocks, route, selectRange: () => undefined, state: full } as unknown as Parameters<typeof Page.viewProps>[0];
  const view = page.viewProps(sources, nowMs, 'pi.local');
  return page.renderToString(page.h(page.App, { view, hadToken: false, onToken: () => undefined }));
}

/** The markup of the loaded reports; `hasToken`: the API needs a token; `isInstalled`: the service is that of the package. */
export function reportsMarkup(reports: ReliabilityReports, hasToken: boolean, isInstalled = true): string {
  page.chooseLanguage(['en']);
  return page.renderToString(
    page.h(page.Reports, {
      api: { token: hasToken ? 'x' : null },
      loaded: { value: reports, problem: null },
      isInstalled,
      isOutdated: false,
      nowMs: NOW_MS,
    }),
  );
}

/** The text of some markup as a reader sees it. */
export function textOf(markup: string): string {
  return markup
    .replace(/<(script|style)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ');
}

const STATUS = {
  version: '1.0.0',
  installed: true,
  started: new Date(NOW_MS - 3_600_000).toISOString(),
  uptime_seconds: 3600,
  host: { hostname: 'classroom-pi', model: 'Raspberry Pi 5' },
  clock_events: [],
  nodes: [],
  open_alerts: { WARNING: 0, ERROR: 0, CRITICAL: 0 },
  publish: { configured_hertz: 1, measured_hertz: 1, missed: 0 },
  thresholds: {
    cpu_percent: { warning: 80, critical: 95 },
    memory_percent: { warning: 80, critical: 95 },
    disk_percent: { warning: 80, critical: 95 },
    temperature: { warning: 75, critical: 85 },
  },
  collectors: [],
  temperature_sensor: { sensor: 'cpu-thermal', reason: 'Raspberry Pi' },
  power: { undervoltage: false, throttle_events: null },
  storage: {
    state: 'ok',
    error: null,
    since: null,
    size_bytes: 5e6,
    max_bytes: 5e8,
    oldest_sample: null,
    last_write: null,
    samples_lost: 0,
    quarantined: [],
  },
  process: { resident_memory_bytes: 71e6, cpu_seconds: 5 },
  config: { problem: null, restart_needed: [] },
  ros: {
    transport: 'embedded',
    reason: 'no ROS 2 is sourced',
    problem: null,
    domain_id: 7,
    peers: 5,
    subscribers: 2,
    published: { health_status: 3600, alerts: 1 },
    observing: true,
    observers: null,
  },
  ops: { scheduler: { state: 'never', beat: null }, jobs: [] },
  shutdown: { state: 'none', action: 'poweroff', reason: null, requested_by: null, seconds_left: null, message: null, ended: null },
} as unknown as StatusDocument;
