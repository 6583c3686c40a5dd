import { access, constants } from 'node:fs/promises';
import type { Config } from '../../src/config/schema.ts';
import { runCopier } from './copy-program.ts';
import { CopyProblem, type CopyTarget } from './copy-target.ts';
import { timeOfBackup } from './names.ts';

export function isS3(target: string): boolean {
  return target.startsWith('s3://');
}

/** rclone's name for what the environment describes: no file of its own is read or written. */
const REMOTE = 'EDGEHEALTH';
/** What it may hold in memory at a time is bounded: this runs beside what the machine is there for. */
const MODEST = ['--transfers=1', '--checkers=1', '--s3-upload-concurrency=1', '--s3-chunk-size=8M', '--buffer-size=0', '--use-mmap'];
const PATIENT = ['--contimeout=20s', '--timeout=120s', '--retries=3', '--low-level-retries=3', '--stats=0'];
/** rclone's exit code for a folder that is not there, which in S3 is one without files. */
const NOT_THERE = /failed \(3\)|directory not found/;

type Settings = Pick<Config['ops']['backup'], 's3_credentials_file' | 's3_endpoint' | 's3_region'>;

/** A bucket of Amazon's or of a compatible server, reached with rclone, which compares the hash of what arrived. */
export class S3Target implements CopyTarget {
  readonly #folder: string;
  readonly #credentials: string | null;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(target: string, host: string, settings: Settings, environment: NodeJS.ProcessEnv) {
    const [bucket, ...prefix] = target
      .slice('s3://'.length)
      .split('/')
      .filter((part) => part !== '');
    if (!bucket) throw new CopyProblem('the bucket is missing: s3://bucket/prefix');
    this.#folder = [`${REMOTE}:${bucket}`, ...prefix, host].join('/');
    this.#credentials = settings.s3_credentials_file;
    this.#environment = { ...environment, ...remote(settings) };
  }

  async list(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    if (this.#credentials !== null) {
      await access(this.#credentials, constants.R_OK).catch((error: NodeJS.ErrnoException) => {
        throw new CopyProblem(`${this.#credentials} (ops.backup.s3_credentials_file) cannot be read: ${error.code}`);
      });
    }
    let text: string;
    try {
      text = await this.#rclone(['lsjson', '--files-only', '--no-modtime', '--no-mimetype', this.#folder], signal);
    } catch (error) {
      if (error instanceof CopyProblem && NOT_THERE.test(error.message)) return new Map();
      throw error;
    }
    const files = JSON.parse(text) as { Name: string; Size: number }[];
    return new Map(files.filter(({ Name }) => timeOfBackup(Name) !== null).map(({ Name, Size }) => [Name, Size]));
  }

  async put(path: string, name: string, signal: AbortSignal): Promise<void> {
    await this.#rclone(['copyto', '--s3-no-check-bucket', path, `${this.#folder}/${name}`], signal);
  }

  async remove(names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) await this.#rclone(['deletefile', `${this.#folder}/${name}`], signal);
  }

  #rclone([verb, ...given]: readonly [string, ...string[]], signal: AbortSignal): Promise<string> {
    return runCopier('rclone', [verb, ...MODEST, ...PATIENT, ...given], this.#environment, signal);
  }
}

/** The remote as variables of rclone's environment: secrets are never on a command line, where every user could see them. */
function remote({ s3_credentials_file, s3_endpoint, s3_region }: Settings): NodeJS.ProcessEnv {
  const settings: Record<string, string | null> = {
    TYPE: 's3',
    PROVIDER: s3_endpoint === null ? 'AWS' : 'Other',
    // From AWS_* variables, the file that AWS_SHARED_CREDENTIALS_FILE names, or the machine's role.
    ENV_AUTH: 'true',
    ENDPOINT: s3_endpoint,
    REGION: s3_region,
  };
  const variables = Object.entries(settings).flatMap(([key, value]) => (value === null ? [] : [[`RCLONE_CONFIG_${REMOTE}_${key}`, value]]));
  return {
    RCLONE_CONFIG: '/dev/null',
    ...Object.fromEntries(variables),
    ...(s3_credentials_file === null ? {} : { AWS_SHARED_CREDENTIALS_FILE: s3_credentials_file }),
  };
}
