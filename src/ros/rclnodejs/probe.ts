import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { GraphNames, GraphPlace } from '../graph.ts';
import { PROBE_NAME } from '../names.ts';
import { isSecured, placeVariables } from './place.ts';
import { environmentFor, type Prepared } from './prepared.ts';

/** What the probe program is asked to do, as JSON in its argument. */
export interface ProbeRequest {
  readonly prepared: Prepared;
  readonly place: GraphPlace;
  readonly names: GraphNames;
  readonly enclave: string | null;
  /** Whether to publish a health status and wait until it comes back. */
  readonly publish: boolean;
}

/** What it answers, as JSON in the last line of its standard output. */
export type ProbeAnswer = { readonly ok: true } | { readonly ok: false; readonly error: string };

/** Without further groups. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

export interface ProbeOptions {
  readonly program: URL;
  readonly environment: NodeJS.ProcessEnv;
  /** Where the service will be; the probe keeps away from there. */
  readonly place: GraphPlace;
  readonly names: GraphNames;
  readonly enclave: string | null;
  readonly deadlineSeconds?: number;
  /** As whom; this process's user by default. */
  readonly user?: User | null;
}

const DEADLINE_SECONDS = 20;
const MAX_REASON_CHARACTERS = 300;
const MAX_VALUE_CHARACTERS = 100;

/** Settings of middleware that may be what is wrong. */
const MIDDLEWARE_VARIABLES = [
  'CYCLONEDDS_URI',
  'FASTDDS_DEFAULT_PROFILES_FILE',
  'FASTRTPS_DEFAULT_PROFILES_FILE',
  'ZENOH_SESSION_CONFIG_URI',
  'RMW_IMPLEMENTATION',
] as const;

/** Within 0 to 101, which have ports of their own on every system; two, since the service may be in one of them. */
const PROBE_DOMAINS = [101, 100] as const;

/** Hidden from `ros2 node list` and `ros2 topic list`, and no robot's topics. */
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
    shutdownStatus: `/${PROBE_NAME}/shutdown_status`,
    diagnostics: `/${PROBE_NAME}/diagnostics`,
  },
  services: { safeShutdown: `/${PROBE_NAME}/safe_shutdown`, ownSafeShutdown: `/${PROBE_NAME}/own/safe_shutdown` },
};

/**
 * Tries what was prepared in a process of its own, so that a crash or a hang of native code costs that process alone. Null: it
 * works. Otherwise what went wrong, with the variable without which it would work. Never rejects. No other process discovers its nodes.
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
  // An enclave's policy allows the real names and domain and no others; nothing is published under them.
  const secured = isSecured(options.environment);
  const { domainId: realDomain } = options.place;
  // Humble has no range OFF, only this host: the domain keeps it apart from the other processes here.
  const domainId = secured ? realDomain : PROBE_DOMAINS[realDomain === PROBE_DOMAINS[0] ? 1 : 0];
  const place: GraphPlace = { domainId, discoveryRange: 'OFF', staticPeers: [] };
  const request: ProbeRequest = { prepared, place, names: secured ? options.names : HIDDEN, enclave, publish: !secured };
  const variables = placeVariables(prepared.distro, place);
  const env: NodeJS.ProcessEnv = { ...(environmentFor(prepared, options.environment) ?? options.environment) };
  for (const [name, value] of Object.entries(variables)) env[name] = value ?? undefined;
  // Fast DDS' server introduces participants of every discovery range to each other.
  delete env['ROS_DISCOVERY_SERVER'];
  const deadlineSeconds = options.deadlineSeconds ?? DEADLINE_SECONDS;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', fileURLToPath(program), JSON.stringify(request)],
      { ...options.user, env, timeout: deadlineSeconds * 1000, killSignal: 'SIGKILL', maxBuffer: 1024 * 1024 },
      (error, output, errors) => {
        if (error?.killed) return resolve(`it did not answer within ${deadlineSeconds} s`);
        if (error?.signal) return resolve(`it crashed (${error.signal})${lastLine(errors)}`);
        const answer = answerOf(output);
        if (answer?.ok) return resolve(null);
        if (!answer) return resolve(`it ended with exit code ${error?.code ?? 0}${lastLine(errors)}`);
        // What rcl says when only the middleware knows why; that wrote it to standard error.
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

/** The reason of Cyclone DDS stands before the lines that ROS 2 logs about it, behind time, domain and thread. */
function middlewareLine(errors: string): string {
  const lines = errors.split('\n').filter((line) => !/^\[(?:WARN|ERROR|FATAL)\] \[\d+\.\d+\] \[/.test(line));
  return lastLine(lines.join('\n').replaceAll(/^\d+\.\d{6} \[\d*\] +[^:\n]*: /gm, '')) || lastLine(errors);
}

/** One line of bounded length, since it goes into the log and into /status; without the places in its own source that rcl names. */
function shortened(text: string, most = MAX_REASON_CHARACTERS): string {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/, at \/\S+:\d+/g, '')
    .trim();
  return line.length <= most ? line : `${line.slice(0, most)}...`;
}
