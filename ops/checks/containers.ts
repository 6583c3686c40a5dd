import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { findProgram, runProgram } from '../lib/run-program.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor } from './check.ts';

const ENGINES = ['docker', 'podman'] as const;
type Engine = (typeof ENGINES)[number];

const healthSchema = v.nullish(v.object({ Status: v.nullish(v.string(), ''), FailingStreak: v.nullish(v.number(), 0) }));

/** Docker omits Health if there is no health check; podman leaves its status empty. podman up to 3 names it Healthcheck. */
const containerSchema = v.pipe(
  v.object({
    Id: v.string(),
    Name: v.string(),
    RestartCount: v.nullish(v.number(), 0),
    State: v.object({
      Status: v.string(),
      ExitCode: v.nullish(v.number(), 0),
      OOMKilled: v.nullish(v.boolean(), false),
      Health: healthSchema,
      Healthcheck: healthSchema,
    }),
  }),
  v.transform(({ Id, Name, RestartCount, State: { ExitCode, Health, Healthcheck, OOMKilled, Status } }) => {
    const health = Health ?? Healthcheck;
    return {
      id: Id,
      name: Name.replace(/^\//, ''), // Docker prefixes names with a slash.
      /** created, running, paused, restarting, exited, dead, …; podman has some more. */
      state: Status,
      /** healthy, unhealthy or starting; null if there is no health check. */
      health: health?.Status && health.Status !== 'none' ? health.Status : null,
      /** Consecutive failed health checks. */
      failingStreak: health?.FailingStreak ?? 0,
      exitCode: ExitCode,
      outOfMemory: OOMKilled,
      /** Restarts by the engine's restart policy. */
      restarts: RestartCount,
    };
  }),
);

/** A container as either engine describes it. */
export type Container = Readonly<v.InferOutput<typeof containerSchema>> & { readonly engine: Engine };

/** Parses the output of `docker inspect` and `podman inspect`. Throws for any other text. */
export function parseInspect(engine: Engine, text: string): Container[] {
  return v.parse(v.array(containerSchema), JSON.parse(text)).map((container) => ({ engine, ...container }));
}

export type EngineAnswer =
  /** If `complete` is false, containers of other users, including root's, are not visible. */
  | { readonly engine: Engine; readonly kind: 'containers'; readonly containers: readonly Container[]; readonly complete: boolean }
  | { readonly engine: Engine; readonly kind: 'missing' }
  | { readonly engine: Engine; readonly kind: 'failed'; readonly why: string };

const LIST_TIMEOUT_SECONDS = 6;
const INSPECT_TIMEOUT_SECONDS = 12;
const NOT_THERE = /no such (container|object)/i;

/** Ids of all containers of an engine. */
async function listContainers(engine: Engine, { environment, signal }: CheckContext): Promise<string[]> {
  const argv = [engine, 'ps', '--all', '--quiet', '--no-trunc'];
  const { complaint, exitCode, stdout } = await runProgram(argv, { environment, timeoutSeconds: LIST_TIMEOUT_SECONDS, signal });
  if (exitCode !== 0) throw new Error(complaint || `exit code ${exitCode}`);
  return stdout.split(/\s+/).filter((id) => id !== '');
}

/** Whether this user has containers of rootless Podman. Listing them would create the folder. */
async function hasOwnPodman({ environment }: CheckContext): Promise<boolean> {
  const storage = join(environment['HOME'] ?? '/', '.local/share/containers');
  return (await stat(storage).catch(() => null)) !== null;
}

/** Reads these containers of an engine, or all of its containers if no name is given. Never rejects. */
async function readEngine(engine: Engine, names: readonly string[], context: CheckContext): Promise<EngineAnswer> {
  const { environment, signal } = context;
  try {
    if ((await findProgram(engine, environment)) === null) return { engine, kind: 'missing' };
    const complete = engine === 'docker' || process.getuid?.() === 0 || environment['CONTAINER_HOST'] !== undefined;
    if (names.length === 0 && !complete && !(await hasOwnPodman(context)))
      throw new Error('permission denied: this user has no containers of its own');
    const ids = names.length > 0 ? names : await listContainers(engine, context);
    if (ids.length === 0) return { engine, kind: 'containers', containers: [], complete };
    const argv = [engine, 'inspect', '--type', 'container', '--', ...ids];
    const { complaint, exitCode, stdout } = await runProgram(argv, { environment, timeoutSeconds: INSPECT_TIMEOUT_SECONDS, signal });
    // The exit code is nonzero if any of them does not exist; the others are printed anyway.
    if (exitCode !== 0 && !NOT_THERE.test(complaint)) throw new Error(complaint || `exit code ${exitCode}`);
    return { engine, kind: 'containers', containers: parseInspect(engine, stdout), complete };
  } catch (error) {
    return { engine, kind: 'failed', why: (error as Error).message };
  }
}

/** Exit codes of programs ended by a signal: 128 plus its number. */
const SIGNALS: Readonly<Record<number, string>> = { 134: 'SIGABRT', 137: 'SIGKILL', 139: 'SIGSEGV', 143: 'SIGTERM' };

function endOf({ exitCode, outOfMemory }: Container): string {
  if (outOfMemory) return ', killed: out of memory';
  const signal = SIGNALS[exitCode];
  return `, exit code ${exitCode}${signal === undefined ? '' : ` (${signal})`}`;
}

const measuredOf = (container: Container, restarted: number) => ({
  engine: container.engine,
  state: container.state,
  health: container.health,
  restarts: container.restarts,
  restarts_since_last_check: restarted,
  exit_code: container.exitCode,
  out_of_memory: container.outOfMemory,
});

/** Evaluates a container of `ops.check.containers`. `restarted`: restarts since the previous run. */
export function evaluateContainer(container: Container, restarted: number): CheckResult {
  const { engine, failingStreak, health, name, outOfMemory, restarts, state } = container;
  const { critical, ok, warning } = resultsFor(`container ${name}`, measuredOf(container, restarted));
  const logs = `${engine} logs --tail 50 ${name}`;
  switch (state) {
    case 'running':
      break;
    case 'paused':
      return critical('it is paused', `${engine} unpause ${name}`);
    case 'restarting':
      return critical(`it is in a restart loop (${restarts} restarts${endOf(container)})`, logs);
    case 'created':
    case 'configured':
    case 'initialized':
      return critical('it was created but does not run', `${engine} start ${name}`);
    default: {
      const limit = outOfMemory ? 'raise its memory limit; ' : '';
      return critical(`not running: ${state}${endOf(container)}`, `${logs}; ${limit}${engine} start ${name}`);
    }
  }
  if (health === 'unhealthy')
    return critical(`unhealthy: its health check failed ${failingStreak} times in a row`, `${logs}; ${engine} restart ${name}`);
  if (restarted > 0) {
    const times = restarted === 1 ? 'once' : `${restarted} times`;
    return warning(`restarted ${times} since the last check${outOfMemory ? ', out of memory' : ''}`, logs);
  }
  return ok(`runs in ${engine}${health === null ? '' : `, ${health}`}${restarts > 0 ? `, restarts so far: ${restarts}` : ''}`);
}

const PODMAN_REMEDY =
  'enable podman.socket, let this user use it, and name it: systemctl edit edge-health-ops, under [Service] Environment=CONTAINER_HOST=unix:///run/podman/podman.sock';

/** What to do about an engine that is not usable. */
export function engineRemedy(engine: string, why: string): string {
  if (!/permission denied|not permitted|EACCES|must be root/i.test(why))
    return engine === 'docker' ? 'systemctl status docker; systemctl start docker' : 'see the output of podman ps';
  return engine === 'docker'
    ? 'let the scheduler use it: systemctl edit edge-health-ops, under [Service] SupplementaryGroups=docker'
    : PODMAN_REMEDY;
}

const NO_DAEMON = /^Cannot connect to the Docker daemon/i;

/** The result for a configured container that no engine listed. */
function evaluateMissing(name: string, answers: readonly EngineAnswer[]): CheckResult {
  const failed = answers.filter((answer) => answer.kind === 'failed');
  const answered = answers.filter((answer) => answer.kind === 'containers');
  const engines = answered.map(({ engine }) => engine);
  const { critical, unknown } = resultsFor(`container ${name}`, { engine: null, engines });
  // Without its daemon, no docker container runs. A container that is only inaccessible or not visible may be healthy.
  const maybeThere = failed.some(({ why }) => !NO_DAEMON.test(why)) || answered.some(({ complete }) => !complete);
  const problem = maybeThere ? unknown : critical;
  const [first] = failed;
  if (first) {
    const why = failed.map((answer) => `${answer.engine}: ${answer.why}`).join('; ');
    return problem(`it cannot be inspected (${why})`, engineRemedy(first.engine, first.why));
  }
  if (engines.length === 0) return unknown('neither docker nor podman is installed', 'install one, or remove it from ops.check.containers');
  if (maybeThere) return unknown(`no such container of this user in ${engines.join(' or ')}`, `if it is root's: ${PODMAN_REMEDY}`);
  return critical(`no such container in ${engines.join(' or ')}`, 'create it, or remove it from ops.check.containers');
}

/** One result per name. If both engines have a container of that name, the running one counts. */
export function evaluateContainers(
  names: readonly string[],
  answers: readonly EngineAnswer[],
  restartedOf: (container: Container) => number,
): CheckResult[] {
  const all = answers.flatMap((answer) => (answer.kind === 'containers' ? answer.containers : []));
  return names.map((name) => {
    const known = all.filter((container) => container.name === name || container.id.startsWith(name));
    const container = known.find(({ state }) => state === 'running') ?? known[0];
    return container ? evaluateContainer({ ...container, name }, restartedOf(container)) : evaluateMissing(name, answers);
  });
}

/** Lists the existing containers when none is configured. No state counts as a problem. */
export function describeContainers(answers: readonly EngineAnswer[]): CheckResult[] {
  return answers.flatMap((answer) => {
    if (answer.kind === 'missing') return [];
    const { engine } = answer;
    if (answer.kind === 'failed')
      return [resultsFor(`containers of ${engine}`).note(`not listed (${answer.why})`, engineRemedy(engine, answer.why))];
    return answer.containers.map((container) => {
      const health = container.health === null ? '' : `, ${container.health}`;
      const how = container.state === 'running' ? health : endOf(container);
      return resultsFor(`container ${container.name}`, measuredOf(container, 0)).note(`${container.state} in ${engine}${how}`);
    });
  });
}

export const checkContainers: Check = async (context) => {
  const names = [...new Set(context.config.ops.check.containers)];
  // Each engine takes 35 ms of CPU: acceptable in a manual run, but not every five minutes without a configured container.
  if (names.length === 0 && context.trigger !== 'manual') return [];
  const answers = await Promise.all(ENGINES.map((engine) => readEngine(engine, names, context)));
  if (names.length === 0) return describeContainers(answers);
  return evaluateContainers(names, answers, ({ engine, id, name, restarts }) =>
    context.counters.increase(`restarts of ${engine} ${name}`, id, restarts),
  );
};
