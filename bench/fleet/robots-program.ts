/**
 * Simulated robots, many in one process: each is a separate participant with the nodes, topics and service of edge-health. Reads
 * commands as lines of JSON from standard input (fleet-robots.ts) and ends when that closes.
 */
import { createInterface } from 'node:readline';
import { judgingRules } from '../../src/app/judge.ts';
import { DEFAULT_CONFIG } from '../../src/config/schema.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { EmbeddedTransport } from '../../src/ros/embedded/transport.ts';
import { FleetNetwork, type RobotNetwork } from './network.ts';
import type { FleetOptions, RobotCommand, RobotEvents } from './robots.ts';

const options = JSON.parse(process.argv[2] ?? '') as FleetOptions;
const { thresholds: THRESHOLDS } = judgingRules(DEFAULT_CONFIG, DEFAULT_CONFIG.node_name);
const PERIOD_MS = 1000;
/** Each robot raises an alert once in this period, at a random time, and resolves it half a minute later. */
const ALERT_EVERY_MS = 600_000;
const ALERT_FOR_MS = 30_000;

function emit<Kind extends keyof RobotEvents>(event: Kind, what: RobotEvents[Kind]): void {
  process.stdout.write(`${JSON.stringify({ event, wall_ms: Date.now(), ...what })}\n`);
}

class Robot {
  readonly name: string;
  readonly #network: RobotNetwork;
  readonly #transport: EmbeddedTransport;
  /** Time stamps of its statuses, in wall-clock milliseconds. */
  readonly sentMs: number[] = [];
  #timer: NodeJS.Timeout | null = null;
  #alert: Alert | null = null;
  #alertDueMs = 0;
  #alerts = 0;

  constructor(number: number, fleet: FleetNetwork) {
    const space = `robot_${String(number).padStart(3, '0')}`;
    this.name = `${space}/health_monitor`;
    this.#network = fleet.robot();
    const under = (topic: string): string => (options.isNamespaced ? `/${space}/${topic}` : `/${topic}`);
    this.#transport = new EmbeddedTransport({
      discovery: { domainId: fleet.domain, discoveryRange: 'SUBNET', staticPeers: [] },
      names: {
        namespace: `/${space}`,
        nodes: {
          healthMonitor: 'health_monitor',
          thresholdMonitor: 'threshold_monitor',
          alertPublisher: 'alert_publisher',
          safeShutdown: 'safe_shutdown',
        },
        topics: {
          healthStatus: under('health_status'),
          alerts: under('alerts'),
          openAlerts: under('open_alerts'),
          shutdownStatus: under('shutdown_status'),
          diagnostics: '/diagnostics',
        },
        services: { safeShutdown: `/${space}/safe_shutdown`, ownSafeShutdown: `/${space}/health_monitor/safe_shutdown` },
      },
      listener: {
        onHealthStatus: () => {},
        onAlert: () => {},
        onSafeShutdown: async () => ({ success: false, message: 'a simulated robot cannot be powered off' }),
      },
      localNode: this.name,
      observe: options.observe ? 'always' : 'never',
      parameters: () => [],
      diagnostics: () => ({ hostname: space, thresholds: THRESHOLDS, openAlerts: [], isExpected: () => true }),
      publishSeconds: 1,
      log: () => {},
      monotonicSeconds: () => performance.now() / 1000,
      wallMilliseconds: () => Date.now(),
      network: this.#network,
    });
  }

  start(): Promise<void> {
    return this.#transport.start();
  }

  /** Robots are not synchronised: each sends its first status and its first alert at a random time. */
  publish(): void {
    this.#alertDueMs = performance.now() + Math.random() * ALERT_EVERY_MS;
    let due = performance.now() + Math.random() * PERIOD_MS;
    const next = (): void => {
      this.#publishStatus();
      due += PERIOD_MS;
      this.#timer = setTimeout(next, due - performance.now());
    };
    this.#timer = setTimeout(next, due - performance.now());
  }

  vanish(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#network.close();
  }

  #publishStatus(): void {
    const nowMs = Date.now();
    const load = this.#alert ? 85 + Math.random() * 4 : 20 + Math.random() * 20;
    const hundredths = (value: number): number => Math.round(value * 100) / 100;
    this.#transport.publishHealth({
      cpu_percent: hundredths(load),
      memory_percent: hundredths(45 + Math.random()),
      disk_percent: hundredths(60 + this.sentMs.length / 1e5),
      temperature: hundredths(50 + Math.random() * 3),
      status: this.#alert ? 'WARNING' : 'OK',
      node_name: this.name,
      timestamp: new Date(nowMs).toISOString(),
    });
    this.sentMs.push(nowMs);
    if (performance.now() >= this.#alertDueMs) this.#publishAlertChange(hundredths(load), nowMs);
  }

  #publishAlertChange(value: number, nowMs: number): void {
    this.#alerts += this.#alert ? 0 : 1;
    const timestamp = new Date(nowMs).toISOString();
    const alert: Alert = this.#alert
      ? { ...this.#alert, value, timestamp, resolved: true }
      : {
          alert_id: `${this.name}/cpu_percent/${this.#alerts}`,
          severity: 'WARNING',
          metric: 'cpu_percent',
          value,
          threshold: 80,
          timestamp,
          resolved: false,
        };
    this.#alert = alert.resolved ? null : alert;
    this.#alertDueMs += alert.resolved ? ALERT_EVERY_MS - ALERT_FOR_MS : ALERT_FOR_MS;
    this.#transport.publishAlert(alert);
    emit('alerted', { alert_id: alert.alert_id, resolved: alert.resolved });
  }
}

const fleet = await FleetNetwork.open(options.domainId, options.robotAddresses);
const robots = Array.from({ length: options.count }, (_, i) => new Robot(options.first + i, fleet));

async function execute(command: RobotCommand): Promise<void> {
  switch (command.do) {
    case 'join':
      for (const robot of robots) await robot.start();
      return emit('joined', {});
    case 'publish':
      for (const robot of robots) robot.publish();
      return;
    case 'vanish': {
      const vanished = robots.splice(0, command.count);
      for (const robot of vanished) robot.vanish();
      return emit('vanished', { names: vanished.map(({ name }) => name) });
    }
    case 'sent': {
      const { fromMs, toMs } = command;
      const count = ({ sentMs }: Robot): number => sentMs.filter((ms) => ms >= fromMs && ms < toMs).length;
      return emit('sent', { robots: robots.map((robot) => ({ name: robot.name, count: count(robot) })) });
    }
  }
}

process.stdout.on('error', () => process.exit(1));
process.on('uncaughtException', (error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(70);
});
createInterface({ input: process.stdin }).on('line', (line) => void execute(JSON.parse(line) as RobotCommand));
process.stdin.once('end', () => process.exit(0));
emit('ready', {});
