/**
 * npm run screenshots: takes pictures of every view at three sizes for the documentation, in Chromium, from the service with its store, and
 * writes them to docs/images. The data is invented: a lesson of three hours with five robots, of which robot_3 gets warm.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Alert } from '../src/core/alerts/alert.ts';
import type { HealthStatus } from '../src/core/health-status.ts';
import { isoUtc } from '../src/core/time/time.ts';
import type { OpsDocument } from '../src/http/api/ops-schema.ts';
import type { StatusDocument } from '../src/http/api/schema.ts';
import { CHROMIUM, launchBrowser } from '../testkit/browser.ts';
import { InProcessService, statusOf, TestClocks } from '../testkit/service/remote-nodes.ts';
import { ROOT } from '../testkit/service/service.ts';

const LOCAL = 'classroom_pi';
const ROBOTS = ['robot_1', 'robot_2', 'robot_3', 'robot_4', 'robot_5'];
const HOST = { hostname: LOCAL, model: 'Raspberry Pi 5 Model B' };
const MACHINE = {
  os: 'Debian GNU/Linux 12',
  kernel: '6.12',
  architecture: 'arm64',
  cpu: 'Cortex-A76',
  cores: 4,
  memory_bytes: 8e9,
  virtual: false,
};
const LESSON_SECONDS = 3 * 3600;
const VIEWS: Readonly<Record<string, string>> = {
  wall: '#/wall',
  node: '#/nodes/robot_3?range=1h',
  alerts: '#/alerts',
  alert: '#/alerts/robot_3%2Ftemperature%2F01',
  system: '#/system',
};
const SIZES = {
  phone: { width: 390, height: 844 },
  laptop: { width: 1366, height: 800 },
  projector: { width: 1920, height: 1080 },
};

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

/** Replaces the machine's own values in /status by those of a Raspberry Pi, because the pictures are taken on another machine. */
function asOnPi(status: StatusDocument): StatusDocument {
  const { publish, ros, storage } = status;
  return {
    ...status,
    version,
    host: { ...MACHINE, ...HOST },
    // Values of the installed package with the embedded transport at 1 Hz.
    process: { ...status.process, resident_memory_bytes: 72e6, cpu_seconds: Math.round(0.0016 * status.uptime_seconds) },
    publish: { ...publish, measured_hertz: publish.configured_hertz },
    temperature_sensor: {
      sensor: 'cpu-thermal',
      path: '/sys/class/thermal/thermal_zone0/temp',
      reason: 'the SoC zone of a Raspberry Pi or a Jetson Orin',
      rejected: [],
    },
    storage: { ...storage, size_bytes: 61e6 },
    ros: {
      ...ros,
      transport: 'embedded',
      reason: 'no ROS 2 is sourced',
      problem: null,
      domain_id: 0,
      peers: ROBOTS.length,
      subscribers: 2,
      published: { health_status: Math.round(status.uptime_seconds), alerts: 0 },
      observing: true,
    },
  };
}

/** Writes the state of the job scheduler in the scheduler's own format. */
function writeJobs(dataFolder: string): void {
  const at = (seconds: number): string => isoUtc(Date.now() + seconds * 1000);
  const counts = { running_since: null, runs: 120, failures: 0, missed: 0, overlaps: 0 };
  const job = (name: string, schedule: string, ago: number, next: number, line: string): OpsDocument['jobs'][number] => ({
    ...{ name, schedule, next: at(next), last_success: at(-ago), ...counts },
    last: {
      started: at(-ago),
      duration_seconds: 0.4,
      status: 'OK',
      exit_code: 0,
      trigger: 'schedule',
      failed: false,
      lines: [`OK  ${line}`],
    },
  });
  const jobs = [
    job('health_check', '*/5 * * * *', 130, 170, 'all checks are OK'),
    job('collect_metrics', '* * * * *', 40, 20, '6 rows'),
    job('collect_alerts', '*/5 * * * *', 130, 170, 'no changes'),
    job('backup_logs', '0 0 * * *', 41_000, 45_400, 'edge-health.tar.zst, 12 MB'),
  ];
  const document: OpsDocument = { scheduler: { state: 'running', started: at(-90_000), beat: at(0) }, jobs };
  mkdirSync(join(dataFolder, 'ops'), { recursive: true });
  writeFileSync(join(dataFolder, 'ops/jobs.json'), JSON.stringify(document));
  mkdirSync(join(dataFolder, 'ops/live'), { recursive: true });
  writeFileSync(join(dataFolder, 'ops/live/jobs.json'), JSON.stringify(document));
}

/** Alerts of the lesson that were resolved. */
const PAST = [
  { robot: 'robot_1', second: 2400, lasts: 95 },
  { robot: 'robot_5', second: 5200, lasts: 310 },
  { robot: 'robot_2', second: 8100, lasts: 40 },
];

/** The values of a robot in a second of the lesson: a load that follows the exercises, and a temperature that follows the load. */
function lesson(robot: number, second: number): Pick<HealthStatus, 'cpu_percent' | 'memory_percent' | 'disk_percent' | 'temperature'> {
  const exercise = Math.sin(second / 700 + robot) > 0 ? 1 : 0.3;
  const noise = (Math.sin(second * 12.9898 + robot * 78.233) * 43_758.5453) % 1;
  const cpu = 12 + 38 * exercise + 9 * noise + 3 * robot;
  const isLate = robot === 3 && second > LESSON_SECONDS - 1500;
  const temperature = 46 + 3 * robot + 6 * Math.sin(second / 1900) + 4 * exercise + (isLate ? (second - LESSON_SECONDS + 1500) / 62 : 0);
  const hundredths = (value: number): number => Math.round(value * 100) / 100;
  return {
    cpu_percent: hundredths(cpu),
    memory_percent: hundredths(38 + 5 * robot + 3 * Math.sin(second / 2500) + noise / 4),
    disk_percent: hundredths(41 + 7 * robot + second / 20_000),
    temperature: hundredths(Math.min(temperature, 84)),
  };
}

if (CHROMIUM === '') {
  console.error('The pictures are taken with Chromium; install the Debian package chromium.');
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), 'edge-health-screenshots-'));
mkdirSync(join(folder, 'run'));
const clocks = new TestClocks();
clocks.wallMs = Date.now() - LESSON_SECONDS * 1000;
const service = new InProcessService(folder, clocks, { localNode: LOCAL, dashboardFolder: join(ROOT, 'dist/dashboard') });
await service.start();
const browser = await launchBrowser();
try {
  const raised = { metric: 'temperature', threshold: 75, resolved: false };
  let warning: Alert | null = null;
  const publish = (second: number): void => {
    const nowMs = clocks.wallMilliseconds();
    service.measure(lesson(0, second));
    ROBOTS.forEach((name, i) => {
      const values = lesson(i + 1, second);
      const isWarm = (values.temperature ?? 0) >= 75;
      const busy = PAST.find((one) => one.robot === name && (one.second === second || one.second + one.lasts === second));
      if (busy) {
        const resolved = busy.second !== second;
        const alert_id = `${name}/cpu_percent/${busy.second}`;
        const value = resolved ? 62.5 : 91.3;
        service.remoteNodes.onAlert({
          alert_id,
          severity: 'WARNING',
          metric: 'cpu_percent',
          value,
          threshold: 80,
          timestamp: isoUtc(nowMs),
          resolved,
        });
      }
      service.remoteNodes.onHealthStatus(statusOf(name, nowMs, { ...values, status: isWarm ? 'WARNING' : 'OK' }));
      if (!isWarm || warning) return;
      warning = { alert_id: `${name}/temperature/01`, severity: 'WARNING', value: 75.1, timestamp: isoUtc(nowMs), ...raised };
      service.remoteNodes.onAlert(warning);
    });
  };
  console.log(`${LESSON_SECONDS / 3600} hours of measurements...`);
  await service.run(LESSON_SECONDS, publish);
  let second = LESSON_SECONDS;
  const next = (): void => {
    publish(second++);
    clocks.pass(1);
  };
  while (clocks.wallMilliseconds() < Date.now()) next();
  const timer = setInterval(next, 1000);
  writeJobs(join(folder, 'data'));
  cpSync(join(ROOT, 'docs/develop/reports/run'), join(folder, 'data/reports/harness-20260304T050607Z'), { recursive: true });
  const images = join(ROOT, 'docs/images');
  mkdirSync(images, { recursive: true });
  for (const [view, address] of Object.entries(VIEWS)) {
    for (const [name, viewport] of Object.entries(SIZES)) {
      const page = await browser.newPage({ viewport, colorScheme: name === 'projector' ? 'dark' : 'light' });
      await page.route('**/status', async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: asOnPi((await response.json()) as StatusDocument) });
      });
      await page.goto(`${service.url}/${address}`);
      await page.getByText('Live', { exact: true }).waitFor();
      await page.waitForLoadState('networkidle', { timeout: 4000 }).catch(() => undefined); // The event stream stays open.
      const file = join(images, `${view}-${name}.png`);
      await page.screenshot({ path: file });
      console.log(file);
      await page.close();
    }
  }
  clearInterval(timer);
} finally {
  await browser.close();
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
}
