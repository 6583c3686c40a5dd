import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync } from 'node:fs';
import { type ConfigError, type ParsedConfig, parseConfig } from './parse.ts';

const PACKAGE_FILE = '/etc/edge-health/edge_health_config.yaml';

/**
 * The file to use: `--config`, EDGE_HEALTH_CONFIG, the package's in /etc, the checkout's. The first two are used even if they do
 * not exist, so that the error names them.
 */
export function configPath(option: string | null, environment: NodeJS.ProcessEnv, checkoutFile: string): string {
  const named = option ?? environment['EDGE_HEALTH_CONFIG'];
  if (named) return named;
  return existsSync(PACKAGE_FILE) ? PACKAGE_FILE : checkoutFile;
}

/** Reads and parses; a file that cannot be read is an error like any other. */
export function loadConfig(file: string): ParsedConfig {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const found =
      code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? 'no permission to read it' : code === 'EISDIR' ? 'a folder' : message;
    return refused(file, found);
  }
  // Decoded all the same, a path or a name would silently be another one.
  return isUtf8(bytes) ? parseConfig(bytes.toString(), file) : refused(file, 'bytes that are not UTF-8');
}

function refused(file: string, found: string): ParsedConfig {
  const problem: ConfigError = { file, line: 0, column: 0, key: '', found, allowed: 'a readable YAML file', hint: null };
  return { ok: false, errors: [problem] };
}
