import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { formatConfigError, parseConfig } from './parse.ts';
import { redactSecrets } from './secrets.ts';

/** A new or changed file of the configuration folder. */
export interface ConfigFile {
  /** Path relative to the configuration folder: `edge_health_config.yaml`, `shutdown.d/10-park`. */
  readonly name: string;
  readonly content: Buffer;
  readonly executable: boolean;
}

/** Effect of a file: it is new, it equals the existing one, or it replaces the existing one. */
type ConfigFate = 'added' | 'same' | 'replaced';

export interface ReplacedConfig {
  /** The folder with the previous files; null: none was replaced. */
  readonly previous: string | null;
  /** Restores the previous files. */
  putBack(): void;
}

interface ReplaceOptions {
  /** Part of the name of the folder for the previous files. */
  readonly stamp: string;
  /** Group id of new files; null: the group of this process. */
  readonly group: number | null;
  /** Called with the result of `configDiff` before any file is changed. */
  readonly show: (diff: string) => void;
}

const NAME = /^(?:shutdown\.d\/)?[A-Za-z0-9_@][A-Za-z0-9_@.+,=~-]*$/;
const YAML = /\.ya?ml$/;
const MAX_BYTES = 16e6;
/** Mode of new files: the group of the service may read them, others may not. */
const FILE_MODE = 0o640;
const FOLDER_MODE = 0o750;
/** Maximum length of a line of the diff, because a hook may be a binary without line breaks. */
const MAX_LINE_CHARACTERS = 400;
/** Control characters except tabs and line breaks, which a terminal would interpret as commands. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters on purpose.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Why these files are refused as configuration; null: they are valid. */
function problemOf(files: readonly ConfigFile[]): string | null {
  if (files.reduce((sum, { content }) => sum + content.length, 0) > MAX_BYTES)
    return `the configuration has more than ${MAX_BYTES / 1e6} MB`;
  for (const { content, name } of files) {
    if (!NAME.test(name)) return `${JSON.stringify(name)} is not a valid name of a configuration file`;
    const parsed = YAML.test(name) ? parseConfig(content.toString(), name) : null;
    if (parsed?.ok === false) return parsed.errors.map(formatConfigError).join('\n');
  }
  return null;
}

function contentOf(file: string): Buffer | null {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export function configFate(folder: string, { content, name }: ConfigFile): ConfigFate {
  const existing = contentOf(join(folder, name));
  return existing === null ? 'added' : existing.equals(content) ? 'same' : 'replaced';
}

/** The changes in the format of `diff -u`, without secrets and control characters; empty: no change. */
export function configDiff(folder: string, files: readonly ConfigFile[]): string {
  const shown = (name: string, content: Buffer): string =>
    YAML.test(name) ? (redactSecrets(content.toString())?.text ?? content.toString()) : content.toString();
  return files
    .map(({ content, name }) => {
      const path = join(folder, name);
      const existing = contentOf(path);
      const before = existing === null ? '' : shown(name, existing);
      const after = shown(name, content);
      return before === after && existing !== null
        ? ''
        : unified(existing === null ? '/dev/null' : path, `${path} (backup)`, before, after);
    })
    .join('')
    .split('\n')
    .map((line) => (line.length > MAX_LINE_CHARACTERS ? `${line.slice(0, MAX_LINE_CHARACTERS)}...` : line))
    .join('\n')
    .replace(CONTROL, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function unified(fromName: string, toName: string, from: string, to: string): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-health-diff-')); // Only this user has access to it.
  try {
    const [one, other] = [join(folder, 'now'), join(folder, 'backup')];
    fs.writeFileSync(one, from);
    fs.writeFileSync(other, to);
    const { stdout } = spawnSync('diff', ['-u', '--label', fromName, '--label', toName, one, other], { encoding: 'utf8' });
    return stdout ?? `${toName} differs from ${fromName}; the differences are not shown because diff is not installed\n`;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/**
 * Replaces files of a configuration, each atomically; the previous files are kept in the folder `previous-<stamp>`. An existing file keeps
 * its owner and mode, except for the executable bits. If one of the files has errors or cannot be written, it restores all and throws.
 */
export function replaceConfig(folder: string, files: readonly ConfigFile[], { group, show, stamp }: ReplaceOptions): ReplacedConfig {
  const problem = problemOf(files);
  if (problem !== null) throw new Error(problem);
  show(configDiff(folder, files));
  const previous = join(folder, `previous-${stamp}`);
  const undoSteps: (() => void)[] = [];
  const putBack = (): void => {
    for (const undo of undoSteps.splice(0)) undo();
    fs.rmSync(previous, { recursive: true, force: true });
  };
  let hasPrevious = false;
  try {
    for (const file of files) {
      const target = join(folder, file.name);
      const fate = configFate(folder, file);
      if (fate === 'same') continue;
      makeFolder(dirname(target), group);
      if (fate === 'replaced') {
        const old = join(previous, file.name);
        hasPrevious = true;
        fs.mkdirSync(dirname(old), { recursive: true, mode: FOLDER_MODE });
        fs.linkSync(target, old);
        undoSteps.unshift(() => fs.renameSync(old, target));
      } else undoSteps.unshift(() => fs.rmSync(target, { force: true }));
      put(file, target, group);
    }
  } catch (error) {
    putBack();
    throw error;
  }
  return { previous: hasPrevious ? previous : null, putBack };
}

function makeFolder(folder: string, group: number | null): void {
  if (fs.existsSync(folder)) return;
  fs.mkdirSync(folder, { mode: FOLDER_MODE });
  if (group !== null) fs.chownSync(folder, 0, group);
}

function put({ content, executable }: ConfigFile, target: string, group: number | null): void {
  const existing = fs.statSync(target, { throwIfNoEntry: false });
  const readable = existing?.mode ?? FILE_MODE;
  const mode = (readable & 0o666) | (executable ? (readable & 0o444) >> 2 : 0);
  const temporary = `${target}.new`;
  fs.rmSync(temporary, { force: true });
  try {
    const fd = fs.openSync(temporary, 'wx', 0o600);
    try {
      fs.writeFileSync(fd, content);
      if (process.getuid?.() === 0) fs.fchownSync(fd, existing?.uid ?? 0, existing?.gid ?? group ?? 0);
      fs.fchmodSync(fd, mode);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(temporary, target);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  const folder = fs.openSync(dirname(target), 'r'); // Without this fsync, a power cut could undo the rename.
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
