// Generated from the .msg and .srv files of ros2/ and scripts/ros/definitions by: npm run generate
import type { Layout, MessageType, ServiceType } from './interfaces.ts';

export interface TimeMessage {
  readonly sec: number;
  readonly nanosec: number;
}
export const TIME: MessageType = {
  rosName: 'builtin_interfaces/msg/Time',
  ddsName: 'builtin_interfaces::msg::dds_::Time_',
  typeHash: 'RIHS01_b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197',
  fields: [
    ['sec', 'int32'],
    ['nanosec', 'uint32'],
  ],
};

export interface HeaderMessage {
  readonly stamp: TimeMessage;
  readonly frame_id: string;
}
export const HEADER: MessageType = {
  rosName: 'std_msgs/msg/Header',
  ddsName: 'std_msgs::msg::dds_::Header_',
  typeHash: 'RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01',
  fields: [
    ['stamp', TIME],
    ['frame_id', 'string'],
  ],
};

export interface KeyValueMessage {
  readonly key: string;
  readonly value: string;
}
export const KEY_VALUE: MessageType = {
  rosName: 'diagnostic_msgs/msg/KeyValue',
  ddsName: 'diagnostic_msgs::msg::dds_::KeyValue_',
  typeHash: 'RIHS01_d68081eaa540288c5440753baecef0c4e16e81a5f78ad68902ded5100413bb42',
  fields: [
    ['key', 'string'],
    ['value', 'string'],
  ],
};

export interface DiagnosticStatusMessage {
  readonly level: number;
  readonly name: string;
  readonly message: string;
  readonly hardware_id: string;
  readonly values: readonly KeyValueMessage[];
}
export const DIAGNOSTIC_STATUS: MessageType = {
  rosName: 'diagnostic_msgs/msg/DiagnosticStatus',
  ddsName: 'diagnostic_msgs::msg::dds_::DiagnosticStatus_',
  typeHash: 'RIHS01_b0e3e692ea2d54a8af2f4ef1930e81556a2db55216b771f8a7d2724ed47bf0e4',
  fields: [
    ['level', 'uint8'],
    ['name', 'string'],
    ['message', 'string'],
    ['hardware_id', 'string'],
    ['values', { sequence: KEY_VALUE }],
  ],
};

export interface DiagnosticArrayMessage {
  readonly header: HeaderMessage;
  readonly status: readonly DiagnosticStatusMessage[];
}
export const DIAGNOSTIC_ARRAY: MessageType = {
  rosName: 'diagnostic_msgs/msg/DiagnosticArray',
  ddsName: 'diagnostic_msgs::msg::dds_::DiagnosticArray_',
  typeHash: 'RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e',
  fields: [
    ['header', HEADER],
    ['status', { sequence: DIAGNOSTIC_STATUS }],
  ],
};

export interface FloatingPointRangeMessage {
  readonly from_value: number;
  readonly to_value: number;
  readonly step: number;
}
export const FLOATING_POINT_RANGE: MessageType = {
  rosName: 'rcl_interfaces/msg/FloatingPointRange',
  ddsName: 'rcl_interfaces::msg::dds_::FloatingPointRange_',
  typeHash: 'RIHS01_e6af23a23c177fee5f3075c8b1e435162a9b63c863d78c06017460b49684262d',
  fields: [
    ['from_value', 'float64'],
    ['to_value', 'float64'],
    ['step', 'float64'],
  ],
};

export interface IntegerRangeMessage {
  readonly from_value: bigint;
  readonly to_value: bigint;
  readonly step: bigint;
}
export const INTEGER_RANGE: MessageType = {
  rosName: 'rcl_interfaces/msg/IntegerRange',
  ddsName: 'rcl_interfaces::msg::dds_::IntegerRange_',
  typeHash: 'RIHS01_f7b7fdc0f65f07702e099218e13288c3963bcb9345bde78b560e6cd19800fc5a',
  fields: [
    ['from_value', 'int64'],
    ['to_value', 'int64'],
    ['step', 'uint64'],
  ],
};

export interface ListParametersResultMessage {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
}
export const LIST_PARAMETERS_RESULT: MessageType = {
  rosName: 'rcl_interfaces/msg/ListParametersResult',
  ddsName: 'rcl_interfaces::msg::dds_::ListParametersResult_',
  typeHash: 'RIHS01_237ae3428413dcbcfb452b510c42355f3a2b021dc091afa3e18526d57022f1cd',
  fields: [
    ['names', { sequence: 'string' }],
    ['prefixes', { sequence: 'string' }],
  ],
};

export interface ParameterValueMessage {
  readonly type: number;
  readonly bool_value: boolean;
  readonly integer_value: bigint;
  readonly double_value: number;
  readonly string_value: string;
  readonly byte_array_value: Uint8Array;
  readonly bool_array_value: readonly boolean[];
  readonly integer_array_value: readonly bigint[];
  readonly double_array_value: readonly number[];
  readonly string_array_value: readonly string[];
}
export const PARAMETER_VALUE: MessageType = {
  rosName: 'rcl_interfaces/msg/ParameterValue',
  ddsName: 'rcl_interfaces::msg::dds_::ParameterValue_',
  typeHash: 'RIHS01_115fc089a387e23c7ecd3525c9189c379109119d6ab82e8dfbde0fdf6a7f9b68',
  fields: [
    ['type', 'uint8'],
    ['bool_value', 'bool'],
    ['integer_value', 'int64'],
    ['double_value', 'float64'],
    ['string_value', 'string'],
    ['byte_array_value', { sequence: 'uint8' }],
    ['bool_array_value', { sequence: 'bool' }],
    ['integer_array_value', { sequence: 'int64' }],
    ['double_array_value', { sequence: 'float64' }],
    ['string_array_value', { sequence: 'string' }],
  ],
};

export interface ParameterMessage {
  readonly name: string;
  readonly value: ParameterValueMessage;
}
export const PARAMETER: MessageType = {
  rosName: 'rcl_interfaces/msg/Parameter',
  ddsName: 'rcl_interfaces::msg::dds_::Parameter_',
  typeHash: 'RIHS01_ddfe6442cffc462317adb5c92536a7b6dd55858c5c3e1e328165a6b73c2831af',
  fields: [
    ['name', 'string'],
    ['value', PARAMETER_VALUE],
  ],
};

export interface ParameterDescriptorMessage {
  readonly name: string;
  readonly type: number;
  readonly description: string;
  readonly additional_constraints: string;
  readonly read_only: boolean;
  readonly dynamic_typing: boolean;
  readonly floating_point_range: readonly FloatingPointRangeMessage[];
  readonly integer_range: readonly IntegerRangeMessage[];
}
export const PARAMETER_DESCRIPTOR: MessageType = {
  rosName: 'rcl_interfaces/msg/ParameterDescriptor',
  ddsName: 'rcl_interfaces::msg::dds_::ParameterDescriptor_',
  typeHash: 'RIHS01_52175dbfda6c51153101d33d2a9da05743f66f02d5ab2ca9ec4709b46b73d704',
  fields: [
    ['name', 'string'],
    ['type', 'uint8'],
    ['description', 'string'],
    ['additional_constraints', 'string'],
    ['read_only', 'bool'],
    ['dynamic_typing', 'bool'],
    ['floating_point_range', { sequence: FLOATING_POINT_RANGE }],
    ['integer_range', { sequence: INTEGER_RANGE }],
  ],
};

export interface SetParametersResultMessage {
  readonly successful: boolean;
  readonly reason: string;
}
export const SET_PARAMETERS_RESULT: MessageType = {
  rosName: 'rcl_interfaces/msg/SetParametersResult',
  ddsName: 'rcl_interfaces::msg::dds_::SetParametersResult_',
  typeHash: 'RIHS01_cfcc0fb0371ee5159b403960ef4300f8f9d2f1fd6117c8666b7f9654d528a9b1',
  fields: [
    ['successful', 'bool'],
    ['reason', 'string'],
  ],
};

export interface GidMessage {
  readonly data: Uint8Array;
}
export const GID: MessageType = {
  rosName: 'rmw_dds_common/msg/Gid',
  ddsName: 'rmw_dds_common::msg::dds_::Gid_',
  typeHash: 'RIHS01_ab6f21cfbb0a6dbb837161e1110c2051a2850ed9f9c53944d7115d9bcebedf71',
  fields: [['data', { array: 'uint8', length: 16 }]],
};

export interface NodeEntitiesInfoMessage {
  readonly node_namespace: string;
  readonly node_name: string;
  readonly reader_gid_seq: readonly GidMessage[];
  readonly writer_gid_seq: readonly GidMessage[];
}
export const NODE_ENTITIES_INFO: MessageType = {
  rosName: 'rmw_dds_common/msg/NodeEntitiesInfo',
  ddsName: 'rmw_dds_common::msg::dds_::NodeEntitiesInfo_',
  typeHash: 'RIHS01_8ffef65ee2d088c63b1e8fcd31e800ba9fc8dbe0ee15ca60d1676de5218087a7',
  fields: [
    ['node_namespace', 'string'],
    ['node_name', 'string'],
    ['reader_gid_seq', { sequence: GID }],
    ['writer_gid_seq', { sequence: GID }],
  ],
};

export interface ParticipantEntitiesInfoMessage {
  readonly gid: GidMessage;
  readonly node_entities_info_seq: readonly NodeEntitiesInfoMessage[];
}
export const PARTICIPANT_ENTITIES_INFO: MessageType = {
  rosName: 'rmw_dds_common/msg/ParticipantEntitiesInfo',
  ddsName: 'rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_',
  typeHash: 'RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e',
  fields: [
    ['gid', GID],
    ['node_entities_info_seq', { sequence: NODE_ENTITIES_INFO }],
  ],
};

export interface ServiceEventInfoMessage {
  readonly event_type: number;
  readonly stamp: TimeMessage;
  readonly client_gid: Uint8Array;
  readonly sequence_number: bigint;
}
export const SERVICE_EVENT_INFO: MessageType = {
  rosName: 'service_msgs/msg/ServiceEventInfo',
  ddsName: 'service_msgs::msg::dds_::ServiceEventInfo_',
  typeHash: 'RIHS01_41bcbbe07a75c9b52bc96bfd5c24d7f0fc0a08c0cb7921b3373c5732345a6f45',
  fields: [
    ['event_type', 'uint8'],
    ['stamp', TIME],
    ['client_gid', { array: 'uint8', length: 16 }],
    ['sequence_number', 'int64'],
  ],
};

export interface AlertMessage {
  readonly alert_id: string;
  readonly severity: string;
  readonly metric: string;
  readonly value: number;
  readonly threshold: number;
  readonly timestamp: string;
  readonly resolved: boolean;
}
export const ALERT: MessageType = {
  rosName: 'edge_health_interfaces/msg/Alert',
  ddsName: 'edge_health_interfaces::msg::dds_::Alert_',
  typeHash: 'RIHS01_e8e2ff57cba5b8ef8260a5438e31aed8fa51ac4517a327d40282213dc7d9abf4',
  fields: [
    ['alert_id', 'string'],
    ['severity', 'string'],
    ['metric', 'string'],
    ['value', 'float64'],
    ['threshold', 'float64'],
    ['timestamp', 'string'],
    ['resolved', 'bool'],
  ],
};

export interface HealthStatusMessage {
  readonly cpu_percent: number;
  readonly memory_percent: number;
  readonly disk_percent: number;
  readonly temperature: number;
  readonly status: string;
  readonly node_name: string;
  readonly timestamp: string;
}
export const HEALTH_STATUS: MessageType = {
  rosName: 'edge_health_interfaces/msg/HealthStatus',
  ddsName: 'edge_health_interfaces::msg::dds_::HealthStatus_',
  typeHash: 'RIHS01_e85e23ad0982519d007664ecfc82d3df76436d258b2e3c93033322f67fc04fdf',
  fields: [
    ['cpu_percent', 'float64'],
    ['memory_percent', 'float64'],
    ['disk_percent', 'float64'],
    ['temperature', 'float64'],
    ['status', 'string'],
    ['node_name', 'string'],
    ['timestamp', 'string'],
  ],
};

export interface ShutdownStatusMessage {
  readonly request_id: string;
  readonly state: string;
  readonly step: string;
  readonly reason: string;
  readonly requested_by: string;
  readonly action: string;
  readonly seconds_left: number;
  readonly message: string;
  readonly timestamp: string;
}
export const SHUTDOWN_STATUS: MessageType = {
  rosName: 'edge_health_interfaces/msg/ShutdownStatus',
  ddsName: 'edge_health_interfaces::msg::dds_::ShutdownStatus_',
  typeHash: 'RIHS01_635ed48167d2437ab5d88363750e750b9d5ad1b289f0f778bef84a12bc49c4cd',
  fields: [
    ['request_id', 'string'],
    ['state', 'string'],
    ['step', 'string'],
    ['reason', 'string'],
    ['requested_by', 'string'],
    ['action', 'string'],
    ['seconds_left', 'float64'],
    ['message', 'string'],
    ['timestamp', 'string'],
  ],
};

export interface DescribeParametersRequestMessage {
  readonly names: readonly string[];
}
export const DESCRIBE_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_Request_',
  typeHash: 'RIHS01_05dd1c2bc87dec2627105c8070d6f9725c781a4f2ab852975bf105462b82b644',
  fields: [['names', { sequence: 'string' }]],
};

export interface DescribeParametersResponseMessage {
  readonly descriptors: readonly ParameterDescriptorMessage[];
}
export const DESCRIBE_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_Response_',
  typeHash: 'RIHS01_ad6747319613c6131589e062e095b469a46cc764f7d0f12a001a49e6cd893995',
  fields: [['descriptors', { sequence: PARAMETER_DESCRIPTOR }]],
};

export interface DescribeParametersEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly DescribeParametersRequestMessage[];
  readonly response: readonly DescribeParametersResponseMessage[];
}
export const DESCRIBE_PARAMETERS_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters_Event',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_Event_',
  typeHash: 'RIHS01_3deba64c035093033c690184834441551a53128ea2539f71f2596fbc4ed9de43',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: DESCRIBE_PARAMETERS_REQUEST }],
    ['response', { sequence: DESCRIBE_PARAMETERS_RESPONSE }],
  ],
};

export interface GetParameterTypesRequestMessage {
  readonly names: readonly string[];
}
export const GET_PARAMETER_TYPES_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes_Request',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_Request_',
  typeHash: 'RIHS01_87d7ec5ef545d4daa289d500025d31fb2437bc8b8365ca367161c4dac4be33fd',
  fields: [['names', { sequence: 'string' }]],
};

export interface GetParameterTypesResponseMessage {
  readonly types: Uint8Array;
}
export const GET_PARAMETER_TYPES_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes_Response',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_Response_',
  typeHash: 'RIHS01_ac1335dce67c478e669434f6ac2fbff34fcd529580f272d3006785ba8b54e47f',
  fields: [['types', { sequence: 'uint8' }]],
};

export interface GetParameterTypesEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly GetParameterTypesRequestMessage[];
  readonly response: readonly GetParameterTypesResponseMessage[];
}
export const GET_PARAMETER_TYPES_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes_Event',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_Event_',
  typeHash: 'RIHS01_9516adca0cc885d46a59c2362fb8eb5f4906b046518266f8c645b454b0dddc60',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: GET_PARAMETER_TYPES_REQUEST }],
    ['response', { sequence: GET_PARAMETER_TYPES_RESPONSE }],
  ],
};

export interface GetParametersRequestMessage {
  readonly names: readonly string[];
}
export const GET_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_Request_',
  typeHash: 'RIHS01_135a9e1c3d7cebef792f6687d7ddf99949b21a0bd9a320d863a9110a3f5cf4d6',
  fields: [['names', { sequence: 'string' }]],
};

export interface GetParametersResponseMessage {
  readonly values: readonly ParameterValueMessage[];
}
export const GET_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_Response_',
  typeHash: 'RIHS01_9fa773b46e39cc5d02db6224d8fd520bb9caeeffc2b27c96c1e59431baba9f2a',
  fields: [['values', { sequence: PARAMETER_VALUE }]],
};

export interface GetParametersEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly GetParametersRequestMessage[];
  readonly response: readonly GetParametersResponseMessage[];
}
export const GET_PARAMETERS_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameters_Event',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_Event_',
  typeHash: 'RIHS01_84eeb9247b09067c35bd8750d5c8555b700e394a616737c4624f15ae02e64c4d',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: GET_PARAMETERS_REQUEST }],
    ['response', { sequence: GET_PARAMETERS_RESPONSE }],
  ],
};

export interface ListParametersRequestMessage {
  readonly prefixes: readonly string[];
  readonly depth: bigint;
}
export const LIST_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/ListParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_Request_',
  typeHash: 'RIHS01_a1b0b5d6b967a5b8ac5bc8563c3ea678f349e312a6a4967227c5a96bc5ce38df',
  fields: [
    ['prefixes', { sequence: 'string' }],
    ['depth', 'uint64'],
  ],
};

export interface ListParametersResponseMessage {
  readonly result: ListParametersResultMessage;
}
export const LIST_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/ListParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_Response_',
  typeHash: 'RIHS01_31b937b82de3612426be79f231e386259f97e8dc843e3f2845288b4bfa296bdd',
  fields: [['result', LIST_PARAMETERS_RESULT]],
};

export interface ListParametersEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly ListParametersRequestMessage[];
  readonly response: readonly ListParametersResponseMessage[];
}
export const LIST_PARAMETERS_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/ListParameters_Event',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_Event_',
  typeHash: 'RIHS01_89c5b5aaf68ec925ae9bbc5569ee21de82959b4d1496dbd498792ad825b9b292',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: LIST_PARAMETERS_REQUEST }],
    ['response', { sequence: LIST_PARAMETERS_RESPONSE }],
  ],
};

export interface SetParametersRequestMessage {
  readonly parameters: readonly ParameterMessage[];
}
export const SET_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_Request_',
  typeHash: 'RIHS01_130d46386b7e84ea9ecf60608a4d83cbe5e5cb7c6cc5b712b7a4e3a6c254e932',
  fields: [['parameters', { sequence: PARAMETER }]],
};

export interface SetParametersResponseMessage {
  readonly results: readonly SetParametersResultMessage[];
}
export const SET_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_Response_',
  typeHash: 'RIHS01_7a0e8140a0b8d98308fa81a5403a766e610af29a239caf54b7553227906fc266',
  fields: [['results', { sequence: SET_PARAMETERS_RESULT }]],
};

export interface SetParametersEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly SetParametersRequestMessage[];
  readonly response: readonly SetParametersResponseMessage[];
}
export const SET_PARAMETERS_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParameters_Event',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_Event_',
  typeHash: 'RIHS01_5060f52369bcff7f9dbd6eca21ee521859e471e71b33a8a8df26d5236fe54a80',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: SET_PARAMETERS_REQUEST }],
    ['response', { sequence: SET_PARAMETERS_RESPONSE }],
  ],
};

export interface SetParametersAtomicallyRequestMessage {
  readonly parameters: readonly ParameterMessage[];
}
export const SET_PARAMETERS_ATOMICALLY_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically_Request',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_Request_',
  typeHash: 'RIHS01_db0bd950ed5ed867a0e90b225e44dea382d762c0762ff3e0ee842190042a59e5',
  fields: [['parameters', { sequence: PARAMETER }]],
};

export interface SetParametersAtomicallyResponseMessage {
  readonly result: SetParametersResultMessage;
}
export const SET_PARAMETERS_ATOMICALLY_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically_Response',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_Response_',
  typeHash: 'RIHS01_31b1a38c5b0b9d893ee24da45f69638f4561c78461d82d52750f429b534502b8',
  fields: [['result', SET_PARAMETERS_RESULT]],
};

export interface SetParametersAtomicallyEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly SetParametersAtomicallyRequestMessage[];
  readonly response: readonly SetParametersAtomicallyResponseMessage[];
}
export const SET_PARAMETERS_ATOMICALLY_EVENT: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically_Event',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_Event_',
  typeHash: 'RIHS01_42fc0821e6e8fcff2b150cefc7d8269f0ce65139e1dc715b15267a4bcf63a189',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: SET_PARAMETERS_ATOMICALLY_REQUEST }],
    ['response', { sequence: SET_PARAMETERS_ATOMICALLY_RESPONSE }],
  ],
};

export interface SafeShutdownRequestMessage {
  readonly reason: string;
  readonly requested_by: string;
  readonly timeout: number;
}
export const SAFE_SHUTDOWN_REQUEST: MessageType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown_Request',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_Request_',
  typeHash: 'RIHS01_ec598925b510d980b4883fa022fa40e2af88a7dcfce87e2aa3852d49b1512123',
  fields: [
    ['reason', 'string'],
    ['requested_by', 'string'],
    ['timeout', 'float64'],
  ],
};

export interface SafeShutdownResponseMessage {
  readonly success: boolean;
  readonly message: string;
}
export const SAFE_SHUTDOWN_RESPONSE: MessageType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown_Response',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_Response_',
  typeHash: 'RIHS01_bb0dedd9c330de0538edf260a8b5dd7d81d38dfe1e82a70bff106352468029f8',
  fields: [
    ['success', 'bool'],
    ['message', 'string'],
  ],
};

export interface SafeShutdownEventMessage {
  readonly info: ServiceEventInfoMessage;
  readonly request: readonly SafeShutdownRequestMessage[];
  readonly response: readonly SafeShutdownResponseMessage[];
}
export const SAFE_SHUTDOWN_EVENT: MessageType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown_Event',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_Event_',
  typeHash: 'RIHS01_c2ab565959b8993d9e00d459dfcb9f3589dc7844a272616e1bc3689c032d525e',
  fields: [
    ['info', SERVICE_EVENT_INFO],
    ['request', { sequence: SAFE_SHUTDOWN_REQUEST }],
    ['response', { sequence: SAFE_SHUTDOWN_RESPONSE }],
  ],
};

export const DESCRIBE_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_',
  typeHash: 'RIHS01_845b484d71eb0673dae682f2e3ba3c4851a65a3dcfb97bddd82c5b57e91e4cff',
  request: DESCRIBE_PARAMETERS_REQUEST,
  response: DESCRIBE_PARAMETERS_RESPONSE,
  event: DESCRIBE_PARAMETERS_EVENT,
};

export const GET_PARAMETER_TYPES: ServiceType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_',
  typeHash: 'RIHS01_da199c878688b3e530bdfe3ca8f74cb9fa0c303101e980a9e8f260e25e1c80ca',
  request: GET_PARAMETER_TYPES_REQUEST,
  response: GET_PARAMETER_TYPES_RESPONSE,
  event: GET_PARAMETER_TYPES_EVENT,
};

export const GET_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/GetParameters',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_',
  typeHash: 'RIHS01_bf9803d5c74cf989a5de3e0c2e99444599a627c7ff75f97b8c05b01003675cbc',
  request: GET_PARAMETERS_REQUEST,
  response: GET_PARAMETERS_RESPONSE,
  event: GET_PARAMETERS_EVENT,
};

export const LIST_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/ListParameters',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_',
  typeHash: 'RIHS01_3e6062bfbb27bfb8730d4cef2558221f51a11646d78e7bb30a1e83afac3aad9d',
  request: LIST_PARAMETERS_REQUEST,
  response: LIST_PARAMETERS_RESPONSE,
  event: LIST_PARAMETERS_EVENT,
};

export const SET_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/SetParameters',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_',
  typeHash: 'RIHS01_56eed9a67e169f9cb6c1f987bc88f868c14a8fc9f743a263bc734c154015d7e0',
  request: SET_PARAMETERS_REQUEST,
  response: SET_PARAMETERS_RESPONSE,
  event: SET_PARAMETERS_EVENT,
};

export const SET_PARAMETERS_ATOMICALLY: ServiceType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_',
  typeHash: 'RIHS01_0e192ef259c07fc3c07a13191d27002222e65e00ccec653ca05e856f79285fcd',
  request: SET_PARAMETERS_ATOMICALLY_REQUEST,
  response: SET_PARAMETERS_ATOMICALLY_RESPONSE,
  event: SET_PARAMETERS_ATOMICALLY_EVENT,
};

export const SAFE_SHUTDOWN: ServiceType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_',
  typeHash: 'RIHS01_af58cd37e0cbaf0302e4b8f205056f01a79e6453daf7a5c27048858337c96a8c',
  request: SAFE_SHUTDOWN_REQUEST,
  response: SAFE_SHUTDOWN_RESPONSE,
  event: SAFE_SHUTDOWN_EVENT,
};

/** As in ROS 2 Humble. */
export const HUMBLE_GID: Layout = {
  fields: [['data', { array: 'uint8', length: 24 }]],
};

/** As in ROS 2 Humble. */
export const HUMBLE_NODE_ENTITIES_INFO: Layout = {
  fields: [
    ['node_namespace', 'string'],
    ['node_name', 'string'],
    ['reader_gid_seq', { sequence: HUMBLE_GID }],
    ['writer_gid_seq', { sequence: HUMBLE_GID }],
  ],
};

/** As in ROS 2 Humble. */
export const HUMBLE_PARTICIPANT_ENTITIES_INFO: Layout = {
  fields: [
    ['gid', HUMBLE_GID],
    ['node_entities_info_seq', { sequence: HUMBLE_NODE_ENTITIES_INFO }],
  ],
};
