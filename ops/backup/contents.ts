import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { redactSecrets } from '../../src/config/secrets.ts';
import type { JobContext } from '../lib/job.ts';
import { NOT_INSTALLED, shell } from '../lib/run-program.ts';
import { TimeoutError } from '../lib/timeout.ts';
import { isMemberName, type LeftOut, MAX_FILES } from './manifest.ts';
import type { Member } from './write-archive.ts';

/** Larger than any real configuration file. A file beyond this size was put there by mistake. */
const LARGEST_CONFIG_BYTES = 16e6;
const YAML = /^config\/[^/]+\.ya?ml$/;
/** The reason for leaving something out on purpose. */
export const SECRET = 'a secret';
/** Temporary files of a writer that is running or was killed. */
const TEMPORARY = /^\.|\.(new|tmp|partial)$/;

interface Contents {
  readonly members: readonly Member[];
  readonly leftOut: readonly LeftOut[];
  /** Total size of all members at the time of collection. */
  readonly bytes: number;
}

/** Files with secret content, with the configuration key that names each. */
function secretFiles({ ops, rest }: JobContext['config']): (readonly [key: string, file: string])[] {
  const { backup, notify } = ops;
  const named = [
    ['rest.token_file', rest.token_file],
    ['ops.notify.webhook.url_file', notify.webhook.url_file],
    ['ops.notify.webhook.token_file', notify.webhook.token_file],
    ['ops.notify.email.password_file', notify.email.password_file],
    ['ops.backup.s3_credentials_file', backup.s3_credentials_file],
  ] as const;
  return named.flatMap(([key, file]) => (file === null ? [] : [[key, file] as const]));
}

/** The files of a backup: collected rows, alerts, logs, the state of the jobs, and the configuration without its secrets. */
export async function collectFiles({ config, configFile, dataFolder }: JobContext): Promise<Contents> {
  const members: Member[] = [];
  const leftOut: LeftOut[] = [];
  let bytes = 0;
  let tooMany = 0;
  const secrets = new Set<string>();
  for (const [key, file] of secretFiles(config)) {
    leftOut.push({ what: file, reason: `${SECRET} (${key})` });
    secrets.add(await realpath(file).catch(() => file));
  }
  const unreadable = (what: string, { code }: NodeJS.ErrnoException): null => {
    if (code !== 'ENOENT') leftOut.push({ what, reason: `it cannot be read (${code})` });
    return null;
  };

  /** Adds a file unless it is secret or cannot be archived. Follows links. */
  async function addFile(name: string, path: string): Promise<void> {
    const found = await Promise.all([realpath(path), stat(path)]).catch((error) => unreadable(path, error));
    if (!found || secrets.has(found[0]) || !found[1].isFile()) return; // Secrets are already listed as left out.
    const { size } = found[1];
    // Beside the database and the journal.
    if (members.length >= MAX_FILES - 2) tooMany += 1;
    else if (!isMemberName(name)) leftOut.push({ what: path, reason: 'its name is too long or has unsupported characters' });
    else if (name.startsWith('config/') && size > LARGEST_CONFIG_BYTES)
      leftOut.push({ what: path, reason: 'it is too large for a file of the configuration' });
    else {
      const content = YAML.test(name) ? await withoutSecrets(name, path) : path;
      if (content === null) return;
      members.push({ name, content });
      bytes += size;
    }
  }

  /**
   * Returns a configuration file without its secrets, which are listed as left out, or null if it does not parse:
   * then secrets cannot be found.
   */
  async function withoutSecrets(name: string, path: string): Promise<Buffer | null> {
    const redacted = redactSecrets(await readFile(path, 'utf8'));
    for (const key of redacted?.keys ?? []) leftOut.push({ what: `${key} in ${name}`, reason: SECRET });
    if (redacted === null) leftOut.push({ what: path, reason: 'it is not valid YAML or too large, so that secrets in it cannot be found' });
    return redacted && Buffer.from(redacted.text);
  }

  async function addFolder(name: string, path: string, only = /./): Promise<void> {
    const files = (await readdir(path).catch((error) => unreadable(path, error))) ?? [];
    for (const file of files.sort()) if (only.test(file) && !TEMPORARY.test(file)) await addFile(`${name}/${file}`, join(path, file));
  }

  for (const name of ['metrics', 'alerts', 'logs']) await addFolder(name, join(dataFolder, name));
  await addFile('ops/jobs.json', join(dataFolder, 'ops', 'jobs.json'));
  const folder = dirname(configFile);
  await addFolder('config', folder, /\.ya?ml$/);
  const inForce = `config/${basename(configFile)}`;
  if (!members.some(({ name }) => name === inForce)) await addFile(inForce, configFile);
  await addFolder('config/shutdown.d', join(folder, 'shutdown.d'));
  if (tooMany > 0) leftOut.push({ what: `${tooMany} more files`, reason: `a backup has at most ${MAX_FILES}; remove old ones` });
  return { members, leftOut, bytes };
}

const JOURNAL = 'journal/edge-health.log';
/** Keeps the newest lines, so that a service that logs in a loop cannot fill the disk through its backup. */
const JOURNAL_LINES = 40_000;
const JOURNAL_BYTES = 8e6;
const JOURNAL_SECONDS = 60;
const UNITS = ['edge-health', 'edge-health@*', 'edge-health-*'];

/** Reads the journal of the product's units for the last `journal_hours`, or gives the reason for leaving it out. */
export async function readJournal({ config, environment, signal }: JobContext): Promise<Pick<Contents, 'members' | 'leftOut'>> {
  const leftOut = (reason: string) => ({ members: [], leftOut: [{ what: 'the journal', reason }] });
  const { journal_hours } = config.ops.backup;
  if (journal_hours === 0) return leftOut('ops.backup.journal_hours is 0');
  const $ = shell({ environment, timeoutSeconds: JOURNAL_SECONDS, signal });
  const units = UNITS.flatMap((unit) => ['--unit', unit]);
  const since = `-${journal_hours}h`;
  try {
    const { exitCode, stderr, stdout } =
      await $`journalctl --no-pager --quiet --output=short-iso ${units} --since ${since} --lines ${JOURNAL_LINES}`;
    const [complaint = ''] = stderr.trim().split('\n');
    if (exitCode === NOT_INSTALLED) return leftOut('journalctl is not installed');
    if (exitCode !== 0) return leftOut(`journalctl failed (${exitCode ?? 'ended by a signal'}): ${complaint}`);
    if (stdout === '' && complaint !== '') return leftOut(`${complaint}; put the user into the group systemd-journal`);
    const text = Buffer.from(stdout);
    const newest = text.subarray(Math.max(0, text.length - JOURNAL_BYTES));
    const content = newest.length < text.length ? newest.subarray(newest.indexOf('\n') + 1) : text;
    return { members: [{ name: JOURNAL, content }], leftOut: [] };
  } catch (error) {
    if (error instanceof TimeoutError) return leftOut(`journalctl failed (ended by a signal): ${error.message}`);
    throw error;
  }
}
