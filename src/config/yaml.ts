import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  YAMLParseError,
} from 'yaml';

/** 64 kB. The default file with all its comments has 16 kB. */
export const MAX_YAML_BYTES = 64 * 1024;
/** Keys, values, comments, punctuation and line breaks. The default file has 1,200. */
const MAX_TOKENS = 10_000;
/** Collections open at a time, each counted once or twice. */
const MAX_DEPTH = 64;
/** Allows aliases that repeat a section. */
const MAX_ALIASES = 50;
/** Values once each alias is replaced by what it repeats, because aliases of aliases multiply them ("billion laughs"). */
const MAX_VALUES = 10_000;

/** A text was refused before all of it was parsed. */
export class YamlLimit extends Error {
  override readonly name = 'YamlLimit';
  readonly allowed: string;

  constructor(found: string, limit: string) {
    super(`${found}; the limit is ${limit}`);
    this.allowed = `at most ${limit}`;
  }
}

export const tooLarge = (bytes: string | number): YamlLimit => new YamlLimit(`${bytes} bytes`, `${MAX_YAML_BYTES} bytes (64 kB)`);

export interface Yaml {
  /** With its syntax errors; the following members are empty if there are any. */
  readonly document: Document;
  readonly lines: LineCounter;
  /** The node that each alias repeats; null: no node with this anchor ends before the alias. */
  readonly aliases: ReadonlyMap<Alias, Node | null>;
  /** Keys that occur again in the same section. */
  readonly duplicates: readonly { readonly key: string; readonly offset: number; readonly firstOffset: number }[];
}

/**
 * Parses a YAML document in bounded time: the parser's own limits leave it quadratic in keys, anchors and aliases, and recursive. Throws
 * YamlLimit.
 */
export function parseYaml(text: string): Yaml {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_YAML_BYTES) throw tooLarge(bytes);
  const lines = new LineCounter();
  const composer = new Composer({ uniqueKeys: false, logLevel: 'error' });
  const documents = composer.compose(tokensOf(text, lines), true, text.length);
  const document = documents.next().value as Document.Parsed; // An empty text has an empty one.
  const second = documents.next();
  if (!second.done) document.errors.push(new YAMLParseError([second.value.range[0], second.value.range[1]], 'MULTIPLE_DOCS', ''));
  return { document, lines, ...(document.errors.length === 0 ? resolved(document) : { aliases: new Map(), duplicates: [] }) };
}

function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    if (count > MAX_TOKENS) throw new YamlLimit('too many keys, values, comments, punctuation marks and lines', `${MAX_TOKENS} together`);
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_DEPTH) throw new YamlLimit('sections and lists nested too deeply', `${MAX_DEPTH / 2} levels`);
  }
  yield* parser.end();
}

/** Resolves the aliases of a document, and finds its duplicate keys. */
function resolved({ contents }: Document): Pick<Yaml, 'aliases' | 'duplicates'> {
  const anchors = new Map<string, { readonly node: Node; readonly values: number }>();
  const aliases = new Map<Alias, Node | null>();
  const duplicates: { key: string; offset: number; firstOffset: number }[] = [];
  const members = (node: unknown, path: readonly string[]): number => {
    let values = 0;
    if (isSeq(node)) for (const item of node.items) values += walk(item, path);
    if (!isMap(node)) return values;
    const seen = new Map<string, number>();
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? String(key.value) : null;
      const offset = isNode(key) ? (key.range?.[0] ?? 0) : 0;
      const inner = [...path, name ?? '?'];
      const firstOffset = name === null ? undefined : seen.get(name);
      if (firstOffset !== undefined) duplicates.push({ key: inner.join('.'), offset, firstOffset });
      else if (name !== null) seen.set(name, offset);
      values += walk(key, path) + walk(value, inner);
    }
    return values;
  };
  const walk = (node: unknown, path: readonly string[]): number => {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      aliases.set(node, target?.node ?? null);
      if (aliases.size > MAX_ALIASES) throw new YamlLimit('too many aliases', `${MAX_ALIASES} aliases`);
      return target?.values ?? 1;
    }
    const values = 1 + members(node, path);
    if (values > MAX_VALUES) throw new YamlLimit('too many values, those of aliases included', `${MAX_VALUES} values`);
    if (isNode(node) && !isAlias(node) && node.anchor) anchors.set(node.anchor, { node, values });
    return values;
  };
  walk(contents, []);
  return { aliases, duplicates };
}
