import { describeKeys, type KeyDescription } from './describe.ts';
import type { Config } from './schema.ts';

export interface Reloaded {
  /** The new configuration, but with the running values of the keys that need a restart. */
  readonly config: Config;
  /** One line for each changed key that needs a restart: `rest.port: 5055 needs a restart; still 5000`. */
  readonly restartNeeded: readonly string[];
}

type Section = Record<string, unknown>;

/** Splits a new configuration into the part that a running service can apply and the keys that need a restart. */
export function reloaded(running: Config, next: Config): Reloaded {
  const config = structuredClone(next);
  const restartNeeded: string[] = [];
  for (const description of describeKeys()) {
    if (description.reload) continue;
    const path = description.key.split('.');
    const name = path.pop() as string;
    const sectionOf = (root: Config): Section => path.reduce((section, part) => section[part] as Section, root as unknown as Section);
    const [before, after] = [sectionOf(running)[name], sectionOf(next)[name]];
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    sectionOf(config)[name] = before;
    restartNeeded.push(`${description.key}: ${shown(after, description)} needs a restart; still ${shown(before, description)}`);
  }
  return { config, restartNeeded };
}

function shown(value: unknown, { defaultIs, secret }: KeyDescription): string {
  if (value === null) return defaultIs ?? 'none';
  if (secret) return 'a secret value';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
