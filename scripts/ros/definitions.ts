import { globSync, readFileSync } from 'node:fs';
import { parseMessage, parseService, type ServiceDefinition, type StructDefinition } from './interface-text.ts';
import { type Structs, structsOfService } from './type-hash.ts';

/** The package that ROS users build, and the standard definitions that it depends on, with the fields that they have had since Iron. */
const OURS = 'ros2';
const STANDARD = 'scripts/ros/definitions';
/** Definitions that differ in Humble, where gids have 24 bytes. */
const HUMBLE = `${STANDARD}/humble`;

export interface Definitions {
  /** Messages, and all structs of services, including those of the services as a whole. */
  readonly structs: Structs;
  readonly humble: Structs;
  readonly services: readonly ServiceDefinition[];
}

/** Reads all definitions. The working directory must be the checkout. Throws if one is unreadable or none is found. */
export function readDefinitions(): Definitions {
  const services = [...files(`${STANDARD}/*/srv/*.srv`), ...files(`${OURS}/*/srv/*.srv`)].map(({ name, text }) => parseService(name, text));
  const messages = [...files(`${STANDARD}/*/msg/*.msg`), ...files(`${OURS}/*/msg/*.msg`)].map(({ name, text }) => parseMessage(name, text));
  const structs = byName([...messages, ...services.flatMap(structsOfService)]);
  const changed = files(`${HUMBLE}/*/msg/*.msg`).map(({ name, text }) => parseMessage(name, text));
  return { structs, humble: new Map([...structs, ...byName(changed)]), services };
}

function byName(structs: readonly StructDefinition[]): Map<string, StructDefinition> {
  return new Map(structs.map((struct) => [struct.name, struct]));
}

/** Converts `…/package/msg/Type.msg` to `package/msg/Type`. */
function files(pattern: string): { name: string; text: string }[] {
  const paths = globSync(pattern).sort();
  if (paths.length === 0) throw new Error(`no file matches ${pattern}`);
  return paths.map((path) => ({
    name: path
      .replace(/\.\w+$/, '')
      .split('/')
      .slice(-3)
      .join('/'),
    text: readFileSync(path, 'utf8'),
  }));
}
