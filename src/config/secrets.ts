import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml';
import { secretKeys } from './describe.ts';
import { parseYaml, type Yaml, YamlLimit } from './yaml.ts';

/** Placeholder for a secret value in a backup. A configuration that contains it is refused. */
export const REDACTED = 'REDACTED';

/** Names of secrets that are not configuration keys, but that a file may contain by mistake. */
const LOOKS_SECRET = /(?:^|_)(?:password|passwd|passphrase|secret|token|api_?key|credentials?)$/i;
/** Characters. A shorter secret is not searched for in the rest of the text, because it may be part of other words. */
const MIN_SEARCH_LENGTH = 8;

export function isSecretKey(key: string): boolean {
  return secretKeys.includes(key) || LOOKS_SECRET.test(key.slice(key.lastIndexOf('.') + 1));
}

interface Value {
  readonly key: string;
  readonly node: Node;
  /** The value; for an alias, that of its anchor. */
  readonly value: unknown;
}

/** The scalar values of a text with their dotted keys; null if it cannot be parsed. */
function valuesOf(text: string): Value[] | null {
  let yaml: Yaml;
  try {
    yaml = parseYaml(text);
  } catch (error) {
    if (error instanceof YamlLimit) return null;
    throw error;
  }
  if (yaml.document.errors.length > 0) return null;
  const found: Value[] = [];
  const walk = (node: unknown, path: readonly string[]): void => {
    const target = isAlias(node) ? yaml.aliases.get(node) : node;
    if (isMap(target)) for (const { key, value } of target.items) walk(value, [...path, isScalar(key) ? String(key.value) : '?']);
    else if (isSeq(target)) for (const [index, item] of target.items.entries()) walk(item, [...path, String(index)]);
    else if (isScalar(target)) found.push({ key: path.join('.'), node: isAlias(node) ? node : target, value: target.value });
  };
  walk(yaml.document.contents, []);
  return found;
}

/** Replaces values in the text itself, so that comments and the order of the keys are preserved. */
function replaced(text: string, values: readonly (readonly [node: Node, replacement: string])[]): string {
  let result = text;
  const fromEnd = values
    .flatMap(([node, replacement]) => (node.range ? [[node.range[0], node.range[1], replacement] as const] : []))
    .sort(([a], [b]) => b - a);
  for (const [start, end, replacement] of fromEnd) {
    // A block of several lines ends with the line break before the next key.
    const after = result.slice(start, end).endsWith('\n') ? '\n' : '';
    result = result.slice(0, start) + replacement + after + result.slice(end);
  }
  return result;
}

/**
 * Replaces the values of secrets in the text of a configuration, including further occurrences such as in a comment. Returns the text and
 * the keys of the secrets; null if the text cannot be parsed, since the secrets in it are then unknown.
 */
export function redactSecrets(text: string): { readonly text: string; readonly keys: readonly string[] } | null {
  const values = valuesOf(text);
  if (values === null) return null;
  const secrets = values.filter(({ key, value }) => isSecretKey(key) && value !== null && value !== undefined);
  let result = replaced(
    text,
    secrets.map(({ node }) => [node, REDACTED]),
  );
  for (const { value } of secrets) {
    if (String(value).length >= MIN_SEARCH_LENGTH) result = result.replaceAll(String(value), REDACTED);
  }
  return { text: result, keys: secrets.map(({ key }) => key) };
}

/** Inserts the secrets of the current configuration into a redacted text. `missing`: keys that the current configuration lacks as well. */
export function withSecretsOf(text: string, current: string | null): { readonly text: string; readonly missing: readonly string[] } {
  const known = new Map((current === null ? [] : (valuesOf(current) ?? [])).map(({ key, value }) => [key, value]));
  const redacted = (valuesOf(text) ?? []).filter(({ key, value }) => value === REDACTED && isSecretKey(key));
  const has = ({ key }: Value): boolean => known.has(key) && known.get(key) !== null && known.get(key) !== REDACTED;
  return {
    text: replaced(
      text,
      redacted.filter(has).map(({ key, node }) => [node, JSON.stringify(known.get(key))]),
    ),
    missing: redacted.filter((value) => !has(value)).map(({ key }) => key),
  };
}
