import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { Test } from 'tap';
import { until } from '../../../../testkit/wait.ts';

export async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** A program that runs as long as the test, with its log. */
export class Engine {
  readonly process: ChildProcess;
  #log = '';

  constructor(t: Test, program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    this.process = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#log += text;
      });
    }
    t.teardown(() => this.end());
  }

  get log(): string {
    return this.#log;
  }

  get hasEnded(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  async end(): Promise<void> {
    if (this.hasEnded) return;
    const exited = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    const reluctant = setTimeout(() => this.process.kill('SIGKILL'), 5000);
    await exited;
    clearTimeout(reluctant);
  }
}

/** Waits until an engine reports that it is ready; throws with its log if it ends before. */
export async function ready(engine: Engine, url: string): Promise<void> {
  await until(
    `${url} is ready`,
    async () => {
      if (engine.hasEnded) throw new Error(`it ended:\n${engine.log}`);
      return fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    },
    { describe: () => engine.log },
  );
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** The API of Prometheus. */
export class PrometheusApi {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async #get<T>(path: string): Promise<T> {
    const response = await fetch(this.url + path);
    const body = (await response.json()) as { status: string; data: T; error?: string };
    if (body.status !== 'success') throw new Error(`${decodeURIComponent(path)}: ${body.error}`);
    return body.data;
  }

  /** The current value of an expression. */
  async query(expr: string): Promise<readonly Series[]> {
    return (await this.#get<{ result: readonly Series[] }>(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result;
  }

  async families(): Promise<Set<string>> {
    return new Set(await this.#get<string[]>('/api/v1/label/__name__/values'));
  }

  async targets(): Promise<
    readonly { readonly labels: Readonly<Record<string, string>>; readonly health: string; readonly lastError: string }[]
  > {
    const { activeTargets } = await this.#get<{ activeTargets: [] }>('/api/v1/targets');
    return activeTargets;
  }

  /** Rules whose last evaluation failed, with the reason. */
  async failedRules(): Promise<string[]> {
    const { groups } = await this.#get<{ groups: { rules: { name: string; health: string; lastError?: string }[] }[] }>('/api/v1/rules');
    const all = groups.flatMap(({ rules }) => rules);
    if (all.length === 0) throw new Error('Prometheus has no rules');
    return all.filter(({ health }) => health !== 'ok').map(({ name, health, lastError }) => `${name}: ${health} ${lastError ?? ''}`);
  }
}

export interface Notification {
  /** The receiver, as the path of the request names it. */
  readonly receiver: string;
  readonly status: 'firing' | 'resolved';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A real HTTP server that accepts Alertmanager's webhooks: one notification for each alert in them. */
export class WebhookReceiver {
  readonly notifications: Notification[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(t: Test): Promise<WebhookReceiver> {
    const server = createServer();
    const receiver = new WebhookReceiver(server);
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.once('end', () => {
        const { alerts } = JSON.parse(body) as { alerts: Omit<Notification, 'receiver'>[] };
        for (const { status, labels, annotations } of alerts)
          receiver.notifications.push({ receiver: (request.url ?? '').slice(1), status, labels, annotations });
        response.end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Waits for a notification that matches. */
  one(fits: (notification: Notification) => boolean, explain: () => string): Promise<Notification> {
    const received = (): unknown =>
      this.notifications.map(({ receiver, status, labels }) => [receiver, status, labels['alertname'], labels['instance']]);
    return until('a notification came', () => this.notifications.find(fits), {
      describe: () => `${JSON.stringify(received())}\n${explain()}`,
    });
  }
}
