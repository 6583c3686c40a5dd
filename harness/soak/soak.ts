import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RestClient } from '../../src/client/rest.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import type { HealthStatus } from '../../src/core/health-status.ts';
import { DAY_MS, isoUtc } from '../../src/core/time/time.ts';
import { Cleanup } from '../../testkit/cleanup.ts';
import { buildUnavailable } from '../../testkit/dds/native.ts';
import { thisKernel, thisMachine } from '../../testkit/machine/machine-info.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { until } from '../../testkit/wait.ts';
import { fillDatabase } from '../../testkit/weeks/fill-database.ts';
import { AlertLoad } from './alert-load.ts';
import type { Findings } from './checks.ts';
import type { SoakNetwork } from './network.ts';
import { episodesOf, readRun } from './observed-run.ts';
import type { SoakOptions } from './options.ts';
import { IndependentPeer } from './peer.ts';
import { RequestLoad } from './requests.ts';
import { CannotRun, NODE, startService } from './service.ts';

export const runFolderOf = (folder: string): string => join(folder, 'run');

/** Bytes per stored sample, rounded up: all samples of the run fit below the size limit, so that the harness can scan them at its end. */
const BYTES_PER_SAMPLE = 40;
const MIN_MEGABYTES = 8;
/** Time between the last alert and the planned end; longer than a cycle of the alert load. */
const LAST_ALERT_SECONDS = 20;

/**
 * Starts the service and the harness (`edge-health harness run`, with its record and report in DIR/run), and loads the service until the
 * harness is done. `interrupted` ends the run early. Throws CannotRun. Stops everything that it started.
 */
export async function soak(options: SoakOptions, network: SoakNetwork, interrupted: AbortSignal): Promise<Findings> {
  const { folder, hertz, samples, transport } = options;
  const cleanup = new Cleanup();
  mkdirSync(folder, { recursive: true });
  rmSync(runFolderOf(folder), { recursive: true, force: true }); // Otherwise the harness would resume the run in it.
  const print = (text: string): void => void process.stderr.write(`soak: ${text}\n`);
  try {
    const dataFolder = join(cleanup.folderOnDisk(), 'data');
    const maxMegabytes = Math.max(MIN_MEGABYTES, Math.ceil((samples * BYTES_PER_SAMPLE) / 1e6));
    print('filling the database up to its size limit');
    fillDatabase(dataFolder, NODE, maxMegabytes * 1e6);
    const alertLoad = new AlertLoad(cleanup.folderInMemory());
    const service = await startService({ options, network, cleanup, dataFolder, maxMegabytes, sysRoot: alertLoad.sysRoot });
    const { rest } = service;
    const peer = await startPeer(options, network, cleanup);
    const requestLoad = new RequestLoad(rest);
    print('requesting a million samples, so that the memory of the service settles');
    await requestLoad.warmUp();
    const oldestBefore = await oldestSample(rest);

    const harness = cleanup.own(startHarness(rest.base, service.configFile, options));
    let died: string | null = null;
    const stop = (): void => void harness.kill('SIGTERM');
    interrupted.addEventListener('abort', stop);
    service.child.once('exit', (code, signal) => {
      died = String(signal ?? `exit status ${code}`);
      stop();
    });
    if (interrupted.aborted) stop();

    const stopped = new AbortController();
    // An alert that is open at the end of the run would be a failure.
    const stopping = setTimeout(() => stopped.abort(), (samples / hertz - LAST_ALERT_SECONDS) * 1000);
    const alerting = alertLoad.run(rest, stopped.signal);
    requestLoad.start();
    const [code] = (await once(harness, 'exit')) as [number | null];
    clearTimeout(stopping);
    stopped.abort();
    await Promise.all([alerting, requestLoad.stop()]);
    const run = readRun(runFolderOf(folder));
    if (run === null) throw new CannotRun(`the harness has observed nothing (exit status ${code})`);
    const endedBy = died;
    // Without a response, the check of alerts is incomplete.
    const changes = await alertChanges(rest).catch(() => null);
    const oldest = [oldestBefore, await oldestSample(rest)] as const;
    service.child.removeAllListeners('exit');
    alertLoad.close();
    const received = typeof peer === 'string' ? null : peer;
    return {
      ...run,
      facts: {
        began: isoUtc(run.fromMs),
        machine: thisMachine(),
        kernel: thisKernel(),
        version: service.status.version,
        samples,
        hertz,
        transport,
        transport_reason: service.status.ros.reason,
        network: network.title,
        max_megabytes: maxMegabytes,
      },
      ended: endedBy,
      interrupted: interrupted.aborted,
      oldest,
      peer: received === null ? (peer as string) : received.timestamps.filter((ms) => ms >= run.fromMs && ms < run.toMs).length,
      alerts: {
        cycles: alertLoad.cycles,
        late: alertLoad.late,
        channels: {
          topic: transport === 'off' ? null : run.episodes.topic,
          events: run.episodes.events,
          peer: received && episodesOf(received.alerts),
          rest: changes && episodesOf(changes),
        },
        observedIds: observedIds(changes ?? [], run.fromMs, run.toMs),
      },
      requests: requestLoad.results(),
      failures: requestLoad.failures,
    };
  } finally {
    await cleanup.end();
  }
}

/** The independent subscriber once it receives statuses, or the reason that there is none. */
async function startPeer({ transport }: SoakOptions, network: SoakNetwork, cleanup: Cleanup): Promise<IndependentPeer | string> {
  if (transport === 'off') return 'the service is not on the ROS 2 graph';
  const missing = buildUnavailable('peers');
  if (missing !== false) return missing;
  const peer = await IndependentPeer.start(network.peer, cleanup);
  await until('a status at the independent subscriber', () => peer.timestamps.length > 0).catch((error: Error) => {
    throw new CannotRun(error.message);
  });
  return peer;
}

function startHarness(url: string, configFile: string, { folder, hertz, samples, transport }: SoakOptions): ChildProcess {
  const options = {
    url,
    config: configFile,
    duration: `${samples / hertz}s`,
    // Independent of the service's transport: an embedded subscription measures both.
    transport: transport === 'off' ? 'off' : 'embedded',
    out: runFolderOf(folder),
  };
  const argv = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  return spawn(join(ROOT, 'bin/edge-health'), ['harness', 'run', ...argv], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', NOTIFY_SOCKET: '' },
    // Ctrl-C applies to the soak, which stops the harness.
    detached: true,
  });
}

/** Alerts that were raised and resolved within the observed time, for which every channel has all changes. */
function observedIds(changes: readonly Alert[], fromMs: number, toMs: number): readonly string[] {
  const ms = (alert: Alert | undefined): number => Date.parse(alert?.timestamp ?? '');
  return [...Map.groupBy(changes, ({ alert_id }) => alert_id)]
    .filter(([, alerts]) => ms(alerts[0]) >= fromMs && ms(alerts.at(-1)) < toMs && alerts.at(-1)?.resolved)
    .map(([id]) => id);
}

/** The time stamp of the oldest raw sample, or null if there is no response. */
async function oldestSample(rest: RestClient): Promise<string | null> {
  const query = new URLSearchParams({ order: 'asc', limit: '1', from: isoUtc(Date.now() - 30 * DAY_MS) });
  const { data } = await rest.json<{ data: readonly HealthStatus[] }>(`/health/history?${query}`).catch(() => ({ data: [] }));
  return data[0]?.timestamp ?? null;
}

/** Every change of every alert of the node, oldest first. */
async function alertChanges(rest: RestClient): Promise<Alert[]> {
  const found: Alert[] = [];
  const query = new URLSearchParams({ node: NODE, changes: 'true', limit: '10000' });
  for (let path: string | null = `/alerts?${query}`; path !== null; ) {
    const { body, next }: { body: { data: readonly Alert[] }; next: string | null } = await rest.page(path);
    found.push(...body.data);
    path = next;
  }
  return found.reverse();
}
