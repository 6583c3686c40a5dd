import { chmod, link, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseConfig } from '../../src/config/parse.ts';
import { type ConfigFile, configDiff, configFate, replaceConfig } from '../../src/config/replace.ts';
import { withSecretsOf } from '../../src/config/secrets.ts';
import { PACKAGE_CONFIG } from '../../src/installation/installation.ts';
import { syncFolder } from '../../src/system/atomic-file.ts';
import { askRoot, hasRootHelper } from '../../src/system/root-helper.ts';
import { FILE_MODE, makeFolder } from '../lib/folder.ts';
import type { JobContext } from '../lib/job.ts';
import type { ManifestFile } from './manifest.ts';
import type { Rollback } from './swap-database.ts';

/** A restore that cannot or must not be done; the message gives the reason and the remedy. Nothing was changed. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** A file of a backup is added; is the same already; or differs from the present one, which is kept or replaced. */
export type Action = 'added' | 'same' | 'kept' | 'replaced';

export interface FileAction {
  readonly path: string;
  readonly action: Action;
}

export interface CollectedFiles {
  readonly files: readonly ManifestFile[];
  /** The folder of the extracted backup. */
  readonly from: string;
  readonly dataFolder: string;
  /** Whether the file of the backup replaces a present one that differs. */
  readonly overwrite: boolean;
}

/** What would be done with each file. */
export async function planFiles({ dataFolder, files, from, overwrite }: CollectedFiles): Promise<FileAction[]> {
  const actions: FileAction[] = [];
  for (const { path, size } of files) {
    const place = join(dataFolder, path);
    const present = await stat(place).catch(() => null);
    if (!present) actions.push({ path, action: 'added' });
    else if (present.isFile() && present.size === size && (await readFile(place)).equals(await readFile(join(from, path))))
      actions.push({ path, action: 'same' });
    else actions.push({ path, action: overwrite ? 'replaced' : 'kept' });
  }
  return actions;
}

/** Moves files into place, each in one step; a replaced file is kept with `.previous-<stamp>` in its name. */
export async function restoreFiles(options: CollectedFiles, stamp: string, rollback: Rollback): Promise<FileAction[]> {
  const actions = await planFiles(options);
  for (const { action, path } of actions) {
    if (action === 'same' || action === 'kept') continue;
    const source = join(options.from, path);
    const place = join(options.dataFolder, path);
    const previous = `${place}.previous-${stamp}`;
    await makeFolder(dirname(place));
    await chmod(source, FILE_MODE);
    if (action === 'replaced') {
      await link(place, previous);
      rollback.unshift(async () => {
        await rename(previous, place);
        await rm(previous, { force: true }); // rename leaves both names while they are of one file.
      });
    } else rollback.unshift(() => rm(place, { force: true }));
    await rename(source, place);
    await syncFolder(dirname(place));
  }
  return actions;
}

/** The configuration of a backup as it would be written: with the secrets of the present one, which a backup does not hold. */
export interface ConfigPlan {
  readonly files: readonly ConfigFile[];
  readonly actions: readonly FileAction[];
  /** What would change, as `diff -u` shows it. */
  readonly diff: string;
  /** Files that stay as they are, and why. */
  readonly warnings: readonly string[];
}

/** `from` holds the extracted files. Throws Refused where the file in force is missing or cannot be used. */
export async function planConfig(context: JobContext, from: string, members: readonly ManifestFile[]): Promise<ConfigPlan> {
  const { config, configFile, environment } = context;
  const folder = dirname(configFile);
  if (hasRootHelper(environment) && folder !== PACKAGE_CONFIG)
    throw new Refused(`${configFile} is in force, and only files of ${PACKAGE_CONFIG} are restored; omit --config-too`);
  const files: ConfigFile[] = [];
  const warnings: string[] = [];
  for (const { mode, path } of members) {
    const name = path.slice('config/'.length);
    const isInForce = name === basename(configFile);
    const content = await readFile(join(from, path));
    if (!/\.ya?ml$/.test(name)) {
      files.push({ name, content, executable: (Number.parseInt(mode, 8) & 0o100) !== 0 });
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
    else if (isInForce) throw new Refused(`${problem}, or omit --config-too`);
    else warnings.push(`${name} stays as it is: ${problem}`);
    if (isInForce && parsed.ok && parsed.config.storage.path !== config.storage.path)
      throw new Refused(
        `the configuration of the backup has another data folder (storage.path ${parsed.config.storage.path ?? 'not set'}, now ${config.storage.path ?? 'not set'}); omit --config-too`,
      );
  }
  if (!files.some(({ name }) => name === basename(configFile)))
    throw new Refused(
      `the backup has no ${basename(configFile)}, which is the configuration in force; omit --config-too, or name another with --config`,
    );
  const actions = files.map((file) => ({ path: `config/${file.name}`, action: configFate(folder, file) }));
  return { files, actions, diff: configDiff(folder, files), warnings };
}

/** Replaces the configuration, through the process of root's where this one gave up its rights. Resolves with the folder of the previous files. */
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
  const { code, output } = await askRoot({ do: 'replace configuration', files: sent, stamp }, environment);
  if (code !== 0) throw new Error(output);
  rollback.unshift(() => askRoot({ do: 'put configuration back' }, environment));
  return output === '' ? null : output;
}
