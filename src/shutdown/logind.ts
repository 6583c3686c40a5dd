import { execFile } from 'node:child_process';
import type { Log } from '../core/ports.ts';
import {
  ON_FAILURE,
  type PowerControl,
  type ShutdownAction,
  type ShutdownContext,
  type ShutdownReason,
} from '../core/shutdown/shutdown.ts';
import { printable } from '../core/text.ts';
import { requestFromHelper } from './stop-helper-client.ts';
import { userName } from './users.ts';

export type MachineAction = Exclude<ShutdownAction, 'dry-run'>;

/** Methods of org.freedesktop.login1.Manager; each also exists as Can… and as …WithFlags. */
const METHODS: Readonly<Record<MachineAction, string>> = { poweroff: 'PowerOff', reboot: 'Reboot', halt: 'Halt' };
const MANAGER = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'];
/** SD_LOGIND_SKIP_INHIBITORS. systemd 257 honours locks without this flag; 252 lacks it and overrides locks if polkit allows it. */
const SKIP_INHIBITORS = '16';

export interface LogindTimeouts {
  /** Timeout of the queries before a safe shutdown begins, while its caller waits. */
  readonly querySeconds: number;
  /** Timeout of a response from logind, which may have to wait for polkit to start. */
  readonly answerSeconds: number;
  readonly wallSeconds: number;
}

const TIMEOUTS: LogindTimeouts = { querySeconds: 0.4, answerSeconds: 3, wallSeconds: 1 };
/** Validity of a positive response. A query takes 20 ms of CPU. */
const GOOD_FOR_SECONDS = 60;
const BAD_FOR_SECONDS = 5;

export interface LogindOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly monotonicSeconds: () => number;
  /** Socket of the helper that runs as root; null: there is none. */
  readonly helperSocket: string | null;
  /** File with the names of users. */
  readonly passwordFile?: string;
  readonly timeouts?: LogindTimeouts;
}

interface Known {
  readonly refusal: string | null;
  readonly untilSeconds: number;
}

/** Powers the machine off through systemd-logind, which checks with polkit whether this user may do so. */
export class Logind implements PowerControl {
  readonly #options: LogindOptions;
  readonly #timeouts: LogindTimeouts;
  readonly #known = new Map<MachineAction, Known>();
  readonly #queries = new Map<MachineAction, Promise<string | null>>();

  constructor(options: LogindOptions) {
    this.#options = options;
    this.#timeouts = options.timeouts ?? TIMEOUTS;
  }

  async prepare(action: ShutdownAction): Promise<void> {
    if (action !== 'dry-run') await this.#query(action);
  }

  async refusal(action: ShutdownAction): Promise<string | null> {
    if (action === 'dry-run') return null;
    const known = this.#known.get(action);
    if (known && this.#options.monotonicSeconds() < known.untilSeconds) return known.refusal;
    const pending = known ? known.refusal : 'for which systemd-logind has not responded yet; try again in a few seconds';
    return Promise.race([this.#query(action), resolveAfter(this.#timeouts.querySeconds, pending)]);
  }

  async inhibition(action: ShutdownAction, reason: ShutdownReason): Promise<string | null> {
    if (action === 'dry-run' || overridesLocks(reason)) return null;
    return Promise.race([
      this.#inhibition(),
      resolveAfter(this.#timeouts.querySeconds, 'systemd-logind did not report its shutdown locks; try again'),
    ]);
  }

  async perform({ action, reason, requestedBy, requestId }: ShutdownContext): Promise<void> {
    if (action === 'dry-run') return;
    const isOverriding = overridesLocks(reason);
    if (!isOverriding) {
      const held = await this.#inhibition();
      if (held !== null) throw new Error(held);
    }
    const wall = `edge-health: ${reason}, requested by ${requestedBy}, request ${requestId}`;
    const { environment, helperSocket, log } = this.#options;
    const sent = await manager(environment, this.#timeouts.wallSeconds, 'SetWallMessage', 'sb', wall, 'true');
    if (!sent.ok) log('warning', 'shutdown message not sent to logged-in users', { error: sent.problem });
    const problem = await stopMachine(action, environment, isOverriding, this.#timeouts.answerSeconds);
    if (problem === null) return;
    // The logind of systemd 252 cannot make two polkit checks for one call ("Stale file handle"), which a lock together with the session of
    // another user requires. It makes none if root calls.
    if (isOverriding && helperSocket !== null && (await requestFromHelper(helperSocket, action).answer) === null) return;
    // Despite the error, this shutdown or one requested by another program may have begun.
    if ((await this.isGoingDown()) !== true) throw new Error(`systemd-logind: ${problem}`);
  }

  async isGoingDown(): Promise<boolean | null> {
    const answer = await busctl(
      ['get-property', ...MANAGER, 'PreparingForShutdown'],
      this.#timeouts.wallSeconds,
      this.#options.environment,
    );
    return answer.ok ? data(answer.text) === true : null;
  }

  #query(action: MachineAction): Promise<string | null> {
    const { environment, monotonicSeconds } = this.#options;
    const query =
      this.#queries.get(action) ??
      manager(environment, this.#timeouts.answerSeconds, `Can${METHODS[action]}`).then((answer) => {
        const refusal = refusalOf(answer, this.#userName(process.geteuid?.() ?? 0));
        const untilSeconds = monotonicSeconds() + (refusal === null ? GOOD_FOR_SECONDS : BAD_FOR_SECONDS);
        this.#known.set(action, { refusal, untilSeconds });
        this.#queries.delete(action);
        return refusal;
      });
    this.#queries.set(action, query);
    return query;
  }

  /** Which locks forbid a shutdown now, or why they are unknown; null: none. */
  async #inhibition(): Promise<string | null> {
    const answer = await manager(this.#options.environment, this.#timeouts.answerSeconds, 'ListInhibitors');
    const rows = answer.ok ? data(answer.text, 0) : null;
    if (!Array.isArray(rows))
      return `systemd-logind did not report its shutdown locks: ${answer.ok ? 'unexpected response' : answer.problem}`;
    const locks = rows.map(([what, who, why, mode, uid, pid]: [string, string, string, string, number, number]): Inhibitor => {
      return { what: what.split(':'), who, why, mode, pid, user: this.#userName(uid) };
    });
    return inhibition(locks);
  }

  #userName(uid: number): string {
    return userName(uid, this.#options.passwordFile) ?? String(uid);
  }
}

/** Powers off, reboots or halts the machine. Resolves with the reason for a failure; null: it has begun. */
export async function stopMachine(
  action: MachineAction,
  environment: NodeJS.ProcessEnv,
  isOverriding: boolean,
  answerSeconds = TIMEOUTS.answerSeconds,
): Promise<string | null> {
  const method = METHODS[action];
  if (isOverriding) {
    const overridden = await manager(environment, answerSeconds, `${method}WithFlags`, 't', SKIP_INHIBITORS);
    if (overridden.ok) return null;
    // A systemd without the flag does not need it.
  }
  const answer = await manager(environment, answerSeconds, method, 'b', 'false');
  return answer.ok ? null : answer.problem;
}

function manager(environment: NodeJS.ProcessEnv, timeoutSeconds: number, method: string, ...values: string[]): Promise<Answer> {
  return busctl(['call', ...MANAGER, method, ...values], timeoutSeconds, environment);
}

/** Why the response of `CanPowerOff` or a similar method forbids the action; null: it is allowed. Locks are checked separately. */
function refusalOf(answer: Answer, user: string): string | null {
  if (!answer.ok)
    return `which needs systemd-logind on the system's D-Bus (${answer.problem}); install systemd, dbus and polkitd, or set it to dry-run`;
  const can = data(answer.text, 0);
  switch (can) {
    case 'yes':
    case 'inhibited':
    case 'inhibitor-blocked':
      return null;
    case 'no':
    case 'challenge':
    case 'challenge-inhibitor-blocked':
      return (
        `which polkit does not allow the user ${user}; ` +
        'install polkitd (Ubuntu 22.04: policykit-1) and the rules of the package (polkit/edge-health.rules), or set it to dry-run'
      );
    case 'na':
      return 'which this machine cannot do; choose another one, or set it to dry-run';
    default:
      return `for which systemd-logind returned "${printable(String(can), 40)}"; set it to dry-run`;
  }
}

/** The data of a busctl response such as `{"type":"s","data":["yes"]}`; for a property it is not an array. Undefined: another format. */
function data(text: string, index?: number): unknown {
  try {
    const { data: found } = JSON.parse(text) as { data?: unknown };
    return index === undefined ? found : (found as unknown[])[index];
  } catch {
    return undefined;
  }
}

function resolveAfter<T>(seconds: number, value: T): Promise<T> {
  return new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000, value).unref();
  });
}

/** The standard output of a program, or why it failed. */
export type Answer = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

const MAX_ANSWER_BYTES = 1 << 20;
const NOT_FOUND = 127;
/** Time that the program gets in addition to the timeout of its D-Bus call. */
const SPARE_SECONDS = 0.5;

/**
 * Runs `busctl`, a part of systemd, as this process's user and without prompting for a password. Never rejects. It ignores SIGTERM, because
 * the power-off that it requests sends SIGTERM to all processes of the service.
 */
export function busctl(parameters: readonly string[], timeoutSeconds: number, environment: NodeJS.ProcessEnv): Promise<Answer> {
  const options = ['--system', '--json=short', '--allow-interactive-authorization=no', `--timeout=${timeoutSeconds}`];
  const shell = ['-c', 'trap "" TERM; exec busctl "$@"', 'busctl', ...options, ...parameters];
  const limits = { timeout: (timeoutSeconds + SPARE_SECONDS) * 1000, killSignal: 'SIGKILL', maxBuffer: MAX_ANSWER_BYTES } as const;
  const answer = new Promise<Answer>((resolve) => {
    execFile('/bin/sh', shell, { ...limits, env: environment, cwd: '/' }, (error, stdout, stderr) => {
      if (!error) resolve({ ok: true, text: stdout });
      else if (error.code === NOT_FOUND) resolve({ ok: false, problem: 'busctl is not installed' });
      else if (error.killed === true) resolve({ ok: false, problem: `no response within ${timeoutSeconds} s` });
      else resolve({ ok: false, problem: stderr.trim().split('\n').at(-1) || error.message });
    });
  });
  return answer.catch((error: Error) => ({ ok: false, problem: error.message })); // The process could not be started.
}

/** An inhibitor lock of systemd-logind (systemd-inhibit). */
export interface Inhibitor {
  /** What it inhibits, such as `shutdown` and `sleep`. */
  readonly what: readonly string[];
  readonly who: string;
  readonly why: string;
  /** `block` and, since systemd 257, `block-weak` forbid; `delay` grants some seconds, which logind handles itself. */
  readonly mode: string;
  readonly user: string;
  readonly pid: number;
}

const NAMED = 2;
const MAX_WHO = 60;
const MAX_WHY = 120;

/** Whether locks are overridden for a reason: a machine in danger shuts down regardless of locks. */
export function overridesLocks(reason: ShutdownReason): boolean {
  return ON_FAILURE[reason] === 'skip';
}

/** Which locks inhibit a shutdown now, and what to do about it; null: none. */
export function inhibition(inhibitors: readonly Inhibitor[]): string | null {
  const blocking = inhibitors.filter(({ mode, what }) => mode.startsWith('block') && what.includes('shutdown'));
  if (blocking.length === 0) return null;
  const named = blocking.slice(0, NAMED).map(({ pid, user, who, why }) => {
    const reason = why.trim() === '' ? 'no reason given' : printable(why, MAX_WHY);
    return `${printable(who, MAX_WHO)} (pid ${pid}, user ${user}): ${reason}`;
  });
  const more = blocking.length > NAMED ? ` and ${blocking.length - NAMED} more` : '';
  return `inhibited by ${named.join(' and by ')}${more}; try again later, or use the reason EMERGENCY`;
}
