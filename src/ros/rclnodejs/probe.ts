import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { DiscoverySettings, GraphNames } from '../graph.ts';
import { PROBE_NAME } from '../names.ts';
import { environmentFor, type Prepared } from './prepared.ts';
import { discoveryVariables, isSecured } from './ros-variables.ts';

/** The request to the probe program, as JSON in its argument. */
export interface ProbeRequest {
  readonly prepared: Prepared;
  readonly discovery: DiscoverySettings;
  readonly names: GraphNames;
  readonly enclave: string | null;
  /** Whether to publish a health status and wait until it is received. */
  readonly publish: boolean;
}

/** The response of the probe program, as JSON in the last line of its standard output. */
export type ProbeAnswer = { readonly ok: true } | { readonly ok: false; readonly error: string };

/** A user to run a process as, without supplementary groups. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

export interface ProbeOptions {
  readonly program: URL;
  readonly environment: NodeJS.ProcessEnv;
  /** The settings of the service, whose domain the probe avoids. */
  readonly discovery: DiscoverySettings;
  readonly names: GraphNames;
  readonly enclave: string | null;
  readonly timeoutSeconds?: number;
  /** The user to run as; this process's user by default. */
  readonly user?: User | null;
}

const TIMEOUT_SECONDS = 20;
const MAX_REASON_CHARACTERS = 300;
const MAX_VALUE_CHARACTERS = 100;

/** Middleware settings that may be the cause of a failure. */
const MIDDLEWARE_VARIABLES = [
  'CYCLONEDDS_URI',
  'FASTDDS_DEFAULT_PROFILES_FILE',
  'FASTRTPS_DEFAULT_PROFILES_FILE',
  'ZENOH_SESSION_CONFIG_URI',
  'RMW_IMPLEMENTATION',
] as const;

/** Domains up to 101 avoid the ephemeral ports of every system. Two of them, since the service may use one. */
const PROBE_DOMAINS = [101, 100] as const;

/** Names hidden from `ros2 node list` and `ros2 topic list`, which do not collide with those of a robot. */
const HIDDEN: GraphNames = {
  namespace: '/',
  nodes: {
    healthMonitor: PROBE_NAME,
    thresholdMonitor: `${PROBE_NAME}_2`,
    alertPublisher: `${PROBE_NAME}_3`,
    safeShutdown: `${PROBE_NAME}_4`,
  },
  topics: {
    healthStatus: `/${PROBE_NAME}/health_status`,
    alerts: `/${PROBE_NAME}/alerts`,
    openAlerts: `/${PROBE_NAME}/open_alerts`,
    shutdownStatus: `/${PROBE_NAME}/shutdown_status`,
    diagnostics: `/${PROBE_NAME}/diagnostics`,
  },
  services: { safeShutdown: `/${PROBE_NAME}/safe_shutdown`, ownSafeShutdown: `/${PROBE_NAME}/own/safe_shutdown` },
};

/**
 * Tests the prepared copy in a separate process, since native code may crash or hang. Null: it works. Otherwise the problem, with the
 * environment variable that causes it, if any. Never rejects. The nodes of the probe are not discovered by other processes.
 */
export async function probe(prepared: Prepared, options: ProbeOptions): Promise<string | null> {
  const problem = await tryOnce(prepared, options);
  if (problem === null) return null;
  for (const name of MIDDLEWARE_VARIABLES) {
    const { [name]: value = '', ...others } = options.environment;
    if (value === '' || (await tryOnce(prepared, { ...options, environment: others })) !== null) continue;
    return `${name}=${shortened(value, MAX_VALUE_CHARACTERS)}: ${problem}; correct ${name}, or unset it`;
  }
  return problem;
}

function tryOnce(prepared: Prepared, options: ProbeOptions): Promise<string | null> {
  const { program, enclave } = options;
  // An enclave's policy allows only the real names and domain; no message is published under them.
  const secured = isSecured(options.environment);
  const { domainId: realDomain } = options.discovery;
  // Humble has no range OFF, only localhost, so a separate domain isolates the probe from other processes of this host.
  const domainId = secured ? realDomain : PROBE_DOMAINS[realDomain === PROBE_DOMAINS[0] ? 1 : 0];
  const discovery: DiscoverySettings = { domainId, discoveryRange: 'OFF', staticPeers: [] };
  const request: ProbeRequest = { prepared, discovery, names: secured ? options.names : HIDDEN, enclave, publish: !secured };
  const variables = discoveryVariables(prepared.distro, discovery);
  const env: NodeJS.ProcessEnv = { ...(environmentFor(prepared, options.environment) ?? options.environment) };
  for (const [name, value] of Object.entries(variables)) env[name] = value ?? undefined;
  // The discovery server of Fast DDS connects participants of all discovery ranges.
  delete env['ROS_DISCOVERY_SERVER'];
  const timeoutSeconds = options.timeoutSeconds ?? TIMEOUT_SECONDS;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', fileURLToPath(program), JSON.stringify(request)],
      { ...options.user, env, timeout: timeoutSeconds * 1000, killSignal: 'SIGKILL', maxBuffer: 1024 * 1024 },
      (error, output, errors) => {
        if (error?.killed) return resolve(`no response within ${timeoutSeconds} s`);
        if (error?.signal) return resolve(`it crashed (${error.signal})${lastLine(errors)}`);
        const answer = answerOf(output);
        if (answer?.ok) return resolve(null);
        if (!answer) return resolve(`it ended with exit code ${error?.code ?? 0}${lastLine(errors)}`);
        // This is rcl's message if only the middleware has the reason, which it wrote to standard error.
        resolve(answer.error.includes('error not set') ? `${shortened(answer.error)}${middlewareLine(errors)}` : shortened(answer.error));
      },
    );
  });
}

function answerOf(output: string): ProbeAnswer | null {
  try {
    const answer = JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as Partial<{ ok: boolean; error: string }>;
    if (answer.ok === true) return { ok: true };
    return answer.ok === false ? { ok: false, error: String(answer.error) } : null;
  } catch {
    return null;
  }
}

function lastLine(errors: string): string {
  const line = errors.trimEnd().split('\n').at(-1) ?? '';
  return line === '' ? '' : `: ${shortened(line)}`;
}

/** The reason of Cyclone DDS: it precedes the lines logged by ROS 2, and follows time, domain and thread. */
function middlewareLine(errors: string): string {
  const lines = errors.split('\n').filter((line) => !/^\[(?:WARN|ERROR|FATAL)\] \[\d+\.\d+\] \[/.test(line));
  return lastLine(lines.join('\n').replaceAll(/^\d+\.\d{6} \[\d*\] +[^:\n]*: /gm, '')) || lastLine(errors);
}

/** One line of bounded length for the log and /status, without rcl's source locations. */
function shortened(text: string, limit = MAX_REASON_CHARACTERS): string {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/, at \/\S+:\d+/g, '')
    .trim();
  return line.length <= limit ? line : `${line.slice(0, limit)}...`;
}
