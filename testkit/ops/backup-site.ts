import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { backupLogs } from '../../ops/backup_logs.ts';
import type { JobArguments, JobContext, JobResult } from '../../ops/lib/job.ts';
import { restoreBackup } from '../../ops/restore_backup.ts';
import { serviceOf } from '../../src/client/rest.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Teardown, temporaryFolder } from '../folder.ts';
import { ROOT } from '../service/service.ts';
import { fillDataFolder } from '../weeks/week-store.ts';

/** The members of the result of backup_logs that tests check. */
export interface BackupDocument {
  readonly status: string;
  readonly backup: {
    readonly file: string;
    readonly size_bytes: number;
    readonly database: { readonly source: string; readonly samples: number; readonly episodes: number } | null;
    readonly database_missing: string | null;
    readonly left_out: readonly { readonly what: string; readonly reason: string }[];
  } | null;
  readonly kept: readonly string[];
  readonly pruned: readonly string[];
  readonly copies: readonly {
    readonly status: string;
    readonly copied: readonly string[];
    readonly pruned: readonly string[];
    readonly problem: string;
  }[];
}

/** No service listens on this socket. */
const NO_SERVICE = 'unix:/nonexistent/rest.sock';

/**
 * A data folder with its configuration, on which backup_logs and restore_backup run in this process. Used by test/ops and
 * test/system/ops.
 */
export class BackupSite {
  readonly folder: string;
  readonly dataFolder: string;
  readonly backups: string;
  readonly configFile: string;
  /** Base URL of the service, or of what stands for it. */
  url = NO_SERVICE;
  nowMs = Date.now;
  environment: NodeJS.ProcessEnv = process.env;
  signal = new AbortController().signal;

  constructor(t: Teardown, config: Readonly<Record<string, unknown>> = {}, dataFolder?: string) {
    const path = temporaryFolder(t);
    this.folder = path;
    this.dataFolder = dataFolder ?? join(path, 'data');
    this.backups = join(this.dataFolder, 'backups');
    this.configFile = join(path, 'etc', 'edge_health_config.yaml');
    mkdirSync(this.dataFolder, { recursive: true });
    mkdirSync(join(path, 'etc'));
    this.configure(config);
  }

  /** Writes the configuration. By default it has no disk reserve, which the disk of a test may be too small for. */
  configure(backup: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}): void {
    const ops = { backup: { reserve_megabytes: 0, journal_hours: 0, ...backup }, ...(more['ops'] as object | undefined) };
    writeFileSync(this.configFile, stringify({ storage: { path: this.dataFolder }, ...more, ops }));
  }

  /** Fills the database with one sample per second for the last `seconds`. */
  fill(seconds: number): number {
    return fillDataFolder(this.dataFolder, Date.now() - seconds * 1000).samples;
  }

  write(path: string, content: string | Buffer): string {
    const file = join(this.dataFolder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  }

  context(): JobContext {
    const loaded = loadConfig(this.configFile);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
    return {
      config: loaded.config,
      configFile: this.configFile,
      dataFolder: this.dataFolder,
      version: '1.2.3',
      rest: serviceOf(loaded.config.rest, () => this.url),
      environment: this.environment,
      trigger: 'manual',
      signal: this.signal,
      nowMs: () => this.nowMs(),
      log: () => undefined,
      progress: () => undefined,
    };
  }

  async backup(options: JobArguments['options'] = {}): Promise<{ outcome: JobResult; document: BackupDocument; text: string }> {
    const outcome = await backupLogs.run(this.context(), { options, positionals: [] });
    return { outcome, document: outcome.document as BackupDocument, text: outcome.lines.join('\n') };
  }

  async restore(options: JobArguments['options'] = {}, positionals: readonly string[] = []): Promise<{ outcome: JobResult; text: string }> {
    const outcome = await restoreBackup.run(this.context(), { options, positionals });
    return { outcome, text: outcome.lines.join('\n') };
  }

  get names(): string[] {
    return readdirSync(this.backups).sort();
  }

  /** The path of the newest backup by name. */
  get newest(): string {
    return join(this.backups, this.names.at(-1) as string);
  }

  /** Starts the built `edge-health ops ...` as a separate process. */
  start(program: string, ...given: readonly string[]): ReturnType<typeof spawn> {
    const parameters = ['ops', program, '--config', this.configFile, ...given];
    return spawn(join(ROOT, 'bin/edge-health'), parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: this.environment });
  }
}

/** The text of a stream, until it ends. */
export async function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = '';
  for await (const chunk of stream ?? []) text += chunk;
  return text;
}
