import { type Document, isAlias, isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml';
import { secretKeys } from './describe.ts';

/** Stands in a backup for a value that is a secret. A configuration that has it is refused. */
export const REDACTED = 'REDACTED';

/** Keys that the configuration does not have, but that a file may have by mistake. */
const LOOKS_SECRET = /(?:^|_)(?:password|passwd|passphrase|secret|token|api_?key|credentials?)$/i;
/** What is shorter may be a part of other words. */
const SHORTEST_TO_SEARCH = 8;

export function isSecretKey(key: string): boolean {
  return secretKeys.includes(key) || LOOKS_SECRET.test(key.slice(key.lastIndexOf('.') + 1));
}

interface Value {
  readonly key: string;
  readonly node: Node;
  /** What it stands for; an alias for that of its anchor. */
  readonly value: unknown;
}

/** Deeper than any key; an alias may stand for what it lies in. */
const DEEPEST = 16;

/** Single values of a document, with their dotted keys. */
function valuesOf(document: Document): Value[] {
  const found: Value[] = [];
  const walk = (node: unknown, path: readonly string[]): void => {
    if (path.length > DEEPEST) return;
    const target = isAlias(node) ? node.resolve(document) : node;
    if (isMap(target)) for (const { key, value } of target.items) walk(value, [...path, isScalar(key) ? String(key.value) : '?']);
    else if (isSeq(target)) for (const [index, item] of target.items.entries()) walk(item, [...path, String(index)]);
    else if (isScalar(target)) found.push({ key: path.join('.'), node: isAlias(node) ? node : target, value: target.value });
  };
  walk(document.contents, []);
  return found;
}

function parsed(text: string): Document | null {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, logLevel: 'silent' });
  return document.errors.length > 0 ? null : document;
}

/** `with` for each value, in the text itself, so that comments and order stay. */
function replaced(text: string, values: readonly (readonly [node: Node, replacement: string])[]): string {
  let result = text;
  const byPlace = values
    .flatMap(([node, replacement]) => (node.range ? [[node.range[0], node.range[1], replacement] as const] : []))
    .sort(([a], [b]) => b - a);
  for (const [start, end, replacement] of byPlace) {
    // A block of several lines ends with the line break before the next key.
    const after = result.slice(start, end).endsWith('\n') ? '\n' : '';
    result = result.slice(0, start) + replacement + after + result.slice(end);
  }
  return result;
}

/**
 * The text of a configuration without the values of secrets, also where they stand a second time, in a comment for instance, and the keys
 * of those that were there. Null: it does not parse, so that secrets in it cannot be found.
 */
export function redactSecrets(text: string): { readonly text: string; readonly keys: readonly string[] } | null {
  const document = parsed(text);
  if (document === null) return null;
  const secrets = valuesOf(document).filter(({ key, value }) => isSecretKey(key) && value !== null && value !== undefined);
  let result = replaced(
    text,
    secrets.map(({ node }) => [node, REDACTED]),
  );
  for (const { value } of secrets) {
    if (String(value).length >= SHORTEST_TO_SEARCH) result = result.replaceAll(String(value), REDACTED);
  }
  return { text: result, keys: secrets.map(({ key }) => key) };
}

/** Puts the secrets of the present configuration back into a text without them. `missing`: keys that the present one does not have either. */
export function withSecretsOf(text: string, present: string | null): { readonly text: string; readonly missing: readonly string[] } {
  const document = parsed(text);
  const known = new Map((present === null ? [] : valuesOf(parsed(present) ?? parseDocument(''))).map(({ key, value }) => [key, value]));
  const absent = (document === null ? [] : valuesOf(document)).filter(({ key, value }) => value === REDACTED && isSecretKey(key));
  const has = ({ key }: Value): boolean => known.has(key) && known.get(key) !== null && known.get(key) !== REDACTED;
  return {
    text: replaced(
      text,
      absent.filter(has).map(({ key, node }) => [node, JSON.stringify(known.get(key))]),
    ),
    missing: absent.filter((value) => !has(value)).map(({ key }) => key),
  };
}
