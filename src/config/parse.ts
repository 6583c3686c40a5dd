import * as v from 'valibot';
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { allowedAt, type ConfigIssue, describeKeys, keysAt } from './describe.ts';
import { nearest } from './nearest.ts';
import { type Config, configSchema } from './schema.ts';

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
  return `${place}: ${key}found ${error.found}; allowed: ${error.allowed}${error.hint === null ? '' : ` (${error.hint})`}`;
}

/** Our own files have a page or two; more is a mistake or an attack. */
const MAX_BYTES = 1024 * 1024;
/** Aliases may repeat a section, not multiply it. */
const MAX_ALIASES = 50;

type Path = readonly (string | number)[];

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const json = JSON.stringify(value) ?? String(value);
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
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true, uniqueKeys: true });
  if (document.errors.length > 0) {
    return { ok: false, errors: document.errors.map((error) => syntaxError(error, lines, file)) };
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
  } catch (error) {
    return whole((error as Error).message.toLowerCase(), `at most ${MAX_ALIASES} aliases`);
  }
  const place = (path: Path, atKey: boolean) => placeOf(document, lines, path, atKey);
  const result = v.safeParse(configSchema, value);
  const errors = (result.issues ?? []).map((issue) => toError(issue, file, place));
  errors.push(...crossErrors(value, file, place));
  errors.sort((a, b) => a.line - b.line || a.column - b.column);
  return errors.length === 0 && result.success ? { ok: true, config: result.output } : { ok: false, errors };
}

function syntaxError(error: { message: string; code: string; pos: [number, number] }, lines: LineCounter, file: string): ConfigError {
  const { line, col } = lines.linePos(error.pos[0]);
  const duplicate = error.code === 'DUPLICATE_KEY';
  return {
    file,
    line,
    column: col,
    key: '',
    found: duplicate ? 'the same key twice' : `YAML that does not parse: ${error.message.split('\n')[0]}`,
    allowed: duplicate ? 'each key once' : 'valid YAML',
    hint: null,
  };
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
  const key = path.join('.');
  if (issue.type === 'strict_object' && issue.expected === 'never') {
    const name = String(path.at(-1));
    const known = keysAt(path.slice(0, -1));
    const section = path.slice(0, -1).join('.');
    const close = nearest(name, known);
    const elsewhere = describeKeys().find((description) => description.key.split('.').at(-1) === name)?.key;
    return {
      file,
      ...place(path, true),
      key,
      found: 'an unknown key',
      allowed: `${section === '' ? 'the keys' : `in ${section}`} ${known.join(', ')}`,
      hint:
        close !== null ? `did you mean ${section === '' ? '' : `${section}.`}${close}?` : elsewhere ? `did you mean ${elsewhere}?` : null,
    };
  }
  return { file, ...place(path, false), key, found: shown(issue.input), allowed: allowedAt(path), hint: null };
}

/** Rules over two keys; checked even where other keys are wrong, so that everything is said at once. */
function crossErrors(value: unknown, file: string, place: Place): ConfigError[] {
  const errors: ConfigError[] = [];
  const at = (object: unknown, name: string): unknown =>
    typeof object === 'object' && object !== null ? (object as Record<string, unknown>)[name] : undefined;
  const thresholds = at(value, 'thresholds');
  for (const metric of ['cpu', 'memory', 'disk', 'temperature']) {
    const given = at(thresholds, metric);
    if (typeof given !== 'object' || given === null) continue;
    const limit = (name: string): unknown =>
      at(given, name) ?? describeKeys().find(({ key }) => key === `thresholds.${metric}.${name}`)?.default;
    const warning = limit('warning');
    const critical = limit('critical');
    if (typeof warning !== 'number' || typeof critical !== 'number' || warning < critical) continue;
    const name = at(given, 'warning') === undefined ? 'critical' : 'warning';
    errors.push({
      file,
      ...place(['thresholds', metric, name], false),
      key: `thresholds.${metric}.${name}`,
      found: `warning ${warning}, critical ${critical}`,
      allowed: 'warning below critical',
      hint: null,
    });
  }
  return errors;
}
