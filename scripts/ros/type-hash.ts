import { createHash } from 'node:crypto';
import type { FieldDefinition, Repetition, ServiceDefinition, StructDefinition } from './interface-text.ts';

/**
 * Hashes of ROS types, RIHS01 (REP-2011, REP-2016): the SHA-256 of the type's description, as JSON in the format of Python's json.dumps,
 * with everything that it refers to. Names, types and order of the fields count; comments and constants do not. The description is that of
 * rosidl_generator_type_description.
 */

/** Ids of type_description_interfaces/msg/FieldType. `char` and `byte` are mapped as in rosidl_adapter, to uint8 and octet. */
const TYPE_IDS: Readonly<Record<string, number>> = {
  int8: 2,
  uint8: 3,
  char: 3,
  int16: 4,
  uint16: 5,
  int32: 6,
  uint32: 7,
  int64: 8,
  uint64: 9,
  float32: 10,
  float64: 11,
  bool: 15,
  byte: 16,
  string: 17,
  wstring: 18,
};
const NESTED = 1;
/** Difference between the type ids of a bounded and an unbounded string. */
const BOUNDED_STRING = 4;
const REPEATED: Readonly<Record<Repetition, number>> = { once: 0, array: 48, bounded_sequence: 96, sequence: 144 };

export type Structs = ReadonlyMap<string, StructDefinition>;

/** `RIHS01_` and 64 hexadecimal digits. Throws if the type, or a type that it refers to, is not in `structs`. */
export function typeHash(name: string, structs: Structs): string {
  const text = `{"type_description": ${describe(structOf(name, structs))}, "referenced_type_descriptions": [${referenced(name, structs)
    .map((other) => describe(structOf(other, structs)))
    .join(', ')}]}`;
  return `RIHS01_${createHash('sha256').update(text).digest('hex')}`;
}

/**
 * The types that a service consists of: request, response, the event of service introspection, and one with all three as fields, which
 * gives the service its hash.
 */
export function structsOfService({ name, request, response }: ServiceDefinition): StructDefinition[] {
  const once = (field: string, type: string): FieldDefinition => ({
    name: field,
    type,
    repetition: 'once',
    capacity: 0,
    stringCapacity: 0,
  });
  const atMostOne = (field: string, type: string): FieldDefinition => ({
    ...once(field, type),
    repetition: 'bounded_sequence',
    capacity: 1,
  });
  const event: StructDefinition = {
    name: `${name}_Event`,
    fields: [once('info', 'service_msgs/msg/ServiceEventInfo'), atMostOne('request', request.name), atMostOne('response', response.name)],
  };
  const whole: StructDefinition = {
    name,
    fields: [once('request_message', request.name), once('response_message', response.name), once('event_message', event.name)],
  };
  return [request, response, event, whole];
}

/** Whether a field's type is another struct. */
export function isNested({ type }: FieldDefinition): boolean {
  return type.includes('/');
}

function structOf(name: string, structs: Structs): StructDefinition {
  const struct = structs.get(name);
  if (!struct) throw new Error(`no definition of ${name}`);
  return struct;
}

/** All types that a type refers to, directly or indirectly, sorted by name. */
function referenced(name: string, structs: Structs): string[] {
  const found = new Set<string>();
  const walk = (from: string): void => {
    for (const field of structOf(from, structs).fields) {
      if (!isNested(field) || found.has(field.type)) continue;
      found.add(field.type);
      walk(field.type);
    }
  };
  walk(name);
  return [...found].sort();
}

function typeId(field: FieldDefinition): number {
  const single = isNested(field) ? NESTED : TYPE_IDS[field.type];
  if (single === undefined) throw new Error(`no type id of ${field.type}`);
  return single + (field.stringCapacity > 0 ? BOUNDED_STRING : 0) + REPEATED[field.repetition];
}

function describe({ name, fields }: StructDefinition): string {
  return `{"type_name": "${name}", "fields": [${fields.map(describeField).join(', ')}]}`;
}

function describeField(field: FieldDefinition): string {
  const { name, capacity, stringCapacity, type } = field;
  const nested = isNested(field) ? type : '';
  return `{"name": "${name}", "type": {"type_id": ${typeId(field)}, "capacity": ${capacity}, "string_capacity": ${stringCapacity}, "nested_type_name": "${nested}"}}`;
}
