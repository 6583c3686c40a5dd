import type { Message } from '../rtps/wire/cdr.ts';
import {
  DESCRIBE_PARAMETERS,
  GET_PARAMETER_TYPES,
  GET_PARAMETERS,
  LIST_PARAMETERS,
  SET_PARAMETERS,
  SET_PARAMETERS_ATOMICALLY,
} from './interfaces.generated.ts';
import type { ServiceType } from './interfaces.ts';

const REFUSED = { successful: false, reason: 'edge-health has no ROS parameters; see its configuration file' };

export interface ParameterService {
  readonly type: ServiceType;
  readonly answer: (request: Message) => Message;
}

/** The parameter services of a node without parameters, by name: they respond as rclcpp does for parameters that were not declared. */
export const PARAMETER_SERVICES: Readonly<Record<string, ParameterService>> = {
  list_parameters: { type: LIST_PARAMETERS, answer: () => ({ result: { names: [], prefixes: [] } }) },
  get_parameters: { type: GET_PARAMETERS, answer: () => ({ values: [] }) },
  get_parameter_types: { type: GET_PARAMETER_TYPES, answer: () => ({ types: [] }) },
  describe_parameters: { type: DESCRIBE_PARAMETERS, answer: () => ({ descriptors: [] }) },
  set_parameters: {
    type: SET_PARAMETERS,
    answer: ({ parameters }) => ({ results: Array.from(parameters as ArrayLike<unknown>, () => REFUSED) }),
  },
  set_parameters_atomically: { type: SET_PARAMETERS_ATOMICALLY, answer: () => ({ result: REFUSED }) },
};
