import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync } from 'node:fs';
import { type ConfigError, type ParsedConfig, parseConfig } from './parse.ts';

const PACKAGE_FILE = '/etc/edge-health/edge_health_config.yaml';
/** The environment of the package's units (EnvironmentFile=). */
const UNIT_ENVIRONMENT_FILE = '/etc/default/edge-health';

/**
 * The file to use: `--config`, EDGE_HEALTH_CONFIG, EDGE_HEALTH_CONFIG as the units have it, the package's in /etc, the checkout's. A
 * file that is named is used even if it does not exist, so that the error names it.
 */
export function configPath(
  option: string | null,
  environment: NodeJS.ProcessEnv,
  checkoutFile: string,
  unitEnvironmentFile = UNIT_ENVIRONMENT_FILE,
): string {
  const named = option ?? (environment['EDGE_HEALTH_CONFIG'] || configOfUnits(unitEnvironmentFile));
  if (named) return named;
  return existsSync(PACKAGE_FILE) ? PACKAGE_FILE : checkoutFile;
}

/** EDGE_HEALTH_CONFIG of an environment file, as systemd.exec(5) reads it: the last assignment, without its quotes. */
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

const UNREADABLE = 'no permission to read it';

/** Whether this user may not read the file; the package's is for root and the group of the service. */
export function isUnreadable(loaded: ParsedConfig): boolean {
  return !loaded.ok && loaded.errors[0]?.found === UNREADABLE;
}

/** Reads and parses; a file that cannot be read is an error like any other. */
export function loadConfig(file: string): ParsedConfig {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const found = code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? UNREADABLE : code === 'EISDIR' ? 'a folder' : message;
    return refused(file, found, found === UNREADABLE ? 'run it with sudo, or as a member of the group of the file' : null);
  }
  // Decoded all the same, a path or a name would silently be another one.
  return isUtf8(bytes) ? parseConfig(bytes.toString(), file) : refused(file, 'bytes that are not UTF-8');
}

function refused(file: string, found: string, hint: string | null = null): ParsedConfig {
  const problem: ConfigError = { file, line: 0, column: 0, key: '', found, allowed: 'a readable YAML file', hint };
  return { ok: false, errors: [problem] };
}
