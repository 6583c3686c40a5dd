import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { GraphNames, GraphPlace } from '../graph.ts';
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

export interface ProbeOptions {
  readonly program: URL;
  readonly environment: NodeJS.ProcessEnv;
  readonly place: GraphPlace;
  readonly names: GraphNames;
  readonly enclave: string | null;
  readonly deadlineSeconds?: number;
}

const DEADLINE_SECONDS = 20;
const MAX_REASON_CHARACTERS = 300;

/** Hidden from `ros2 node list` and `ros2 topic list`, and nobody's topics. */
const HIDDEN: GraphNames = {
  namespace: '/',
  nodes: {
    healthMonitor: '_edge_health_probe',
    thresholdMonitor: '_edge_health_probe_2',
    alertPublisher: '_edge_health_probe_3',
    safeShutdown: '_edge_health_probe_4',
  },
  topics: {
    healthStatus: '/_edge_health_probe/health_status',
    alerts: '/_edge_health_probe/alerts',
    shutdownStatus: '/_edge_health_probe/shutdown_status',
    diagnostics: '/_edge_health_probe/diagnostics',
  },
  services: { safeShutdown: '/_edge_health_probe/safe_shutdown' },
};

/**
 * Tries what was prepared in a process of its own, so that a crash or a hang of native code costs that process alone. Null: it
 * works. Otherwise what went wrong. Never rejects.
 */
export function probe(prepared: Prepared, options: ProbeOptions): Promise<string | null> {
  const { place, program, enclave } = options;
  // An enclave's policy allows the real names and no others; nothing is published under them.
  const secured = isSecured(options.environment);
  const request: ProbeRequest = { prepared, place, names: secured ? options.names : HIDDEN, enclave, publish: !secured };
  const variables = placeVariables(prepared.distro, place);
  const env: NodeJS.ProcessEnv = { ...(environmentFor(prepared, options.environment) ?? options.environment) };
  for (const [name, value] of Object.entries(variables)) env[name] = value ?? undefined;
  const deadlineSeconds = options.deadlineSeconds ?? DEADLINE_SECONDS;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', fileURLToPath(program), JSON.stringify(request)],
      { env, timeout: deadlineSeconds * 1000, killSignal: 'SIGKILL', maxBuffer: 1024 * 1024 },
      (error, output, errors) => {
        if (error?.killed) return resolve(`it did not answer within ${deadlineSeconds} s`);
        if (error?.signal) return resolve(`it crashed (${error.signal})${lastLine(errors)}`);
        const answer = answerOf(output);
        if (answer?.ok) return resolve(null);
        if (!answer) return resolve(`it ended with exit code ${error?.code ?? 0}${lastLine(errors)}`);
        // What rcl says when only the middleware knows why; that wrote it to standard error.
        resolve(answer.error.includes('error not set') ? `${shortened(answer.error)}${lastLine(errors)}` : shortened(answer.error));
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

/** One line of bounded length, since it goes into the log and into /status; without the places in its own source that rcl names. */
function shortened(text: string): string {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/, at \/\S+:\d+/g, '')
    .trim();
  return line.length <= MAX_REASON_CHARACTERS ? line : `${line.slice(0, MAX_REASON_CHARACTERS)}...`;
}
