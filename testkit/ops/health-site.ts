/** Runs health_check in this process on a data folder and programs of the test. Used by test/ops and test/system/ops. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { healthCheck } from '../../ops/health_check.ts';
import type { JobArguments, JobContext, JobResult, Trigger } from '../../ops/lib/job.ts';
import { serviceOf } from '../../src/client/rest.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Teardown, temporaryFolder } from '../folder.ts';
import { ROOT } from '../service/service.ts';

export interface CheckResult {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly remedy: string | null;
  readonly measured: Readonly<Record<string, unknown>>;
}

export interface HealthDocument {
  readonly status: string;
  readonly summary: string;
  readonly checks: readonly CheckResult[];
}

export interface HealthRun extends JobResult {
  readonly document: HealthDocument;
  /** Returns the result of a check by name. */
  readonly of: (name: string) => CheckResult | undefined;
}

export interface Site {
  readonly folder: string;
  readonly dataFolder: string;
  /** Address of the service, or an address without a service. */
  readonly url: string;
  /** The only folder in PATH, with the programs that the check finds. */
  readonly programs: string;
}

/** A site in a folder of the test, with a folder for replacements of system programs. */
export function siteAt(t: Teardown, url: string, folder = temporaryFolder(t), dataFolder = join(folder, 'data')): Site {
  const programs = join(folder, 'programs');
  mkdirSync(programs, { recursive: true });
  return { folder, dataFolder, url, programs };
}

/** Creates a shell script that replaces a system program. */
export function provide({ programs }: Site, name: string, script: string): void {
  const file = join(programs, name);
  writeFileSync(file, `#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin\n${script}\n`);
  chmodSync(file, 0o755);
}

/** Creates a program that prints output recorded on a real machine (testkit/fixtures/health-check). */
export function provideRecorded(site: Site, name: string, recording: string): void {
  provide(site, name, `exec cat '${ROOT}/testkit/fixtures/health-check/${recording}'`);
}

/** No service listens on this port. */
export const NOWHERE = 'http://127.0.0.1:1';

/** The whole log, over all days. */
export function logOf(site: Site): string {
  const folder = join(site.dataFolder, 'logs');
  const names = readdirSync(folder).filter((name) => name.startsWith('health_check_'));
  return names
    .sort()
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
}

let files = 0;

/** Writes the configuration of the site with these values of `ops.check`; returns its path. */
export function configure(site: Site, check: object = {}, more: object = {}): string {
  files += 1;
  const file = join(site.folder, `ops-${files}.yaml`);
  const address = new URL(site.url);
  // The result must not depend on the free disk space of this machine.
  const ops = { check: { min_free_megabytes: 0, ...check }, ...more };
  writeFileSync(file, stringify({ rest: { host: '127.0.0.1', port: Number(address.port) }, storage: { path: site.dataFolder }, ops }));
  return file;
}

export function environmentOf({ folder, programs }: Site): NodeJS.ProcessEnv {
  return { ...process.env, PATH: programs, HOME: folder };
}

export interface RunSettings {
  readonly check?: object;
  readonly more?: object;
  readonly trigger?: Trigger;
  readonly options?: JobArguments['options'];
  readonly signal?: AbortSignal;
}

/** Runs the check in this process, like the scheduler. */
export async function checkAt(
  site: Site,
  { check, more, options = {}, signal, trigger = 'schedule' }: RunSettings = {},
): Promise<HealthRun> {
  const configFile = configure(site, check, more);
  const loaded = loadConfig(configFile);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
  const context: JobContext = {
    config: loaded.config,
    configFile,
    dataFolder: site.dataFolder,
    version: 'test',
    rest: serviceOf(loaded.config.rest, site.url),
    environment: environmentOf(site),
    trigger,
    signal: signal ?? new AbortController().signal,
    nowMs: Date.now,
    log: () => undefined,
    progress: () => undefined,
  };
  const outcome = await healthCheck.run(context, { options, positionals: [] });
  const document = outcome.document as HealthDocument;
  return { ...outcome, document, of: (name) => document.checks.find((check) => check.name === name) };
}
