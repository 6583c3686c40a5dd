import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { formatConfigError, parseConfig } from './parse.ts';
import { redactSecrets } from './secrets.ts';

/** A file that is to take its place in the folder of the configuration. */
export interface ConfigFile {
  /** Below that folder: `edge_health_config.yaml`, `shutdown.d/10-park`. */
  readonly name: string;
  readonly content: Buffer;
  readonly executable: boolean;
}

/** What becomes of it: it is not there yet; it is the same; or another of its name is there, which gives way. */
export type ConfigFate = 'added' | 'same' | 'replaced';

export interface ReplacedConfig {
  /** The folder of the previous files; null: none was replaced. */
  readonly previous: string | null;
  /** Undoes all of it. */
  putBack(): void;
}

export interface ReplaceOptions {
  /** Part of the name of the folder for the previous files. */
  readonly stamp: string;
  /** Of files that are new; null: this process's own. */
  readonly group: number | null;
  /** Receives what will change, as `configDiff` has it, before anything does. */
  readonly show: (diff: string) => void;
}

const NAME = /^(?:shutdown\.d\/)?[A-Za-z0-9_@][A-Za-z0-9_@.+,=~-]*$/;
const YAML = /\.ya?ml$/;
const MOST_BYTES = 16e6;
/** Of new files: their group is the service's, and others may not read them. */
const FILE_MODE = 0o640;
const FOLDER_MODE = 0o750;
/** Of a difference: a hook may be a program without line breaks. */
const LONGEST_LINE = 400;
/** Control characters but tabs and line breaks: what a terminal would take for commands. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Why these files must not become the configuration; null: they may. */
function problemOf(files: readonly ConfigFile[]): string | null {
  if (files.reduce((sum, { content }) => sum + content.length, 0) > MOST_BYTES) return `more than ${MOST_BYTES / 1e6} MB of configuration`;
  for (const { content, name } of files) {
    if (!NAME.test(name)) return `${JSON.stringify(name)} is no name of a configuration file`;
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
  const there = contentOf(join(folder, name));
  return there === null ? 'added' : there.equals(content) ? 'same' : 'replaced';
}

/** What would change, as `diff -u` shows it, without secrets and without what a terminal would obey; empty: nothing. */
export function configDiff(folder: string, files: readonly ConfigFile[]): string {
  const shown = (name: string, content: Buffer): string =>
    YAML.test(name) ? (redactSecrets(content.toString())?.text ?? content.toString()) : content.toString();
  return files
    .map(({ content, name }) => {
      const path = join(folder, name);
      const there = contentOf(path);
      const now = there === null ? '' : shown(name, there);
      const then = shown(name, content);
      return now === then && there !== null ? '' : unified(there === null ? '/dev/null' : path, `${path} (backup)`, now, then);
    })
    .join('')
    .split('\n')
    .map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}...` : line))
    .join('\n')
    .replace(CONTROL, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

function unified(fromName: string, toName: string, from: string, to: string): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-health-diff-')); // Which only this user may enter.
  try {
    const [one, other] = [join(folder, 'now'), join(folder, 'backup')];
    fs.writeFileSync(one, from);
    fs.writeFileSync(other, to);
    const { stdout } = spawnSync('diff', ['-u', '--label', fromName, '--label', toName, one, other], { encoding: 'utf8' });
    return stdout ?? `${toName} differs from ${fromName}; there is no program diff to show how\n`;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/**
 * Replaces files of a configuration, each in one step; the previous ones are kept in `previous-<stamp>` beside them. A file that is there
 * keeps its owner and mode, but for whether it can be executed. Throws, with everything as before, also where one of them has errors.
 */
export function replaceConfig(folder: string, files: readonly ConfigFile[], { group, show, stamp }: ReplaceOptions): ReplacedConfig {
  const problem = problemOf(files);
  if (problem !== null) throw new Error(problem);
  show(configDiff(folder, files));
  const previous = join(folder, `previous-${stamp}`);
  const undone: (() => void)[] = [];
  const putBack = (): void => {
    for (const undo of undone.splice(0)) undo();
    fs.rmSync(previous, { recursive: true, force: true });
  };
  let hasPrevious = false;
  try {
    for (const file of files) {
      const place = join(folder, file.name);
      const fate = configFate(folder, file);
      if (fate === 'same') continue;
      makeFolder(dirname(place), group);
      if (fate === 'replaced') {
        const old = join(previous, file.name);
        hasPrevious = true;
        fs.mkdirSync(dirname(old), { recursive: true, mode: FOLDER_MODE });
        fs.linkSync(place, old);
        undone.unshift(() => fs.renameSync(old, place));
      } else undone.unshift(() => fs.rmSync(place, { force: true }));
      put(file, place, group);
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

function put({ content, executable }: ConfigFile, place: string, group: number | null): void {
  const there = fs.statSync(place, { throwIfNoEntry: false });
  const readable = there?.mode ?? FILE_MODE;
  const mode = (readable & 0o666) | (executable ? (readable & 0o444) >> 2 : 0);
  const temporary = `${place}.new`;
  fs.rmSync(temporary, { force: true });
  try {
    const fd = fs.openSync(temporary, 'wx', 0o600);
    try {
      fs.writeFileSync(fd, content);
      if (process.getuid?.() === 0) fs.fchownSync(fd, there?.uid ?? 0, there?.gid ?? group ?? 0);
      fs.fchmodSync(fd, mode);
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
    fs.renameSync(temporary, place);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  const folder = fs.openSync(dirname(place), 'r'); // Its names outlast a power cut.
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}
