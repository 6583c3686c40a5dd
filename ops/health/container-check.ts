import type { Check } from './check.ts';
import { askEngine, type Container, ENGINES, type EngineAnswer } from './container-engines.ts';
import { finding, fine, type Verdict } from './verdict.ts';

/** Exit codes that tell how it ended: 128 and the number of the signal. */
const SIGNALS: Readonly<Record<number, string>> = { 134: 'SIGABRT', 137: 'SIGKILL', 139: 'SIGSEGV', 143: 'SIGTERM' };

function endOf({ exitCode, outOfMemory }: Container): string {
  if (outOfMemory) return ', killed for want of memory';
  const signal = SIGNALS[exitCode];
  return `, exit code ${exitCode}${signal === undefined ? '' : ` (${signal})`}`;
}

/** `grown`: restarts since the last check. */
export function judgeContainer(container: Container, grown: number): Verdict {
  const { engine, exitCode, failingStreak, health, name, outOfMemory, restarts, state } = container;
  const topic = `container ${name}`;
  const measured = { engine, state, health, restarts, restarts_since_last_check: grown, exit_code: exitCode, out_of_memory: outOfMemory };
  const logs = `${engine} logs --tail 50 ${name}`;
  const bad = (message: string, remedy: string): Verdict => finding(topic, 'CRITICAL', message, remedy, measured);
  switch (state) {
    case 'running':
      break;
    case 'paused':
      return bad('it is paused', `${engine} unpause ${name}`);
    case 'restarting':
      return bad(`it ends again and again (${restarts} restarts${endOf(container)})`, logs);
    case 'created':
    case 'configured':
    case 'initialized':
      return bad('it was created but does not run', `${engine} start ${name}`);
    default:
      return bad(
        `it does not run: ${state}${endOf(container)}`,
        `${logs}; ${outOfMemory ? 'raise its memory limit; ' : ''}${engine} start ${name}`,
      );
  }
  if (health === 'unhealthy')
    return bad(`unhealthy: its health check failed ${failingStreak} times in a row`, `${logs}; ${engine} restart ${name}`);
  if (grown > 0) {
    const times = grown === 1 ? 'once' : `${grown} times`;
    return finding(topic, 'WARNING', `restarted ${times} since the last check${outOfMemory ? ', out of memory' : ''}`, logs, measured);
  }
  return fine(
    topic,
    `runs in ${engine}${health === null ? '' : `, ${health}`}${restarts > 0 ? `, restarts so far: ${restarts}` : ''}`,
    measured,
  );
}

const PODMAN_REMEDY =
  'enable podman.socket, let this user use it, and name it: systemctl edit edge-health-ops, under [Service] Environment=CONTAINER_HOST=unix:///run/podman/podman.sock';

/** How an engine that does not answer is made to. */
export function engineRemedy(engine: string, why: string): string {
  if (!/permission denied|not permitted|EACCES|must be root/i.test(why))
    return engine === 'docker' ? 'systemctl status docker; systemctl start docker' : 'run podman ps by hand and do as it says';
  return engine === 'docker'
    ? 'let the scheduler ask it: systemctl edit edge-health-ops, under [Service] SupplementaryGroups=docker'
    : PODMAN_REMEDY;
}

const NO_DAEMON = /^Cannot connect to the Docker daemon/i;

/** Of a container that no engine told about. */
export function judgeUnseen(name: string, answers: readonly EngineAnswer[]): Verdict {
  const topic = `container ${name}`;
  const failed = answers.filter((answer) => answer.kind === 'failed');
  const answered = answers.filter((answer) => answer.kind === 'containers');
  const asked = answered.map(({ engine }) => engine);
  const measured = { engine: null, asked };
  // Without its daemon none of docker's containers runs; what merely may not be asked, or not shown, may be well.
  const isBlind = failed.some(({ why }) => !NO_DAEMON.test(why)) || answered.some(({ complete }) => !complete);
  const status = isBlind ? 'UNKNOWN' : 'CRITICAL';
  const [first] = failed;
  if (first) {
    const why = failed.map((answer) => `${answer.engine}: ${answer.why}`).join('; ');
    return finding(topic, status, `it cannot be asked for (${why})`, engineRemedy(first.engine, first.why), measured);
  }
  if (asked.length === 0)
    return finding(topic, 'UNKNOWN', 'there is neither docker nor podman', 'install one, or take it out of ops.check.containers', measured);
  const message = `${asked.join(' and ')} ${asked.length === 1 ? 'knows' : 'know'} no such container`;
  if (isBlind) return finding(topic, status, `${message} of this user`, `if it is root's: ${PODMAN_REMEDY}`, measured);
  return finding(topic, status, message, 'create it, or take it out of ops.check.containers', measured);
}

/** One verdict a name. Both engines may have one of that name: the one that runs counts. */
export function judgeContainers(
  names: readonly string[],
  answers: readonly EngineAnswer[],
  grownOf: (container: Container) => number,
): Verdict[] {
  const all = answers.flatMap((answer) => (answer.kind === 'containers' ? answer.containers : []));
  return names.map((name) => {
    const known = all.filter((container) => container.name === name || container.id.startsWith(name));
    const chosen = known.find(({ state }) => state === 'running') ?? known[0];
    return chosen ? judgeContainer({ ...chosen, name }, grownOf(chosen)) : judgeUnseen(name, answers);
  });
}

export const containerCheck: Check = {
  name: 'containers',
  seconds: 15,
  run: async ({ context, counters }, signal) => {
    const names = [...new Set(context.config.ops.check.containers)];
    if (names.length === 0) return [];
    const answers = await Promise.all(ENGINES.map((engine) => askEngine(engine, names, context.environment, signal)));
    return judgeContainers(names, answers, ({ engine, id, name, restarts }) =>
      counters.grown(`restarts of ${engine} ${name}`, id, restarts),
    );
  },
};
