import type { Stats } from 'node:fs';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../src/config/schema.ts';
import { redactSecrets } from '../../src/config/secrets.ts';
import { isMemberName, type LeftOut } from './manifest.ts';
import { LONGEST_NAME_BYTES } from './tar.ts';
import type { Member } from './write-archive.ts';

/** Nobody's configuration is as large; what lies there by mistake is. */
const LARGEST_CONFIG_BYTES = 16e6;
const YAML = /^config\/[^/]+\.ya?ml$/;
/** Why something is not in a backup on purpose. */
export const SECRET = 'a secret';
/** Files of a writer that is just at it, or was killed. */
const TEMPORARY = /^\.|\.(new|tmp|partial)$/;

export interface Contents {
  readonly members: readonly Member[];
  readonly leftOut: readonly LeftOut[];
  /** Of all members, as they are now. */
  readonly bytes: number;
}

/** Files whose content is a secret, by the keys that name them. */
export function secretFiles(config: Config): readonly { readonly key: string; readonly file: string }[] {
  const { backup, notify } = config.ops;
  const named: readonly (readonly [string, string | null])[] = [
    ['rest.token_file', config.rest.token_file],
    ['ops.notify.webhook.url_file', notify.webhook.url_file],
    ['ops.notify.webhook.token_file', notify.webhook.token_file],
    ['ops.notify.email.password_file', notify.email.password_file],
    ['ops.backup.s3_credentials_file', backup.s3_credentials_file],
  ];
  return named.flatMap(([key, file]) => (file === null ? [] : [{ key, file }]));
}

class Gathering {
  readonly members: Member[] = [];
  readonly leftOut: LeftOut[] = [];
  readonly #secrets: ReadonlySet<string>;
  bytes = 0;

  constructor(secrets: ReadonlySet<string>) {
    this.#secrets = secrets;
  }

  leaveOut(what: string, reason: string): void {
    this.leftOut.push({ what, reason });
  }

  /** Takes a file, unless it is none, is a secret, or cannot be in an archive. Links are followed. */
  async file(name: string, path: string, maxBytes = Number.POSITIVE_INFINITY): Promise<void> {
    let stats: Stats;
    try {
      if (this.#secrets.has(await realpath(path))) return; // Listed already.
      stats = await stat(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') this.leaveOut(path, `it cannot be read (${code})`);
      return;
    }
    if (!stats.isFile()) return;
    if (!isMemberName(name) || Buffer.byteLength(name) > LONGEST_NAME_BYTES) this.leaveOut(path, 'its name is not a plain one');
    else if (stats.size > maxBytes) this.leaveOut(path, 'it is too large for a file of the configuration');
    else {
      const content = YAML.test(name) ? await this.#withoutSecrets(name, path) : path;
      if (content === null) return;
      this.members.push({ name, content });
      this.bytes += stats.size;
    }
  }

  /** A file of the configuration, whose secrets are listed as left out; null: they cannot be found. */
  async #withoutSecrets(name: string, path: string): Promise<Buffer | null> {
    const found = redactSecrets(await readFile(path, 'utf8'));
    for (const key of found?.keys ?? []) this.leaveOut(`${key} in ${name}`, SECRET);
    if (found === null) this.leaveOut(path, 'it is not valid YAML, so that secrets in it cannot be found');
    return found && Buffer.from(found.text);
  }

  /** Takes the files of a folder; a folder that is not there has none. */
  async folder(name: string, path: string, wanted: (file: string) => boolean, maxBytes?: number): Promise<void> {
    let files: string[];
    try {
      files = (await readdir(path)).sort();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') this.leaveOut(path, `it cannot be read (${code})`);
      return;
    }
    for (const file of files) if (wanted(file) && !TEMPORARY.test(file)) await this.file(`${name}/${file}`, join(path, file), maxBytes);
  }
}

/** Everything of a backup that is a file: collected rows, alerts, logs, the record of the jobs, the configuration without its secrets. */
export async function gatherContents(config: Config, configFile: string, dataFolder: string): Promise<Contents> {
  const named = secretFiles(config);
  const real = await Promise.all(named.map(({ file }) => realpath(file).catch(() => file)));
  const found = new Gathering(new Set(real));
  for (const { file, key } of named) found.leaveOut(file, `${SECRET} (${key})`);
  for (const name of ['metrics', 'alerts', 'logs']) await found.folder(name, join(dataFolder, name), () => true);
  await found.file('ops/jobs.json', join(dataFolder, 'ops', 'jobs.json'));
  const folder = dirname(configFile);
  await found.folder('config', folder, (file) => /\.ya?ml$/.test(file), LARGEST_CONFIG_BYTES);
  const inForce = `config/${configFile.slice(folder.length + 1)}`;
  if (!found.members.some(({ name }) => name === inForce)) await found.file(inForce, configFile, LARGEST_CONFIG_BYTES);
  await found.folder('config/shutdown.d', join(folder, 'shutdown.d'), () => true, LARGEST_CONFIG_BYTES);
  const { bytes, leftOut, members } = found;
  return { members, leftOut, bytes };
}
