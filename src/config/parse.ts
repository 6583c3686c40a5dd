import * as v from 'valibot';
import { type Document, isMap, isNode, isScalar } from 'yaml';
import { MAX_NODE_NAME } from '../core/node-name.ts';
import { printable, withoutUrlPaths } from '../core/text.ts';
import { allowedAt, type ConfigIssue, describeKeys, isOffAt, isSecretAt, keysAt } from './describe.ts';
import { type Config, configSchema, DEFAULT_CONFIG } from './schema.ts';
import { isSecretKey, REDACTED } from './secrets.ts';
import { parseYaml, type Yaml, YamlLimit } from './yaml.ts';

/** An error in a configuration file. Lines and columns count from 1; they are 0 for an error of the whole file. */
export interface ConfigError {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Dotted; empty for the file as a whole. */
  readonly key: string;
  readonly found: string;
  readonly allowed: string;
  readonly hint: string | null;
}

export type ParsedConfig = { readonly ok: true; readonly config: Config } | { readonly ok: false; readonly errors: readonly ConfigError[] };

/** Formats an error on one line, in the style of compilers: `file:line:column: key: found …; allowed: …`. */
export function formatConfigError(error: ConfigError): string {
  const location = error.line > 0 ? `${error.file}:${error.line}:${error.column}` : error.file;
  const hint = error.hint === null ? '' : ` (${error.hint})`;
  if (error.line === 0 && error.key === '') return printable(`${location}: ${error.found}${hint}`); // The file itself.
  const key = error.key === '' ? '' : `${error.key}: `;
  return printable(`${location}: ${key}found ${error.found}; allowed: ${error.allowed}${hint}`);
}

type Path = readonly (string | number)[];

/** A value for an error message. For secret keys, and for the sections that contain them, only the type of the value is shown. */
function shownAt(path: Path, value: unknown): string {
  if (!isSecretAt(path) || value === undefined || value === null) return shown(value);
  return Array.isArray(value)
    ? 'a list'
    : typeof value === 'object'
      ? 'a section'
      : typeof value === 'string'
        ? 'a text'
        : `a ${typeof value}`;
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'number') return String(value); // JSON has neither NaN nor infinity.
  const json = JSON.stringify(value);
  return json.length > 60 ? `${json.slice(0, 57)}...` : json;
}

/** The result for a file that is refused as a whole. */
export function fileError(file: string, found: string, allowed: string, hint: string | null = null): ParsedConfig {
  return { ok: false, errors: [{ file, line: 0, column: 0, key: '', found, allowed, hint }] };
}

/** Creates the error of the value at a path or, with `atKey`, of the key itself. */
type ErrorAt = (path: Path, found: string, allowed: string, hint?: string | null, atKey?: boolean) => ConfigError;

/** Parses and validates a configuration; returns all errors at once. No content of the text causes an exception. */
export function parseConfig(text: string, file: string): ParsedConfig {
  if (text.includes('\0')) return fileError(file, 'a binary file', 'YAML text');
  let yaml: Yaml;
  try {
    yaml = parseYaml(text);
  } catch (error) {
    if (error instanceof YamlLimit) return fileError(file, error.message, error.allowed);
    throw error;
  }
  const { aliases, document, lines } = yaml;
  const errorAtOffset = (offset: number, found: string, allowed: string, hint: string | null = null, key = ''): ConfigError => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col, key, found, allowed, hint };
  };
  const errorAt: ErrorAt = (path, found, allowed, hint = null, atKey = false) =>
    errorAtOffset(offsetOf(document, path, atKey), found, allowed, hint, path.join('.'));
  const broken = document.errors
    .slice(0, MAX_SYNTAX_ERRORS)
    .map(({ code, message, pos: [offset] }) =>
      code === 'MULTIPLE_DOCS'
        ? errorAtOffset(offset, 'a second document', 'one document')
        : errorAtOffset(offset, `invalid YAML: ${message.split('\n')[0]}`, 'valid YAML'),
    );
  if (broken.length > 0) return refused(broken);
  const unresolved = [...aliases]
    .filter(([, node]) => node === null)
    .map(([{ range, source }]) =>
      errorAtOffset(range?.[0] ?? 0, `*${source}, but no complete &${source} before it`, 'an alias of an anchor'),
    );
  if (unresolved.length > 0) return refused(unresolved);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: -1 }) ?? {}; // The aliases were counted by parseYaml.
  } catch (error) {
    return fileError(file, `invalid YAML: ${(error as Error).message}`, 'valid YAML'); // A merge key of YAML 1.1 whose value is no section.
  }
  const duplicates = yaml.duplicates.slice(0, MAX_ERRORS).map(({ firstOffset, key, offset }) => {
    const hint = `it is already at line ${lines.linePos(firstOffset).line}; change it there`;
    return errorAtOffset(offset, 'the same key twice', 'each key once', hint, key);
  });
  const result = v.safeParse(configSchema, value);
  const errors = [
    ...duplicates,
    ...sectionErrors(value, errorAt),
    // Unknown keys are reported by sectionErrors, because valibot reports only the first of them.
    ...(result.issues ?? [])
      .filter(({ type }) => type !== 'strict_object')
      .slice(0, MAX_ERRORS)
      .map((issue) => toError(issue, errorAt)),
    ...redactedErrors(value, errorAt),
    ...crossErrors(value, errorAt),
  ];
  const once = new Map(errors.map((error) => [formatConfigError(error), error]));
  const sorted = [...once.values()].sort((a, b) => a.line - b.line || a.column - b.column);
  return sorted.length === 0 && result.success ? { ok: true, config: result.output } : refused(sorted);
}

/** Removes the paths of URLs from the errors, because a secret URL may have been entered under the wrong key. */
function refused(errors: readonly ConfigError[]): ParsedConfig {
  return { ok: false, errors: errors.map((error) => ({ ...error, key: withoutUrlPaths(error.key), found: withoutUrlPaths(error.found) })) };
}

/** A single mistake can cause errors in all following lines. */
const MAX_SYNTAX_ERRORS = 20;
/** Of one kind. Finding the position of an error takes time. */
const MAX_ERRORS = 100;

/** Errors of values that should be sections, and of unknown keys. */
function sectionErrors(value: unknown, errorAt: ErrorAt): ConfigError[] {
  const errors: ConfigError[] = [];
  const walk = (section: unknown, path: readonly string[]): void => {
    const known = keysAt(path);
    // A section may be empty. The values of keys that are not sections are validated by valibot.
    if (known.length === 0 || section === undefined || section === null || isOffAt(path, section)) return;
    if (typeof section !== 'object' || Object.getPrototypeOf(section) !== Object.prototype) {
      errors.push(errorAt(path, shownAt(path, section), allowedAt(path)));
      return;
    }
    for (const [name, inner] of Object.entries(section)) {
      if (errors.length >= MAX_ERRORS) return;
      if (known.includes(name)) walk(inner, [...path, name]);
      else errors.push(unknownKey([...path, name], errorAt));
    }
  };
  walk(value, []);
  return errors;
}

function unknownKey(path: readonly string[], errorAt: ErrorAt): ConfigError {
  const name = path.at(-1) as string;
  const known = keysAt(path.slice(0, -1));
  const section = path.slice(0, -1).join('.');
  const close = nearest(name, known);
  const meant = close === null ? findSimilarPath(path) : [...path.slice(0, -1), close].join('.');
  const allowed = `${section === '' ? 'the keys' : `in ${section}`} ${known.join(', ')}`;
  return errorAt(path, 'an unknown key', allowed, meant === null ? null : `did you mean ${meant}?`, true);
}

/** Paths of all keys and sections. */
const PATHS = describeKeys().flatMap(({ key }) => key.split('.').map((_, index, parts) => parts.slice(0, index + 1)));
const SECRET_PATHS = PATHS.filter((path) => isSecretKey(path.join('.')));
const NAMES = [...new Set(PATHS.map((parts) => parts.at(-1) as string))];

/** Of the keys and sections with the same or a similar name, the one that shares most sections with the path; null: there is none. */
function findSimilarPath(path: readonly string[]): string | null {
  const name = nearest(path.at(-1) as string, NAMES);
  const shared = (parts: readonly string[]): number => parts.filter((part) => path.includes(part)).length;
  const [best] = PATHS.filter((parts) => parts.at(-1) === name).sort((a, b) => shared(b) - shared(a));
  return best?.join('.') ?? null;
}

/** The offset of the value at a path or, with `atKey`, of its key; 0 if it has none. */
function offsetOf(document: Document, path: Path, atKey: boolean): number {
  if (atKey) {
    const parent = document.getIn(path.slice(0, -1), true) ?? document.contents;
    if (!isMap(parent)) return 0;
    const key = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(path.at(-1)))?.key;
    return isNode(key) ? (key.range?.[0] ?? 0) : 0;
  }
  // A key without a value has no node; the position of its section is returned instead.
  for (let depth = path.length; depth >= 0; depth -= 1) {
    const node = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

function toError(issue: ConfigIssue, errorAt: ErrorAt): ConfigError {
  const path = (issue.path ?? []).map((part) => part.key as string | number);
  // The message of a raw check has details that the allowed values lack.
  return errorAt(path, shownAt(path, issue.input), allowedAt(path), issue.type === 'raw_check' ? issue.message : null);
}

/** Errors for secrets that a backup omitted. */
function redactedErrors(value: unknown, errorAt: ErrorAt): ConfigError[] {
  const redacted = SECRET_PATHS.filter((path) => path.reduce<unknown>(member, value) === REDACTED);
  return redacted.map((path) => errorAt(path, shown(REDACTED), 'the secret value, which backups omit'));
}

function member(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

/** Errors of rules that involve two keys. They are checked even if other keys are invalid, so that all errors are reported at once. */
function crossErrors(value: unknown, errorAt: ErrorAt): ConfigError[] {
  const errors: ConfigError[] = [];
  const webhook = ['ops', 'notify', 'webhook'].reduce(member, value);
  if (typeof member(webhook, 'url') === 'string' && typeof member(webhook, 'url_file') === 'string')
    errors.push(errorAt(['ops', 'notify', 'webhook', 'url_file'], 'url as well', 'url or url_file, not both'));
  const thresholds = member(value, 'thresholds');
  for (const metric of ['cpu', 'memory', 'disk', 'temperature']) {
    const given = member(thresholds, metric);
    if (typeof given !== 'object' || given === null) continue;
    const limit = (name: string): unknown =>
      member(given, name) ?? describeKeys().find(({ key }) => key === `thresholds.${metric}.${name}`)?.default;
    const warning = limit('warning');
    const critical = limit('critical');
    if (typeof warning !== 'number' || typeof critical !== 'number' || warning < critical) continue;
    const name = member(given, 'warning') === undefined ? 'critical' : 'warning';
    const text = (name: string, value: number): string => `${name} ${value}${member(given, name) === undefined ? ' (the default)' : ''}`;
    const found = `${text('warning', warning)}, ${text('critical', critical)}`;
    errors.push(errorAt(['thresholds', metric, name], found, 'warning below critical'));
  }
  const name = member(value, 'node_name') ?? DEFAULT_CONFIG.node_name;
  const namespace = member(member(value, 'ros'), 'namespace');
  if (typeof name !== 'string' || typeof namespace !== 'string') return errors;
  const whole = `${namespace.replace(/^\//, '')}/${name}`;
  if (whole.length > MAX_NODE_NAME && [name, namespace].every((part) => part.length <= MAX_NODE_NAME)) {
    const allowed = `at most ${MAX_NODE_NAME} in ros.namespace, / and node_name together`;
    errors.push(errorAt(['ros', 'namespace'], `${whole.length} characters in ${shown(whole)}`, allowed));
  }
  return errors;
}

/** Edits (insert, delete, replace a character) from one word to another: the Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** The known word closest to a misspelled one; null if none is close. */
export function nearest(word: string, known: readonly string[]): string | null {
  if (word.length > 64) return null;
  let best: string | null = null;
  let fewest = (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3))) + 1;
  for (const candidate of known) {
    if (Math.abs(word.length - candidate.length) >= fewest) continue;
    const edits = distance(word.toLowerCase(), candidate.toLowerCase());
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best ?? completed(word, known);
}

/** Minimum length of a word that is also matched as a prefix, because an abbreviation takes more edits than a typo. */
const MIN_PREFIX_LENGTH = 3;

function completed(word: string, known: readonly string[]): string | null {
  if (word.length < MIN_PREFIX_LENGTH) return null;
  const [shortest = null] = known.filter((candidate) => candidate.startsWith(word.toLowerCase())).sort((a, b) => a.length - b.length);
  return shortest;
}
