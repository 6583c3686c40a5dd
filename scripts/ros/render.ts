import type { Definitions } from './definitions.ts';
import type { FieldDefinition, StructDefinition } from './interface-text.ts';
import { isNested, type Structs, typeHash } from './type-hash.ts';

const HEADER = `// Generated from the .msg and .srv files of ros2/ and scripts/ros/definitions by: npm run generate
import type { Layout, MessageType, ServiceType } from './interfaces.ts';
`;
/** The root of the types whose fields differ in Humble, which the nodes of ROS 2 itself exchange. */
const HUMBLE_ROOT = 'rmw_dds_common/msg/ParticipantEntitiesInfo';

/** The messages that are built, not only decoded: these and what they contain get a TypeScript type. */
const BUILT = /^(?:edge_health_interfaces|diagnostic_msgs)\/msg\//;
/** Messages of service introspection, which is not supported. */
const INTROSPECTION = /_Event$|^service_msgs\//;

/** The text of src/ros/interfaces.generated.ts: for each type, a constant with names, hash and layout, and the type of its messages if it is built. */
export function renderInterfaces({ structs, humble, services }: Definitions): string {
  const whole = new Set(services.map(({ name }) => name));
  const names = dependenciesFirst(
    [...structs.keys()].filter((name) => !whole.has(name) && !INTROSPECTION.test(name)),
    structs,
  );
  const built = new Set(
    dependenciesFirst(
      names.filter((name) => BUILT.test(name)),
      structs,
    ),
  );
  return [
    HEADER,
    ...names.map((name) => {
      const struct = named(structs, name);
      return (built.has(name) ? `${messageType(struct)}\n` : '') + messageConstant(struct, structs);
    }),
    ...services.map(({ name }) => serviceConstant(name)),
    ...dependenciesFirst([HUMBLE_ROOT], humble).map((name) => humbleLayout(named(humble, name))),
  ].join('\n');
}

function named(structs: Structs, name: string): StructDefinition {
  return structs.get(name) as StructDefinition;
}

function dependenciesFirst(names: readonly string[], structs: Structs): string[] {
  const order = new Set<string>();
  const walk = (name: string): void => {
    for (const field of named(structs, name).fields) if (isNested(field)) walk(field.type);
    order.add(name);
  };
  for (const name of names) walk(name);
  return [...order];
}

/** `edge_health_interfaces/msg/HealthStatus` → `HealthStatus`, `SafeShutdown_Request` → `SafeShutdownRequest`. */
function typeName(name: string): string {
  return (name.split('/')[2] as string).replaceAll('_', '');
}

/** `edge_health_interfaces/msg/HealthStatus` → `HEALTH_STATUS`. */
function constantName(name: string): string {
  return typeName(name)
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .toUpperCase();
}

function ddsName(name: string): string {
  const [pkg, kind, type] = name.split('/');
  return `${pkg}::${kind}::dds_::${type}_`;
}

/** A type alias, because an interface cannot be passed as the `Message` of `encode`. */
function messageType({ name, fields }: StructDefinition): string {
  return `export type ${typeName(name)}Message = {\n${fields.map((field) => `  readonly ${field.name}: ${scriptType(field)};`).join('\n')}\n};`;
}

/** 64-bit integers become bigint, byte sequences Uint8Array. */
function scriptType(field: FieldDefinition): string {
  const { repetition, type } = field;
  const bytes = ['uint8', 'byte', 'char'].includes(type);
  if (bytes && repetition !== 'once') return 'Uint8Array';
  const single = isNested(field)
    ? `${typeName(type)}Message`
    : type === 'bool'
      ? 'boolean'
      : type === 'string'
        ? 'string'
        : type.endsWith('64') && type !== 'float64'
          ? 'bigint'
          : 'number';
  return repetition === 'once' ? single : `readonly ${single}[]`;
}

function messageConstant({ name, fields }: StructDefinition, structs: Structs): string {
  return `export const ${constantName(name)}: MessageType = {
  rosName: '${name}',
  ddsName: '${ddsName(name)}',
  typeHash: '${typeHash(name, structs)}',
${layout(fields, '')}
};
`;
}

function serviceConstant(name: string): string {
  return `export const ${constantName(name)}: ServiceType = {
  rosName: '${name}',
  ddsName: '${ddsName(name)}',
  request: ${constantName(`${name}_Request`)},
  response: ${constantName(`${name}_Response`)},
};
`;
}

function humbleLayout({ name, fields }: StructDefinition): string {
  return `/** As in ROS 2 Humble. */
export const HUMBLE_${constantName(name)}: Layout = {
${layout(fields, 'HUMBLE_')}
};
`;
}

/** Formats the layout like the formatter: a single field on one line, several on a line each. */
function layout(fields: readonly FieldDefinition[], prefix: string): string {
  const pairs = fields.map((field) => `['${field.name}', ${fieldType(field, prefix)}]`);
  return pairs.length === 1 ? `  fields: [${pairs[0]}],` : `  fields: [\n${pairs.map((pair) => `    ${pair},\n`).join('')}  ],`;
}

function fieldType(field: FieldDefinition, prefix: string): string {
  const { capacity, repetition, type } = field;
  const single = isNested(field) ? `${prefix}${constantName(type)}` : `'${type === 'byte' || type === 'char' ? 'uint8' : type}'`;
  if (repetition === 'once') return single;
  return repetition === 'array' ? `{ array: ${single}, length: ${capacity} }` : `{ sequence: ${single} }`;
}
