import { access, constants } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { StatusDocument } from '../../src/client/documents.ts';
import { type RestClient, ServiceRefused, ServiceUnreachable } from '../../src/client/rest.ts';
import type { Machine, Target } from '../record/entries.ts';

export interface DiscoverOptions {
  readonly rest: RestClient;
  readonly kind: Target['kind'];
  /** Name of the systemd unit on this machine; null unless `kind` is `unit`. */
  readonly unit: string | null;
  /** Timeout for a response. */
  readonly seconds: number;
  readonly signal?: AbortSignal;
}

/** The observed service. */
export interface Discovered {
  readonly target: Target;
  /** The machine that the service runs on; null if not known yet. */
  readonly machine: Machine | null;
  /** ROS 2 domain of the service; null if unknown or not on the graph. */
  readonly domainId: number | null;
  /** Why `target.data_folder` is null, for display; null if it is set. */
  readonly dataFolderProblem: string | null;
}

/** There is no service to observe; the message contains the remedy. */
export class NoService extends Error {
  override readonly name = 'NoService';
}

const PAUSE_SECONDS = 0.25;
const MAX_PAUSE_SECONDS = 2;
/** The service reports its machine and ROS 2 transport some seconds after its start. It is observed without them after this time. */
const SETTLING_SECONDS = 20;
/** Value of `ros.reason` in /status until the transport is chosen (src/app/ros-graph.ts). */
const UNDECIDED = 'not decided yet';

/** Waits until the service responds, and returns its facts from /status. Rejects with NoService. */
export async function discover(options: DiscoverOptions): Promise<Discovered> {
  const { kind, rest, unit } = options;
  const status = await waitForStatus(options);
  const { host, ros } = status;
  const node = status.nodes.find(({ local }) => local);
  if (!node) throw new NoService(`${rest.base} reports no local node: is it edge-health?`);
  const folder = await dataFolder(options, status);
  return {
    target: {
      kind,
      url: rest.base,
      unit,
      node_name: node.node_name,
      version: status.version,
      configured_hertz: status.publish.configured_hertz,
      service_transport: ros.transport,
      data_folder: folder.path,
    },
    machine: host && machineOf(host),
    domainId: ros.domain_id,
    dataFolderProblem: folder.problem,
  };
}

/** Polls /status until it is complete. */
async function waitForStatus({ kind, rest, seconds, signal, unit }: DiscoverOptions): Promise<StatusDocument> {
  let found: StatusDocument | null = null;
  let timeoutAt = performance.now() + seconds * 1000;
  for (let pause = PAUSE_SECONDS; ; pause = Math.min(MAX_PAUSE_SECONDS, pause * 2)) {
    let why = '';
    try {
      const status = await rest.json<StatusDocument>('/status');
      if (!isStatus(status)) throw new NoService(`${rest.base}/status is not that of edge-health; give its address with --url`);
      if (status.host !== null && status.ros.reason !== UNDECIDED) return status;
      if (found === null) timeoutAt = performance.now() + SETTLING_SECONDS * 1000;
      found = status;
    } catch (error) {
      // A status below 500 is final: a wrong token does not become valid.
      if (error instanceof ServiceRefused && error.status < 500)
        throw new NoService(
          error.status === 401
            ? `${rest.base} requires a token; give the configuration that contains it (rest.token_file) with --config`
            : `${rest.base} refused the request: ${error.message}`,
          { cause: error },
        );
      if (!(error instanceof ServiceUnreachable || error instanceof ServiceRefused)) throw error;
      why = error.message;
    }
    signal?.throwIfAborted();
    if (performance.now() + pause * 1000 > timeoutAt) {
      if (found !== null) return found;
      throw new NoService(`no response from ${rest.base}: ${remedy(kind, unit)} (${why})`);
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

function remedy(kind: Target['kind'], unit: string | null): string {
  if (kind === 'unit') return `systemctl start ${unit ?? 'edge-health'}, or give another address with --url`;
  if (kind === 'started') return 'the service that was started does not listen; see its log';
  return 'is the address right, and does the service run there? (systemctl status edge-health)';
}

/** Whether a body has the members of /status that are observed. A service of another version may lack others. */
export function isStatus(value: unknown): value is StatusDocument {
  const { nodes, open_alerts, process, publish, ros, started, storage, version } = (value ?? {}) as Partial<StatusDocument>;
  return (
    Array.isArray(nodes) &&
    nodes.every((node) => typeof node?.node_name === 'string') &&
    [version, started, storage?.path, ros?.transport].every((member) => typeof member === 'string') &&
    [publish?.samples, process?.cpu_seconds, open_alerts?.CRITICAL].every((member) => typeof member === 'number')
  );
}

function machineOf({ architecture, cores, cpu, hostname: name, kernel, memory_bytes, model, os }: Machine): Machine {
  return { hostname: name, model, os, kernel, architecture, cpu, cores, memory_bytes };
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** The service's data folder, if it is on this machine and readable by this user. */
async function dataFolder(
  { kind, rest }: DiscoverOptions,
  { host, storage }: StatusDocument,
): Promise<{ readonly path: string | null; readonly problem: string | null }> {
  const isHere = kind !== 'url' || (LOOPBACK.test(new URL(rest.base).hostname) && host?.hostname === hostname());
  if (!isHere) return { path: null, problem: 'the service is on another machine: its data folder cannot be read from here' };
  const path = dirname(storage.path); // The path in the status is that of the database itself.
  const problem = await new Promise<string | null>((resolve) => {
    access(path, constants.R_OK | constants.X_OK, (error) => resolve(error ? (error.code ?? error.message) : null));
  });
  if (problem === null) return { path, problem: null };
  const todo = problem === 'EACCES' ? '; run as root, or as a user of the group edge-health' : '';
  return { path: null, problem: `${path} cannot be read (${problem})${todo}` };
}
