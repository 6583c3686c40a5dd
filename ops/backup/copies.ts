import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../src/config/schema.ts';
import type { JobStatus } from '../lib/job.ts';
import { FolderTarget } from './copy-folder.ts';
import { isRsync, RsyncTarget } from './copy-rsync.ts';
import { isS3, S3Target } from './copy-s3.ts';
import { CopyProblem, type CopyTarget } from './copy-target.ts';
import { newestFirst, surplus } from './names.ts';

export interface CopyOutcome {
  readonly target: string;
  readonly status: JobStatus;
  /** Names in the order in which they were copied, the newest first. */
  readonly copied: readonly string[];
  readonly pruned: readonly string[];
  readonly problem: string | null;
}

export interface CopyOptions {
  readonly config: Config;
  readonly environment: NodeJS.ProcessEnv;
  /** Where the backups lie. */
  readonly folder: string;
  /** Those that were verified and kept. */
  readonly names: readonly string[];
  /** The one that counts as newest. */
  readonly newest: string;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/** This machine's name, as a folder. Many machines may have one target, and all make their backups at midnight. */
export function hostFolder(): string {
  return hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_') || 'unnamed';
}

function targetOf(target: string, { config, environment }: CopyOptions): CopyTarget {
  const host = hostFolder();
  if (isS3(target)) return new S3Target(target, host, config.ops.backup, environment);
  if (isRsync(target)) return new RsyncTarget(target, host, environment);
  if (target.startsWith('/')) return new FolderTarget(target, host);
  throw new CopyProblem('it is no target: write a folder from / on, user@host:path, rsync://host/module/path or s3://bucket/prefix');
}

async function copyTo(name: string, options: CopyOptions): Promise<CopyOutcome> {
  const { config, folder, names, newest, progress, signal } = options;
  const copied: string[] = [];
  const pruned: string[] = [];
  try {
    const target = targetOf(name, options);
    const there = await target.list(signal);
    const { keep } = config.ops.backup;
    // Not those that would be pruned again at once: it may hold newer ones that are gone here.
    const wanted = newestFirst([...new Set([...names, ...there.keys()])], newest).slice(0, keep);
    for (const wantedName of wanted.filter((one) => names.includes(one))) {
      const path = join(folder, wantedName);
      if (there.get(wantedName) === (await stat(path)).size) continue;
      progress(`copying ${wantedName} to ${name}`);
      await target.put(path, wantedName, signal);
      copied.push(wantedName);
    }
    const old = surplus([...new Set([...there.keys(), ...copied])], newest, keep);
    if (old.length > 0) await target.remove(old, signal);
    pruned.push(...old);
    return { target: name, status: 'OK', copied, pruned, problem: null };
  } catch (error) {
    const problem = signal.aborted ? 'ended before it was done; it is tried again with the next backup' : (error as Error).message;
    return { target: name, status: 'WARNING', copied, pruned, problem };
  }
}

/** Brings every target up to date, each on its own: what one could not take now, it gets the next time. */
export async function copyBackups(options: CopyOptions): Promise<CopyOutcome[]> {
  const outcomes: CopyOutcome[] = [];
  for (const target of options.config.ops.backup.copy_to) outcomes.push(await copyTo(target, options));
  return outcomes;
}
