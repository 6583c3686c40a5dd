import * as v from 'valibot';
import { type Document, isMap, isNode, isPair, isScalar, LineCounter, parseDocument, visit, type YAMLError } from 'yaml';
import { MAX_NODE_NAME } from '../core/node-name.ts';
import { printable, withoutUrlPaths } from '../core/text.ts';
import { allowedAt, type ConfigIssue, describeKeys, isSecretAt, keysAt } from './describe.ts';
import { nearest } from './nearest.ts';
import { type Config, configSchema, DEFAULT_CONFIG } from './schema.ts';
import { isSecretKey, REDACTED } from './secrets.ts';

/** One thing wrong with a configuration file. Lines and columns count from 1; 0 where there is no place. */
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

/** `file:line:column: key: found …, allowed …`, one line, as compilers have it. */
export function formatConfigError(error: ConfigError): string {
  const place = error.line > 0 ? `${error.file}:${error.line}:${error.column}` : error.file;
  const key = error.key === '' ? '' : `${error.key}: `;
  return printable(`${place}: ${key}found ${error.found}; allowed: ${error.allowed}${error.hint === null ? '' : ` (${error.hint})`}`);
}

/** Our own files have a page or two; more is a mistake or an attack. */
const MAX_BYTES = 1024 * 1024;
/** Aliases may repeat a section, not multiply it. */
const MAX_ALIASES = 50;

type Path = readonly (string | number)[];

/** At secret keys, and at sections that should have them, only of what kind a value is. */
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
  let json: string;
  try {
    json = JSON.stringify(value);
  } catch {
    return 'something that contains itself'; // An alias of its own anchor.
  }
  return json.length > 60 ? `${json.slice(0, 57)}...` : json;
}

/** Parses and validates; every error at once. Never throws for what the text contains. */
export function parseConfig(text: string, file: string): ParsedConfig {
  const whole = (found: string, allowed: string): ParsedConfig => ({
    ok: false,
    errors: [{ file, line: 0, column: 0, key: '', found, allowed, hint: null }],
  });
  if (text.length > MAX_BYTES) return whole(`${text.length} characters`, `at most ${MAX_BYTES}`);
  if (text.includes('\0')) return whole('a binary file', 'YAML text');
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true, uniqueKeys: true, logLevel: 'error' });
  const at = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const broken = document.errors
    .filter(({ code }) => code !== 'DUPLICATE_KEY')
    .map((error) => ({ file, ...at(error.pos[0]), ...syntaxError(error) }));
  if (broken.length > 0) return refused(broken.slice(0, MAX_SYNTAX_ERRORS));
  const unresolved = unresolvedAliases(document).map(({ source, offset }) => ({ file, ...at(offset), ...noSuchAnchor(source) }));
  if (unresolved.length > 0) return refused(unresolved);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
  } catch (error) {
    return whole((error as Error).message.toLowerCase(), `at most ${MAX_ALIASES} aliases`);
  }
  const place = (path: Path, atKey: boolean) => placeOf(document, lines, path, atKey);
  const result = v.safeParse(configSchema, value);
  const errors = [
    ...document.errors.map(({ pos }) => ({ file, ...at(pos[0]), ...duplicateKey(keyAt(document, pos[0])) })),
    ...sectionErrors(value, file, place),
    // Sections were looked at above: of unknown keys valibot tells the first alone.
    ...(result.issues ?? []).filter(({ type }) => type !== 'strict_object').map((issue) => toError(issue, file, place)),
    ...redactedErrors(value, file, place),
    ...crossErrors(value, file, place),
  ];
  const once = new Map(errors.map((error) => [formatConfigError(error), error]));
  const sorted = [...once.values()].sort((a, b) => a.line - b.line || a.column - b.column);
  return sorted.length === 0 && result.success ? { ok: true, config: result.output } : refused(sorted);
}

/** An address that stands in the wrong place, or is not quoted, is quoted by an error all the same. */
function refused(errors: readonly ConfigError[]): ParsedConfig {
  return { ok: false, errors: errors.map((error) => ({ ...error, key: withoutUrlPaths(error.key), found: withoutUrlPaths(error.found) })) };
}

/** One mistake can make the parser stumble over everything after it. */
const MAX_SYNTAX_ERRORS = 20;

type Finding = Pick<ConfigError, 'key' | 'found' | 'allowed' | 'hint'>;

function syntaxError({ code, message }: YAMLError): Finding {
  if (code === 'MULTIPLE_DOCS') return { key: '', found: 'a second document', allowed: 'one document', hint: null };
  return { key: '', found: `YAML that does not parse: ${message.split('\n')[0]}`, allowed: 'valid YAML', hint: null };
}

function duplicateKey(key: string): Finding {
  return { key, found: 'the same key twice', allowed: 'each key once', hint: null };
}

function noSuchAnchor(source: string): Finding {
  return { key: '', found: `*${source}, but no &${source} before it`, allowed: 'an alias of an anchor', hint: null };
}

function unresolvedAliases(document: Document): { source: string; offset: number }[] {
  const anchors = new Set<string>();
  const found: { source: string; offset: number }[] = [];
  visit(document, {
    Value: (_, { anchor }) => {
      if (anchor) anchors.add(anchor);
    },
    Alias: (_, { source, range }) => {
      if (!anchors.has(source)) found.push({ source, offset: range?.[0] ?? 0 });
    },
  });
  return found;
}

/** The dotted key at a place of the text. */
function keyAt(document: Document, offset: number): string {
  let key = '';
  visit(document, {
    Pair: (_, pair, ancestors) => {
      if (!isNode(pair.key) || pair.key.range?.[0] !== offset) return;
      key = [...ancestors.filter(isPair), pair].map((part) => String(part.key)).join('.');
      return visit.BREAK;
    },
  });
  return key;
}

/** What is no section where one belongs, and every unknown key. */
function sectionErrors(value: unknown, file: string, place: Place): ConfigError[] {
  const errors: ConfigError[] = [];
  const walk = (section: unknown, path: readonly string[]): void => {
    const known = keysAt(path);
    // A section may be left empty; which keys are no sections valibot judges.
    if (known.length === 0 || section === undefined || section === null) return;
    if (typeof section !== 'object' || Object.getPrototypeOf(section) !== Object.prototype) {
      errors.push({
        file,
        ...place(path, false),
        key: path.join('.'),
        found: shownAt(path, section),
        allowed: allowedAt(path),
        hint: null,
      });
      return;
    }
    for (const [name, inner] of Object.entries(section)) {
      if (known.includes(name)) walk(inner, [...path, name]);
      else errors.push({ file, ...place([...path, name], true), ...unknownKey([...path, name]) });
    }
  };
  walk(value, []);
  return errors;
}

function unknownKey(path: readonly string[]): Finding {
  const name = path.at(-1) as string;
  const known = keysAt(path.slice(0, -1));
  const section = path.slice(0, -1).join('.');
  const close = nearest(name, known);
  const meant = close === null ? elsewhere(path) : [...path.slice(0, -1), close].join('.');
  return {
    key: path.join('.'),
    found: 'an unknown key',
    allowed: `${section === '' ? 'the keys' : `in ${section}`} ${known.join(', ')}`,
    hint: meant === null ? null : `did you mean ${meant}?`,
  };
}

/** Of every key and section. */
const PATHS = describeKeys().flatMap(({ key }) => key.split('.').map((_, index, parts) => parts.slice(0, index + 1)));
const SECRET_PATHS = PATHS.filter((path) => isSecretKey(path.join('.')));
const NAMES = [...new Set(PATHS.map((parts) => parts.at(-1) as string))];

/** The key or section of that name, or of one like it, that shares most with the path; null: there is none. */
function elsewhere(path: readonly string[]): string | null {
  const name = nearest(path.at(-1) as string, NAMES);
  const shared = (parts: readonly string[]): number => parts.filter((part) => path.includes(part)).length;
  const [best] = PATHS.filter((parts) => parts.at(-1) === name).sort((a, b) => shared(b) - shared(a));
  return best?.join('.') ?? null;
}

type Place = (path: Path, atKey: boolean) => { line: number; column: number };

function placeOf(document: Document, lines: LineCounter, path: Path, atKey: boolean): { line: number; column: number } {
  let offset: number | undefined;
  if (atKey) {
    const parent = document.getIn(path.slice(0, -1), true) ?? document.contents;
    if (isMap(parent)) {
      const key = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(path.at(-1)))?.key;
      if (isNode(key)) offset = key.range?.[0];
    }
  } else {
    // A key without a value has no node of its own: its section's place then.
    for (let depth = path.length; depth >= 0 && offset === undefined; depth -= 1) {
      const node = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
      if (isNode(node)) offset = node.range?.[0];
    }
  }
  if (offset === undefined) return { line: 1, column: 1 };
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

function toError(issue: ConfigIssue, file: string, place: Place): ConfigError {
  const path = (issue.path ?? []).map((part) => part.key as string | number);
  // Only such a check says more than what is allowed.
  const hint = issue.type === 'raw_check' ? issue.message : null;
  return { file, ...place(path, false), key: path.join('.'), found: shownAt(path, issue.input), allowed: allowedAt(path), hint };
}

/** Secrets that a backup left out. */
function redactedErrors(value: unknown, file: string, place: Place): ConfigError[] {
  return SECRET_PATHS.filter((path) => path.reduce<unknown>(member, value) === REDACTED).map((path) => ({
    ...{ file, ...place(path, false), key: path.join('.'), found: shown(REDACTED) },
    ...{ allowed: 'the value itself, which backups leave out', hint: null },
  }));
}

function member(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

/** Rules over two keys; checked even where other keys are wrong, so that everything is said at once. */
function crossErrors(value: unknown, file: string, place: Place): ConfigError[] {
  const errors: ConfigError[] = [];
  const webhook = ['ops', 'notify', 'webhook'].reduce(member, value);
  if (typeof member(webhook, 'url') === 'string' && typeof member(webhook, 'url_file') === 'string') {
    const key = 'ops.notify.webhook.url_file';
    errors.push({ file, ...place(key.split('.'), false), key, found: 'url as well', allowed: 'url or url_file, not both', hint: null });
  }
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
    errors.push({
      file,
      ...place(['thresholds', metric, name], false),
      key: `thresholds.${metric}.${name}`,
      found: `warning ${warning}, critical ${critical}`,
      allowed: 'warning below critical',
      hint: null,
    });
  }
  const name = member(value, 'node_name') ?? DEFAULT_CONFIG.node_name;
  const namespace = member(member(value, 'ros'), 'namespace');
  if (typeof name !== 'string' || typeof namespace !== 'string') return errors;
  const whole = `${namespace.replace(/^\//, '')}/${name}`;
  if (whole.length > MAX_NODE_NAME && [name, namespace].every((part) => part.length <= MAX_NODE_NAME))
    errors.push({
      file,
      ...place(['ros', 'namespace'], false),
      key: 'ros.namespace',
      found: `${whole.length} characters in ${shown(whole)}`,
      allowed: `at most ${MAX_NODE_NAME} in ros.namespace, / and node_name together`,
      hint: null,
    });
  return errors;
}
