import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parse, stringify } from 'yaml';
import { FLEET } from '../../../../testkit/ops/fleet-files.ts';
import { Engine, freePort, PrometheusApi, ready, WebhookReceiver } from './engines.ts';

interface Job {
  job_name: string;
  static_configs?: { targets: string[]; labels?: Record<string, string> }[];
  dns_sd_configs?: { names: string[]; type: string; port?: number; refresh_interval: string }[];
  relabel_configs: object[];
}

interface PrometheusConfig {
  global: Record<string, string>;
  scrape_configs: Job[];
}

export interface Targets {
  /** discovery/static.yml, with these targets in place of its examples. */
  readonly static: Job['static_configs'];
  /** Files of targets/ by their name. */
  readonly files: Readonly<Record<string, string>>;
  /** discovery/dns.yml, with these names in place of its examples. */
  readonly dns: { readonly srv: string; readonly a: string; readonly aPort: number };
  readonly token: string;
}

/** Real Prometheus and Alertmanager with the shipped files; only intervals, addresses and receivers differ. */
export class FleetServers {
  readonly prometheus: PrometheusApi;
  readonly webhook: WebhookReceiver;
  readonly #engines: readonly Engine[];

  private constructor(prometheus: PrometheusApi, webhook: WebhookReceiver, engines: readonly Engine[]) {
    this.prometheus = prometheus;
    this.webhook = webhook;
    this.#engines = engines;
  }

  /** `resolvConf`: what Prometheus uses as /etc/resolv.conf. */
  static async start(t: Test, folder: string, targets: Targets, resolvConf: string): Promise<FleetServers> {
    const webhook = await WebhookReceiver.start(t);
    const ports = { prometheus: await freePort(), alertmanager: await freePort() };
    const etc = join(folder, 'etc');
    writePrometheus(etc, targets, ports);
    writeAlertmanager(etc, webhook.url);
    const alertmanager = new Engine(t, 'prometheus-alertmanager', [
      `--config.file=${etc}/alertmanager.yml`,
      `--storage.path=${folder}/alertmanager`,
      `--web.listen-address=127.0.0.1:${ports.alertmanager}`,
      '--cluster.listen-address=',
    ]);
    const args = [
      `--config.file=${etc}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/tsdb`,
      `--web.listen-address=127.0.0.1:${ports.prometheus}`,
    ];
    const inNamespace = 'mount --bind "$0" /etc/resolv.conf && exec prometheus "$@"';
    const prometheus = new Engine(t, 'unshare', ['-m', 'sh', '-c', inNamespace, resolvConf, ...args]);
    const api = new PrometheusApi(`http://127.0.0.1:${ports.prometheus}`);
    await Promise.all([ready(prometheus, api.url), ready(alertmanager, `http://127.0.0.1:${ports.alertmanager}`)]);
    return new FleetServers(api, webhook, [prometheus, alertmanager]);
  }

  /** The logs of both, for a test that fails. */
  readonly log = (): string => this.#engines.map((engine) => engine.log.slice(-4000)).join('\n---\n');
}

function write(path: string, content: unknown): void {
  writeFileSync(path, typeof content === 'string' ? content : stringify(content));
}

function writePrometheus(etc: string, targets: Targets, ports: { prometheus: number; alertmanager: number }): void {
  cpSync(join(FLEET, 'prometheus'), etc, { recursive: true });
  const load = <T>(file: string): T => parse(readFileSync(join(etc, file), 'utf8')) as T;
  const config = load<PrometheusConfig>('prometheus.yml');
  config.global = { ...config.global, scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' };
  const own = config.scrape_configs.find(({ job_name }) => job_name === 'prometheus');
  if (own) own.static_configs = [{ targets: [`127.0.0.1:${ports.prometheus}`] }];
  // Each discovery method is a job of its own here, which appears under the name that the rules use.
  const asEdgeHealth = (job: Job, name: string): Job => ({
    ...job,
    job_name: name,
    relabel_configs: [...job.relabel_configs, { target_label: 'job', replacement: 'edge-health' }],
  });
  const [fixed] = load<PrometheusConfig>('discovery/static.yml').scrape_configs as [Job];
  config.scrape_configs.push(asEdgeHealth({ ...fixed, ...(targets.static && { static_configs: targets.static }) }, 'from-static'));
  const { srv, a, aPort } = targets.dns;
  const [dns] = load<PrometheusConfig>('discovery/dns.yml').scrape_configs as [Job];
  const dns_sd_configs = (dns.dns_sd_configs ?? []).map((entry) => ({
    ...entry,
    names: [entry.type === 'SRV' ? srv : a],
    ...(entry.type === 'A' && { port: aPort }),
    refresh_interval: '1s',
  }));
  config.scrape_configs.push(asEdgeHealth({ ...dns, dns_sd_configs }, 'from-dns'));
  write(join(etc, 'prometheus.yml'), config);
  for (const file of globSync('targets/*', { cwd: etc })) write(join(etc, file), '[]\n');
  for (const [name, content] of Object.entries(targets.files)) write(join(etc, 'targets', name), content);
  write(join(etc, 'alertmanagers/local.yml'), [{ targets: [`127.0.0.1:${ports.alertmanager}`] }]);
  mkdirSync(join(etc, 'secrets'), { recursive: true });
  write(join(etc, 'secrets/edge-health.token'), targets.token);
  for (const file of globSync('rules/*.yml', { cwd: etc })) {
    write(join(etc, file), readFileSync(join(etc, file), 'utf8').replaceAll(/^( +)for: .*$/gm, '$1for: 1s'));
  }
}

interface AlertmanagerConfig {
  global: Record<string, unknown>;
  route: { group_wait?: string; group_interval?: string; routes?: AlertmanagerConfig['route'][] };
  receivers: Record<string, unknown>[];
}

/** Routes, inhibition and times as shipped; every receiver but discard is a path of the webhook receiver. */
function writeAlertmanager(etc: string, webhook: string): void {
  cpSync(join(FLEET, 'alertmanager'), etc, { recursive: true });
  const file = join(etc, 'alertmanager.yml');
  const config = parse(readFileSync(file, 'utf8')) as AlertmanagerConfig;
  const hurry = (route: AlertmanagerConfig['route']): AlertmanagerConfig['route'] => ({
    ...route,
    group_wait: '1s',
    group_interval: '1s',
    ...(route.routes && { routes: route.routes.map(hurry) }),
  });
  config.route = hurry(config.route);
  config.receivers = config.receivers.map(({ name }) =>
    name === 'discard' ? { name } : { name, webhook_configs: [{ url: `${webhook}/${name}`, send_resolved: true }] },
  );
  write(file, config);
}
