import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Installation, PACKAGE_CONFIG, PACKAGE_DATA } from '../core/files/installation.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { FileTooLarge, readRegularFileSync } from '../core/files/regular-file.ts';
import { fileError, type ParsedConfig, parseConfig } from './parse.ts';
import type { Config } from './schema.ts';
import { MAX_YAML_BYTES, tooLarge } from './yaml.ts';

const PACKAGE_FILE = `${PACKAGE_CONFIG}/edge_health_config.yaml`;
/** Environment file of the package's units (EnvironmentFile=). */
const UNIT_ENVIRONMENT_FILE = '/etc/default/edge-health';

/**
 * The configuration file, the first of: `--config`, EDGE_HEALTH_CONFIG, EDGE_HEALTH_CONFIG in the units' environment file, the package's
 * file in /etc if it exists, the checkout's file. A named file, and the package's file outside of a checkout, is returned even if it does
 * not exist, so that the error names it.
 */
export function configPath(
  option: string | null,
  environment: NodeJS.ProcessEnv = process.env,
  checkoutFile: string = fileURLToPath(PROGRAMS.config),
  unitEnvironmentFile = UNIT_ENVIRONMENT_FILE,
): string {
  const named = option ?? (environment['EDGE_HEALTH_CONFIG'] || configOfUnits(unitEnvironmentFile));
  if (named) return named;
  return existsSync(PACKAGE_FILE) || !existsSync(checkoutFile) ? PACKAGE_FILE : checkoutFile;
}

/** EDGE_HEALTH_CONFIG in an environment file, read as in systemd.exec(5): the last assignment, without quotes. */
function configOfUnits(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return null;
  }
  const [, double, single, plain] = [...text.matchAll(/^\s*EDGE_HEALTH_CONFIG=(?:"(.*)"|'(.*)'|(.*?))\s*$/gm)].at(-1) ?? [];
  return double ?? single ?? plain ?? null;
}

/**
 * The data folder: the configured one, otherwise systemd's state directory, otherwise the installation's. It does not depend on the working
 * directory, so that the units and the commands use the same folder.
 */
export function dataPath(
  { storage }: Config,
  configFile: string,
  environment: NodeJS.ProcessEnv,
  { dataFolder, folder }: Pick<Installation, 'dataFolder' | 'folder'>,
): string {
  const state = environment['STATE_DIRECTORY']?.split(':')[0];
  const base = resolve(configFile).startsWith(`${PACKAGE_CONFIG}/`) ? PACKAGE_DATA : state || folder;
  return storage.path === null ? resolve(state || dataFolder) : resolve(base, storage.path);
}

const ALLOWED = 'a readable YAML file';
const UNREADABLE = 'permission denied';

/** Whether this user has no permission to read the file. Only root and the group of the service may read the package's file. */
export function isUnreadable(loaded: ParsedConfig): boolean {
  return !loaded.ok && loaded.errors[0]?.found === UNREADABLE;
}

/** Reads and parses a configuration file. A file that cannot be read results in an error like any other. */
export function loadConfig(file: string): ParsedConfig {
  let bytes: Buffer;
  try {
    bytes = readRegularFileSync(file, MAX_YAML_BYTES);
  } catch (error) {
    if (error instanceof FileTooLarge) {
      const { allowed, message } = tooLarge(error.size ?? `more than ${MAX_YAML_BYTES}`);
      return fileError(file, message, allowed);
    }
    const { code, message } = error as NodeJS.ErrnoException;
    const found = code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? UNREADABLE : message;
    return fileError(file, found, ALLOWED, found === UNREADABLE ? 'run it with sudo, or as a member of the group of the file' : null);
  }
  // Decoding invalid UTF-8 would change a path or a name without an error.
  return isUtf8(bytes) ? parseConfig(bytes.toString(), file) : fileError(file, 'not UTF-8', ALLOWED);
}
