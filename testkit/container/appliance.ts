import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { temporaryFolder } from '../folder.ts';
import { type BootOptions, Container } from './container.ts';
import { builtPackage } from './package.ts';

export const UNIT = 'edge-health.service';
export const CONFIG = '/etc/edge-health/edge_health_config.yaml';
export const STATE = '/var/lib/edge-health';
/** Port of the Node debugger in the container when `DEBUGGER` is a drop-in of the unit. */
const DEBUGGER_PORT = 9229;
export const DEBUGGER = `[Service]\nEnvironment=NODE_OPTIONS=--inspect=127.0.0.1:${DEBUGGER_PORT}\n`;
/** A configuration that raises an alert at the first sample on any machine. */
export const ALERTING = { thresholds: { memory: { warning: 0.1, critical: 99.9 } }, alerts: { raise_after_seconds: 0 } };

/** Path of a drop-in of the unit. */
export const dropIn = (name: string): string => `/etc/systemd/system/${UNIT}.d/${name}.conf`;

export interface ApplianceOptions extends Omit<BootOptions, 'installed'> {
  /** Replaces the package of this checkout. */
  readonly installed?: string;
  /** Replaces the configuration of the package. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A container with the package installed. */
export class Appliance {
  readonly machine: Container;

  constructor(machine: Container) {
    this.machine = machine;
  }

  /** Boots a container and waits for the first sample of the service. */
  static async boot(t: Pick<Test, 'teardown'>, options: ApplianceOptions): Promise<Appliance> {
    const { config, ...boot } = options;
    const installed = options.installed ?? (await builtPackage()).file;
    const files = { ...options.files, ...(config ? { [CONFIG]: stringify(config) } : {}) };
    const appliance = new Appliance(await Container.boot(t, { ...boot, installed, files }));
    await appliance.measures();
    return appliance;
  }

  /** Waits until /health returns a sample. */
  measures(seconds = 120): Promise<HealthStatus> {
    return this.machine
      .untilJson<HealthStatus>('/health', ({ timestamp }) => timestamp !== undefined, seconds)
      .catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await this.machine.journal(UNIT)}`);
      });
  }

  async mainPid(): Promise<number> {
    return Number(await this.machine.show(UNIT, 'MainPID'));
  }

  async restarts(): Promise<number> {
    return Number(await this.machine.show(UNIT, 'NRestarts'));
  }

  /** WatchdogSec of the unit. */
  async watchdogSeconds(): Promise<number> {
    const bus = ['busctl', 'get-property', 'org.freedesktop.systemd1', '/org/freedesktop/systemd1/unit/edge_2dhealth_2eservice'];
    const answer = await this.machine.sh([...bus, 'org.freedesktop.systemd1.Service', 'WatchdogUSec'].join(' '));
    return Number(answer.split(' ')[1]) / 1e6;
  }

  /** Sends a signal to the main process of the service only. */
  async signal(signal: 'KILL' | 'STOP' | 'HUP'): Promise<void> {
    await this.machine.sh(`kill -${signal} ${await this.mainPid()}`);
  }

  status(): Promise<StatusDocument> {
    return this.machine.json<StatusDocument>('/status');
  }

  /** The open alerts about the metric; there is at most one at a time. */
  async openAlerts(metric: string): Promise<Alert[]> {
    return (await this.machine.json<{ data: Alert[] }>(`/alerts?resolved=false&metric=${metric}`)).data;
  }

  async openAlertIds(metric: string): Promise<string[]> {
    return (await this.openAlerts(metric)).map(({ alert_id }) => alert_id);
  }

  /** Waits for an open alert about the metric. */
  async alerted(metric: string): Promise<Alert> {
    const path = `/alerts?resolved=false&metric=${metric}`;
    return (await this.machine.untilJson<{ data: Alert[] }>(path, ({ data }) => data.length > 0)).data[0] as Alert;
  }

  /** The time stamps of the last hour's history, oldest first, in ms. */
  async history(): Promise<number[]> {
    const { data } = await this.machine.json<{ data: HealthStatus[] }>('/health/history?hours=1&limit=10000&order=asc');
    return data.map(({ timestamp }) => Date.parse(timestamp));
  }

  /** Waits until a process that started after `sinceMs` serves its own sample; returns the seconds from `sinceMs`. */
  async backAfter(sinceMs: number, seconds: number): Promise<number> {
    const url = await this.machine.url();
    await this.machine.until(
      async () => {
        try {
          const [status, health] = await Promise.all(
            ['/status', '/health'].map(async (path) => (await fetch(url + path, { signal: AbortSignal.timeout(5000) })).json()),
          );
          return Date.parse((status as StatusDocument).started) > sinceMs && Date.parse((health as HealthStatus).timestamp) > sinceMs;
        } catch {
          return false; // There was no response, or a timeout.
        }
      },
      seconds,
      () => 'the service has not recovered',
    );
    return (Date.now() - sinceMs) / 1000;
  }

  /** Evaluates JavaScript in the event loop of the service. Does not wait for the result, because the code may block. Needs `DEBUGGER`. */
  async inject(code: string): Promise<void> {
    const targets = (await (await this.machine.http('/json/list', DEBUGGER_PORT)).json()) as { webSocketDebuggerUrl: string }[];
    const socket = new WebSocket((targets[0] as { webSocketDebuggerUrl: string }).webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error('cannot connect to the debugger'));
    });
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: code } }));
    await new Promise<void>((resolve) => {
      socket.onmessage = () => resolve();
      setTimeout(resolve, 200);
    });
    socket.close();
  }

  /** Asserts that no database was quarantined and that this one passes integrity_check. Stops the service if it is running. */
  async storeIsWhole(t: Test): Promise<void> {
    const { machine } = this;
    if (machine.isUp && (await machine.run(['systemctl', 'is-active', UNIT])).code === 0) {
      t.same((await this.status()).storage.quarantined, [], 'no database was quarantined');
      await machine.systemctl('stop', UNIT);
      t.equal(await machine.show(UNIT, 'Result'), 'success', 'it exits with success');
    }
    const copy = temporaryFolder(t);
    await machine.copyOut(STATE, copy);
    const db = new DatabaseSync(join(copy, 'edge-health.db'));
    t.same(db.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }], 'the database is intact');
    db.close();
  }
}

/** PID of a container service's main process in the namespace of this machine. */
export async function mainPidOnHost(machine: Container): Promise<number> {
  const inside = await machine.show(UNIT, 'MainPID');
  const namespace = readlinkSync(`/proc/${machine.pid1}/ns/pid`);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const numbers = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/);
      if (numbers?.at(-1) === inside && readlinkSync(`/proc/${pid}/ns/pid`) === namespace) return Number(pid);
    } catch {
      // The process has already ended.
    }
  }
  throw new Error(`process ${inside} of the container not found on this machine`);
}
