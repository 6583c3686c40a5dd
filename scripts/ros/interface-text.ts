/** Reads the text of ROS interface definitions (.msg, .srv) into fields. */

/** Whether a field is a single value, an array, or a sequence of up to `capacity` elements (0 if unbounded). */
export type Repetition = 'once' | 'array' | 'bounded_sequence' | 'sequence';

export interface FieldDefinition {
  readonly name: string;
  /** A primitive type as named in .msg files, or `package/msg/Type`. */
  readonly type: string;
  readonly repetition: Repetition;
  /** Number of elements of an array, or the maximum of a bounded sequence; 0 otherwise. */
  readonly capacity: number;
  /** Maximum characters of a bounded string; 0 if unbounded or not a string. */
  readonly stringCapacity: number;
}

export interface StructDefinition {
  /** `package/msg/Type`, `package/srv/Type_Request`. */
  readonly name: string;
  readonly fields: readonly FieldDefinition[];
}

export interface ServiceDefinition {
  readonly name: string;
  readonly request: StructDefinition;
  readonly response: StructDefinition;
}

export const PRIMITIVES = [
  ...['bool', 'byte', 'char', 'float32', 'float64', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'],
  ...['string', 'wstring'],
] as const;

const FIELD =
  /^(?<type>[A-Za-z][A-Za-z0-9_/]*)(?:<=(?<characters>\d+))?(?<brackets>\[(?<bounded><=)?(?<count>\d*)\])?\s+(?<name>[a-z][a-z0-9_]*)$/;
const CONSTANT = /^[a-z0-9]+(?:<=\d+)?\s+[A-Z][A-Z0-9_]*\s*=/;

/**
 * The fields of a .msg file. Comments and constants are not part of a type. Default values are rejected, because no definition uses them.
 */
export function parseMessage(name: string, text: string): StructDefinition {
  const fields: FieldDefinition[] = [];
  for (const [index, whole] of text.split('\n').entries()) {
    const line = whole.replace(/#.*/, '').trim();
    if (line === '' || CONSTANT.test(line)) continue;
    const groups = FIELD.exec(line)?.groups;
    if (!groups) throw new Error(`${name}, line ${index + 1}: cannot read "${line}"`);
    fields.push(toField(name, groups));
  }
  // rosidl puts a placeholder into an empty message; no definition is empty.
  if (fields.length === 0) throw new Error(`${name}: no field`);
  return { name, fields };
}

/** Parses both halves of a .srv file, above and below the dashes. */
export function parseService(name: string, text: string): ServiceDefinition {
  const halves = text.split(/^---[ \t]*$/m);
  if (halves.length !== 2) throw new Error(`${name}: found ${halves.length - 1} lines of dashes, one is needed`);
  const [request = '', response = ''] = halves;
  return { name, request: parseMessage(`${name}_Request`, request), response: parseMessage(`${name}_Response`, response) };
}

function toField(owner: string, groups: Readonly<Record<string, string | undefined>>): FieldDefinition {
  const { type = '', characters, brackets, bounded, count, name = '' } = groups;
  const repetition = brackets === undefined ? 'once' : bounded ? 'bounded_sequence' : count === '' ? 'sequence' : 'array';
  return { name, type: resolve(owner, type), repetition, capacity: Number(count ?? 0), stringCapacity: Number(characters ?? 0) };
}

/** `Type` belongs to the owner's package; `package/Type` is short for `package/msg/Type`. */
function resolve(owner: string, type: string): string {
  if ((PRIMITIVES as readonly string[]).includes(type)) return type;
  const parts = type.split('/');
  if (parts.length === 1) return `${owner.split('/')[0]}/msg/${type}`;
  return parts.length === 2 ? `${parts[0]}/msg/${parts[1]}` : type;
}
