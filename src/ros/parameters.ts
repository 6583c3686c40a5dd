import type { Message } from '../rtps/wire/cdr.ts';
import type { GraphOptions, RosParameter } from './graph.ts';
import {
  DESCRIBE_PARAMETERS,
  GET_PARAMETER_TYPES,
  GET_PARAMETERS,
  LIST_PARAMETERS,
  SET_PARAMETERS,
  SET_PARAMETERS_ATOMICALLY,
} from './interfaces.generated.ts';
import type { ServiceType } from './interfaces.ts';
import { nodePath } from './names.ts';

/** The options that parameter services need. */
export type ParameterSource = Pick<GraphOptions, 'names' | 'parameters'>;

export interface ParameterService {
  readonly type: ServiceType;
  readonly answer: (request: Message) => Message;
}

/** rcl_interfaces/msg/ParameterType. */
const NOT_SET = 0;
const DOUBLE = 3;
/** A response must not become many times as large as its request. As in rclcpp, a refused request gets no values. */
const MAX_NAMES = 256;
const REFUSED = {
  successful: false,
  reason: 'parameters of edge-health are read-only: change the configuration file, then: sudo systemctl reload edge-health',
};

/**
 * The parameter services of a node, by their full names; `path`: its own. They respond as those of rclcpp and rclpy do. The nodes that
 * judge have the parameters: the health monitor by the thresholds, the threshold monitor also by the delays.
 */
export function parameterServices(path: string, { names, parameters }: ParameterSource): [name: string, ParameterService][] {
  const { healthMonitor, thresholdMonitor } = names.nodes;
  const isJudging = [healthMonitor, thresholdMonitor].some((name) => nodePath(names.namespace, name) === path);
  const services = answersFrom(isJudging ? parameters : () => []);
  return Object.entries(services).map(([name, service]) => [`${path}/${name}`, service]);
}

function answersFrom(parameters: () => readonly RosParameter[]): Readonly<Record<string, ParameterService>> {
  const requested = ({ names }: Message): (RosParameter | undefined)[] => {
    const wanted = names as readonly string[];
    if (wanted.length > MAX_NAMES) return [];
    const known = new Map(parameters().map((parameter) => [parameter.name, parameter]));
    return wanted.map((name) => known.get(name));
  };
  const typeOf = (parameter: RosParameter | undefined): number => (parameter ? DOUBLE : NOT_SET);
  return {
    list_parameters: { type: LIST_PARAMETERS, answer: (request) => ({ result: listed(parameters(), request) }) },
    get_parameters: {
      type: GET_PARAMETERS,
      answer: (request) => ({ values: requested(request).map((one) => ({ type: typeOf(one), double_value: one?.value ?? 0 })) }),
    },
    get_parameter_types: { type: GET_PARAMETER_TYPES, answer: (request) => ({ types: requested(request).map(typeOf) }) },
    describe_parameters: {
      type: DESCRIBE_PARAMETERS,
      answer: (request) => ({
        descriptors: requested(request).map((one, at) => ({
          name: (request['names'] as readonly string[])[at],
          type: typeOf(one),
          description: one?.description ?? '',
          additional_constraints: one?.constraints ?? '',
          read_only: one !== undefined,
        })),
      }),
    },
    set_parameters: {
      type: SET_PARAMETERS,
      answer: ({ parameters: given }) => ({ results: Array.from(given as ArrayLike<unknown>, () => REFUSED) }),
    },
    set_parameters_atomically: { type: SET_PARAMETERS_ATOMICALLY, answer: () => ({ result: REFUSED }) },
  };
}

/** As NodeParameters::list_parameters of rclcpp: `depth` 0 is unlimited, and counts below the prefixes where there are any. */
function listed(parameters: readonly RosParameter[], { prefixes, depth }: Message): Message {
  const levels = Number(depth) || Number.POSITIVE_INFINITY;
  const wanted = prefixes as readonly string[];
  const isWithin = (name: string): boolean => name.split('.').length <= levels;
  const isListed = (name: string): boolean =>
    wanted.length === 0
      ? isWithin(name)
      : wanted.some((prefix) => name === prefix || (name.startsWith(`${prefix}.`) && isWithin(name.slice(prefix.length + 1))));
  const names = parameters.map(({ name }) => name).filter(isListed);
  return { names, prefixes: [...new Set(names.map((name) => name.slice(0, name.lastIndexOf('.'))))] };
}
