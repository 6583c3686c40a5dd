import type { LogLevel } from '../core/ports.ts';
import { isName, isNamespace, isNodeName, type RemapRule } from '../ros/names.ts';
import { UsageError } from './arguments.ts';

/** Result of parsing `--ros-args`, which `ros2 run` and `ros2 launch` append to a program's own arguments. */
export interface RosArguments {
  /** In the given order; the first matching rule applies. */
  readonly rules: readonly RemapRule[];
  readonly logLevel: LogLevel | null;
  /** SROS2 enclave; null: the one of the environment. */
  readonly enclave: string | null;
  /** One line for the log for each accepted argument that has no effect. */
  readonly notes: readonly string[];
}

export interface SplitArguments {
  /** The program's own arguments. */
  readonly own: readonly string[];
  /** Null: there was no `--ros-args`. */
  readonly ros: RosArguments | null;
}

interface Collected {
  readonly rules: RemapRule[];
  readonly notes: string[];
  logLevel: LogLevel | null;
  enclave: string | null;
}

const SEE = 'see: https://docs.ros.org/en/jazzy/How-To-Guides/Node-arguments.html';
/** Log levels by their names in rcl. */
const LOG_LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warning',
  error: 'error',
  fatal: 'error',
};
const NO_PARAMETERS = 'edge-health has no ROS parameters; use its configuration file (--config)';

/** Handlers of the options with a value; the names are those of rcl's arguments.h. */
const OPTIONS: Readonly<Record<string, (value: string, into: Collected) => void>> = {
  '--remap': (value, { rules }) => rules.push(remapRule(value)),
  '--param': (value, { notes }) => notes.push(`--param ${value} is not used: ${NO_PARAMETERS}`),
  '--params-file': (value, { notes }) => notes.push(`--params-file ${value} is not used: ${NO_PARAMETERS}`),
  '--log-level': setLogLevel,
  '--enclave': (value, into) => {
    into.enclave = value;
  },
  '--log-config-file': (value, { notes }) => notes.push(`--log-config-file ${value} is not used: the log goes to standard error`),
  '--log-file-name': (value, { notes }) => notes.push(`--log-file-name ${value} is not used: the log goes to standard error`),
};
const SHORT: Readonly<Record<string, string>> = { '-r': '--remap', '-p': '--param', '-e': '--enclave' };
/** Options for rcl's own log, which is not used. */
const SWITCH = /^--(?:enable|disable)-(?:stdout|rosout|external-lib)-logs$/;

/**
 * Removes every group `--ros-args … [--]` from the arguments and parses it. Throws UsageError for arguments that ROS 2 would refuse,
 * and for rules that this program does not support.
 */
export function splitRosArguments(argv: readonly string[]): SplitArguments {
  const own: string[] = [];
  const into: Collected = { rules: [], notes: [], logLevel: null, enclave: null };
  let found = false;
  for (let i = 0; i < argv.length; i += 1) {
    const word = argv[i] as string;
    if (word !== '--ros-args') {
      own.push(word);
      continue;
    }
    found = true;
    i = parseGroup(argv, i + 1, into);
  }
  return { own, ros: found ? into : null };
}

/** Parses one group; returns the index of its end, which is `--` or the end of the arguments. */
function parseGroup(argv: readonly string[], start: number, into: Collected): number {
  let i = start;
  for (; i < argv.length && argv[i] !== '--'; i += 1) {
    const word = argv[i] as string;
    if (word === '--ros-args' || SWITCH.test(word)) continue;
    const name = SHORT[word] ?? word;
    const apply = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
    if (!apply) throw new UsageError(`unknown ROS argument "${word}"; allowed: ${Object.keys(OPTIONS).join(', ')}; ${SEE}`);
    i += 1;
    const value = argv[i];
    if (value === undefined || value === '' || value === '--') throw new UsageError(`the ROS argument ${word} needs a value; ${SEE}`);
    apply(value, into);
  }
  return i;
}

function setLogLevel(value: string, into: Collected): void {
  const [logger, named] = value.includes(':=') ? value.split(':=') : [null, value];
  const level = LOG_LEVELS[(named as string).toLowerCase()];
  if (!level) throw new UsageError(`--log-level is "${value}"; allowed: ${Object.keys(LOG_LEVELS).join(', ')}`);
  if (logger === null) into.logLevel = level;
  else into.notes.push(`--log-level ${value} is not used: there are no separate loggers; give only the level`);
}

/** `[node:][rostopic://|rosservice://]from:=to`, `[node:]__node:=name`, `__ns:=/namespace`. */
function remapRule(text: string): RemapRule {
  const bad = (why: string): UsageError => new UsageError(`the remapping "${text}" ${why}; ${SEE}`);
  const sides = text.split(':=');
  const [left = '', to = ''] = sides;
  if (sides.length !== 2 || left === '' || to === '') throw bad('is not of the form from:=to');
  const { node, kind, from } =
    /^(?:(?<node>[^:/~]+):(?!\/\/))?(?:(?<kind>rostopic|rosservice):\/\/)?(?<from>[^:]*)$/.exec(left)?.groups ?? {};
  if (from === undefined || (node !== undefined && !isNodeName(node))) throw bad('has no name before := that can be parsed');
  if (from === '__ns') {
    if (node !== undefined) throw bad('is for a single node, but all nodes of edge-health share a namespace: __ns:=/name');
    if (!isNamespace(to)) throw bad('has no namespace after := (such as /robot1)');
    return { kind: 'namespace', to };
  }
  if (from === '__node' || from === '__name') {
    if (!isNodeName(to)) throw bad('has no node name after := (letters, digits and _, not beginning with a digit)');
    return { kind: 'node', node: node ?? null, to };
  }
  if (!isName(from)) throw bad('has no topic or service before := (such as /health_status, health_status or ~/health_status)');
  if (!isName(to)) throw bad('has no topic or service after := (such as /robot1/health_status)');
  return { kind: kind === 'rostopic' ? 'topic' : kind === 'rosservice' ? 'service' : 'any', node: node ?? null, from, to };
}
