import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type RestClient, serviceOf } from '../../src/client/rest.ts';
import { hasRootHelper, requestFromRoot } from '../../src/client/root-helper.ts';
import { localService } from '../../src/client/running-service.ts';
import { loadConfig } from '../../src/config/load.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { type ConfigFile, configDiff, configFate, replaceConfig } from '../../src/config/replace.ts';
import { withSecretsOf } from '../../src/config/secrets.ts';
import { PACKAGE_CONFIG } from '../../src/core/files/installation.ts';
import type { ManifestFile } from '../backup/manifest.ts';
import type { JobContext } from '../lib/job.ts';
import { type FileAction, Refused, type Rollback } from './restore-files.ts';

/** The configuration of a backup as it would be written: with the secrets of the current one, because a backup contains none. */
export interface ConfigPlan {
  readonly files: readonly ConfigFile[];
  readonly actions: readonly FileAction[];
  /** The changes, in the format of `diff -u`. */
  readonly diff: string;
  /** Files that stay unchanged, and why. */
  readonly warnings: readonly string[];
}

/** `from` contains the extracted files. Throws Refused if the current file is missing or unusable. */
export async function planConfig(context: JobContext, from: string, members: readonly ManifestFile[]): Promise<ConfigPlan> {
  const { config, configFile, environment } = context;
  const folder = dirname(configFile);
  const inForce = basename(configFile);
  if (hasRootHelper(environment) && folder !== PACKAGE_CONFIG)
    throw new Refused(`${configFile} is in force, and only files of ${PACKAGE_CONFIG} are restored; omit --config-too`);
  const files: ConfigFile[] = [];
  const warnings: string[] = [];
  for (const { mode, path } of members) {
    const name = path.slice('config/'.length);
    const content = await readFile(join(from, path));
    if (!/\.ya?ml$/.test(name)) {
      files.push({ name, content, executable: (Number.parseInt(mode, 8) & 0o100) !== 0 });
      continue;
    }
    const { missing, text } = withSecretsOf(content.toString(), await readFile(join(folder, name), 'utf8').catch(() => null));
    const parsed = parseConfig(text, name);
    let problem: string | null = parsed.ok ? null : `${name} of the backup has errors`;
    if (missing.length > 0)
      problem = `the backup has no ${missing.join(', ')}, as backups leave secrets out, and ${join(folder, name)} has none either: set it there first`;
    if (problem === null) files.push({ name, content: Buffer.from(text), executable: false });
    else if (name === inForce) throw new Refused(`${problem}, or omit --config-too`);
    else warnings.push(`${name} stays as it is: ${problem}`);
    if (name === inForce && parsed.ok && parsed.config.storage.path !== config.storage.path)
      throw new Refused(
        `the configuration of the backup has another data folder (storage.path ${parsed.config.storage.path ?? 'not set'}, now ${config.storage.path ?? 'not set'}); omit --config-too`,
      );
  }
  if (!files.some(({ name }) => name === inForce))
    throw new Refused(
      `the backup has no ${inForce}, which is the configuration in force; omit --config-too, or name another with --config`,
    );
  const actions = files.map((file) => ({ path: `config/${file.name}`, action: configFate(folder, file) }));
  return { files, actions, diff: configDiff(folder, files), warnings };
}

/**
 * Replaces the configuration, through the root process if this process has dropped its privileges. Resolves with the
 * folder of the previous files.
 */
export async function restoreConfig(
  { configFile, environment }: JobContext,
  { files }: ConfigPlan,
  stamp: string,
  rollback: Rollback,
): Promise<string | null> {
  if (!hasRootHelper(environment)) {
    const replaced = replaceConfig(dirname(configFile), files, { stamp, group: null, show: (diff) => process.stderr.write(diff) });
    rollback.unshift(async () => replaced.putBack());
    return replaced.previous;
  }
  const sent = files.map(({ content, executable, name }) => ({ name, executable, base64: content.toString('base64') }));
  const { code, output } = await requestFromRoot({ do: 'replace configuration', files: sent, stamp }, environment);
  if (code !== 0) throw new Error(output);
  rollback.unshift(() => requestFromRoot({ do: 'put configuration back' }, environment));
  return output === '' ? null : output;
}

/** Returns a client for the restored configuration, which may have a different port or token. */
export function restClientNow({ configFile, environment, rest }: JobContext): RestClient {
  const loaded = loadConfig(configFile);
  return loaded.ok ? serviceOf(loaded.config.rest, localService(configFile, environment)) : rest;
}
