import * as v from 'valibot';
import { find, runTool } from './tool.ts';

export const ENGINES = ['docker', 'podman'] as const;
export type Engine = (typeof ENGINES)[number];

/** What both engines tell of a container by `inspect`. */
export interface Container {
  readonly engine: Engine;
  readonly id: string;
  readonly name: string;
  /** created, running, paused, restarting, exited, dead, …; podman has some more. */
  readonly state: string;
  /** healthy, unhealthy, starting; null: it has no health check. */
  readonly health: string | null;
  /** Checks that failed in a row. */
  readonly failingStreak: number;
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  /** By the engine's restart policy. */
  readonly restarts: number;
}

export type EngineAnswer =
  /** `complete` false: those of other users, also root's, are not shown to this one. */
  | { readonly engine: Engine; readonly kind: 'containers'; readonly containers: readonly Container[]; readonly complete: boolean }
  | { readonly engine: Engine; readonly kind: 'missing' }
  | { readonly engine: Engine; readonly kind: 'failed'; readonly why: string };

const healthSchema = v.nullish(v.object({ Status: v.nullish(v.string(), ''), FailingStreak: v.nullish(v.number(), 0) }));

/** Docker leaves Health out where there is none, podman leaves its status empty; podman up to 3 calls it Healthcheck. */
const inspectSchema = v.array(
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
);

/** What `docker inspect` and `podman inspect` print. Throws when it is something else. */
export function parseInspect(engine: Engine, text: string): Container[] {
  return v.parse(inspectSchema, JSON.parse(text)).map(({ Id, Name, RestartCount, State }) => {
    const health = State.Health ?? State.Healthcheck;
    const status = health?.Status ?? '';
    return {
      engine,
      id: Id,
      name: Name.replace(/^\//, ''), // Docker's own names begin with a slash.
      state: State.Status,
      health: status === '' || status === 'none' ? null : status,
      failingStreak: health?.FailingStreak ?? 0,
      exitCode: State.ExitCode,
      outOfMemory: State.OOMKilled,
      restarts: RestartCount,
    };
  });
}

const SECONDS = 12;
const NOT_THERE = /no such (container|object)/i;

/** What one engine knows of these containers; never rejects. */
export async function askEngine(
  engine: Engine,
  names: readonly string[],
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<EngineAnswer> {
  try {
    if ((await find(engine, environment)) === null) return { engine, kind: 'missing' };
    const argv = [engine, 'inspect', '--type', 'container', '--', ...names];
    const { code, complaint, stdout } = await runTool(argv, { environment, seconds: SECONDS, signal });
    // Containers that are there are printed also when others are not; then the exit code is not 0.
    if (code === 0 || NOT_THERE.test(complaint)) {
      const complete = engine === 'docker' || process.getuid?.() === 0 || environment['CONTAINER_HOST'] !== undefined;
      return { engine, kind: 'containers', containers: parseInspect(engine, stdout), complete };
    }
    return { engine, kind: 'failed', why: complaint || `exit code ${code}` };
  } catch (error) {
    return { engine, kind: 'failed', why: (error as Error).message };
  }
}
