import type * as v from 'valibot';
import { isOff } from './keys.ts';
import { configSchema } from './schema.ts';

/** Description of a configuration key for documentation and error messages. */
export interface KeyDescription {
  readonly key: string;
  readonly description: string;
  /** The allowed values in words: "a number from 0 to 100". */
  readonly allowed: string;
  readonly unit: string | null;
  readonly reload: boolean;
  readonly default: unknown;
  readonly defaultIs: string | null;
  readonly example: string | null;
  /** Whether the value is itself a secret. */
  readonly secret: boolean;
}

/** The members of a valibot schema that are read here; valibot's schemas are plain objects. */
interface SchemaNode {
  readonly type: string;
  readonly wrapped?: SchemaNode;
  readonly getter?: (value: unknown) => SchemaNode;
  readonly default?: unknown;
  readonly entries?: Readonly<Record<string, SchemaNode>>;
  readonly item?: SchemaNode;
  readonly options?: readonly unknown[];
  readonly pipe?: readonly SchemaNode[];
  readonly requirement?: unknown;
  readonly message?: unknown;
  readonly metadata?: { description?: string; unit?: string; reload?: boolean; defaultIs?: string; example?: string; secret?: boolean };
}

/** `canBeOff`: it is a section, and the value `off` may be in its place (`threshold` in keys.ts). */
function unwrap(node: SchemaNode): { node: SchemaNode; fallback: unknown; canBeOff: boolean } {
  let fallback: unknown;
  let inner = node;
  while (inner.wrapped) {
    if (inner.type === 'optional' || inner.type === 'nullish') fallback = inner.default;
    inner = inner.wrapped;
  }
  return inner.getter ? { node: inner.getter({}), fallback, canBeOff: true } : { node: inner, fallback, canBeOff: false };
}

function allowedFor(node: SchemaNode): string {
  const steps = (node.pipe ?? []).flatMap((step) => (step.pipe ? [...step.pipe] : [step]));
  const find = (type: string): unknown => steps.find((step) => step.type === type)?.requirement;
  if (node.type === 'picklist') return `one of ${(node.options ?? []).join(', ')}`;
  if (node.type === 'boolean') return 'true or false';
  if (node.type === 'array') {
    const minLength = find('min_length');
    const item = allowedFor(unwrap(node.item as SchemaNode).node);
    return `a list of ${item.replace(/^one of /, 'any of ').replace(/^text$/, 'texts')}${minLength ? `; at least ${minLength}` : ''}`;
  }
  if (node.type === 'number') {
    const noun = steps.some((step) => step.type === 'integer') ? 'a whole number' : 'a number';
    const above = find('gt_value');
    const low = above === undefined ? `from ${find('min_value')}` : `above ${above}`;
    return `${noun} ${low} up to ${find('max_value')}`.replace(/from (\S+) up to/, 'from $1 to');
  }
  const pattern = steps.find((step) => step.type === 'regex');
  if (typeof pattern?.message === 'string') return pattern.message;
  return 'text';
}

/** Every key that is not a section, in the order of the schema. */
export function describeKeys(): KeyDescription[] {
  const found: KeyDescription[] = [];
  const walk = (raw: SchemaNode, path: readonly string[]): void => {
    const { node, fallback } = unwrap(raw);
    if (node.entries) {
      for (const [name, entry] of Object.entries(node.entries)) walk(entry, [...path, name]);
      return;
    }
    const steps = (node.pipe ?? []).flatMap((step) => (step.pipe ? [...step.pipe] : [step]));
    const metadata = steps.find((step) => step.type === 'metadata')?.metadata ?? {};
    found.push({
      key: path.join('.'),
      description: metadata.description ?? '',
      allowed: allowedFor(node),
      unit: metadata.unit ?? null,
      reload: metadata.reload ?? false,
      default: fallback,
      defaultIs: metadata.defaultIs ?? null,
      example: metadata.example ?? null,
      secret: metadata.secret ?? false,
    });
  };
  walk(configSchema as unknown as SchemaNode, []);
  return found;
}

/** Dotted paths of the keys whose values are secret. */
export const secretKeys: readonly string[] = describeKeys()
  .filter(({ secret }) => secret)
  .map(({ key }) => key);

/** Whether the value at a path is secret, contains a secret value, or is part of one. */
export function isSecretAt(path: readonly (string | number)[]): boolean {
  const prefix = `${path.join('.')}.`;
  return secretKeys.some((key) => prefix.startsWith(`${key}.`) || `${key}.`.startsWith(prefix));
}

function nodeAt(path: readonly (string | number)[]): { node: SchemaNode; canBeOff: boolean } | null {
  let found = unwrap(configSchema as unknown as SchemaNode);
  for (const part of path) {
    const next = typeof part === 'number' ? found.node.item : found.node.entries?.[part];
    if (!next) return null;
    found = unwrap(next);
  }
  return found;
}

/** The allowed values at a path of the document, in words; the path may be that of a section. */
export function allowedAt(path: readonly (string | number)[]): string {
  const found = nodeAt(path);
  if (!found) return 'nothing';
  const { canBeOff, node } = found;
  if (!node.entries) return allowedFor(node);
  return `a section with the keys ${Object.keys(node.entries).join(', ')}${canBeOff ? ', or off' : ''}`;
}

/** The names of the keys in the section at a path. */
export function keysAt(path: readonly (string | number)[]): string[] {
  return Object.keys(nodeAt(path)?.node.entries ?? {});
}

/** Whether a value takes the place of a section. */
export function isOffAt(path: readonly (string | number)[], value: unknown): boolean {
  return isOff(value) && nodeAt(path)?.canBeOff === true;
}

export type ConfigIssue = v.InferIssue<typeof configSchema>;
