import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseConfig } from '../../src/config/parse.ts';
import { type ConfigFile, configDiff, configFate, replaceConfig } from '../../src/config/replace.ts';
import { withSecretsOf } from '../../src/config/secrets.ts';
import { PACKAGE_CONFIG } from '../../src/installation/installation.ts';
import { askRoot, hasRootHelper } from '../../src/system/root-helper.ts';
import type { JobContext } from '../lib/job.ts';
import type { ManifestFile } from './manifest.ts';
import type { Placed } from './put-files.ts';
import type { Undone } from './swap-database.ts';

/** The configuration of a backup as it would be put in place: with the secrets of the present one, which a backup does not hold. */
export interface ConfigPlan {
  readonly files: readonly ConfigFile[];
  readonly fates: readonly Placed[];
  /** What would change, as `diff -u` shows it. */
  readonly diff: string;
  /** Files that stay as they are, and why. */
  readonly warnings: readonly string[];
}

/** What keeps the configuration of a backup from being used. */
export class UnusableConfig extends Error {
  override readonly name = 'UnusableConfig';
}

/** `from` holds the unpacked files. Throws UnusableConfig where the file in force is not there or cannot be used. */
export async function planConfig(context: JobContext, from: string, members: readonly ManifestFile[]): Promise<ConfigPlan> {
  const { config, configFile, environment } = context;
  const folder = dirname(configFile);
  if (hasRootHelper(environment) && folder !== PACKAGE_CONFIG)
    throw new UnusableConfig(`${configFile} is in force, and only files of ${PACKAGE_CONFIG} are restored; leave --config-too out`);
  const files: ConfigFile[] = [];
  const warnings: string[] = [];
  for (const { mode, path } of members) {
    const name = path.slice('config/'.length);
    const isInForce = name === basename(configFile);
    const executable = (Number.parseInt(mode, 8) & 0o100) !== 0;
    const content = await readFile(join(from, path));
    if (!/\.ya?ml$/.test(name)) {
      files.push({ name, content, executable });
      continue;
    }
    const { missing, text } = withSecretsOf(content.toString(), await readFile(join(folder, name), 'utf8').catch(() => null));
    const parsed = parseConfig(text, name);
    const problem =
      missing.length > 0
        ? `the backup has no ${missing.join(', ')}, as backups leave secrets out, and ${join(folder, name)} has none either: set it there first`
        : parsed.ok
          ? null
          : `${name} of the backup has errors`;
    if (problem === null) files.push({ name, content: Buffer.from(text), executable: false });
    else if (isInForce) throw new UnusableConfig(`${problem}, or leave --config-too out`);
    else warnings.push(`${name} stays as it is: ${problem}`);
    if (isInForce && parsed.ok && parsed.config.storage.path !== config.storage.path)
      throw new UnusableConfig(
        `the configuration of the backup keeps its data elsewhere (storage.path ${parsed.config.storage.path ?? 'not set'}, now ${config.storage.path ?? 'not set'}); leave --config-too out`,
      );
  }
  if (!files.some(({ name }) => name === basename(configFile)))
    throw new UnusableConfig(
      `the backup has no ${basename(configFile)}, which is the configuration in force; leave --config-too out, or name another with --config`,
    );
  const fates = files.map((file) => ({ path: `config/${file.name}`, fate: configFate(folder, file) }));
  return { files, fates, diff: configDiff(folder, files), warnings };
}

/** Replaces the configuration: by root's process where this one left root's rights. Resolves with where the files of before are; null: none gave way. */
export async function putConfig(
  { configFile, environment }: JobContext,
  { files }: ConfigPlan,
  stamp: string,
  undone: Undone,
): Promise<string | null> {
  if (!hasRootHelper(environment)) {
    const replaced = replaceConfig(dirname(configFile), files, { stamp, group: null, show: (diff) => process.stderr.write(diff) });
    undone.unshift(async () => replaced.putBack());
    return replaced.aside;
  }
  const sent = files.map(({ content, executable, name }) => ({ name, executable, base64: content.toString('base64') }));
  const { code, output } = await askRoot({ do: 'replace configuration', files: sent, stamp }, environment);
  if (code !== 0) throw new Error(output);
  undone.unshift(() => askRoot({ do: 'put configuration back' }, environment));
  return output === '' ? null : output;
}
