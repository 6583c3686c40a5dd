// Generated from the .msg and .srv files of ros2/ and scripts/ros/definitions by: npm run generate
import type { Layout, MessageType, ServiceType } from './interfaces.ts';

export type TimeMessage = {
  readonly sec: number;
  readonly nanosec: number;
};
export const TIME: MessageType = {
  rosName: 'builtin_interfaces/msg/Time',
  ddsName: 'builtin_interfaces::msg::dds_::Time_',
  typeHash: 'RIHS01_b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197',
  fields: [
    ['sec', 'int32'],
    ['nanosec', 'uint32'],
  ],
};

export type HeaderMessage = {
  readonly stamp: TimeMessage;
  readonly frame_id: string;
};
export const HEADER: MessageType = {
  rosName: 'std_msgs/msg/Header',
  ddsName: 'std_msgs::msg::dds_::Header_',
  typeHash: 'RIHS01_f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01',
  fields: [
    ['stamp', TIME],
    ['frame_id', 'string'],
  ],
};

export type KeyValueMessage = {
  readonly key: string;
  readonly value: string;
};
export const KEY_VALUE: MessageType = {
  rosName: 'diagnostic_msgs/msg/KeyValue',
  ddsName: 'diagnostic_msgs::msg::dds_::KeyValue_',
  typeHash: 'RIHS01_d68081eaa540288c5440753baecef0c4e16e81a5f78ad68902ded5100413bb42',
  fields: [
    ['key', 'string'],
    ['value', 'string'],
  ],
};

export type DiagnosticStatusMessage = {
  readonly level: number;
  readonly name: string;
  readonly message: string;
  readonly hardware_id: string;
  readonly values: readonly KeyValueMessage[];
};
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

export type DiagnosticArrayMessage = {
  readonly header: HeaderMessage;
  readonly status: readonly DiagnosticStatusMessage[];
};
export const DIAGNOSTIC_ARRAY: MessageType = {
  rosName: 'diagnostic_msgs/msg/DiagnosticArray',
  ddsName: 'diagnostic_msgs::msg::dds_::DiagnosticArray_',
  typeHash: 'RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e',
  fields: [
    ['header', HEADER],
    ['status', { sequence: DIAGNOSTIC_STATUS }],
  ],
};

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

export const LIST_PARAMETERS_RESULT: MessageType = {
  rosName: 'rcl_interfaces/msg/ListParametersResult',
  ddsName: 'rcl_interfaces::msg::dds_::ListParametersResult_',
  typeHash: 'RIHS01_237ae3428413dcbcfb452b510c42355f3a2b021dc091afa3e18526d57022f1cd',
  fields: [
    ['names', { sequence: 'string' }],
    ['prefixes', { sequence: 'string' }],
  ],
};

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

export const PARAMETER: MessageType = {
  rosName: 'rcl_interfaces/msg/Parameter',
  ddsName: 'rcl_interfaces::msg::dds_::Parameter_',
  typeHash: 'RIHS01_ddfe6442cffc462317adb5c92536a7b6dd55858c5c3e1e328165a6b73c2831af',
  fields: [
    ['name', 'string'],
    ['value', PARAMETER_VALUE],
  ],
};

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

export const SET_PARAMETERS_RESULT: MessageType = {
  rosName: 'rcl_interfaces/msg/SetParametersResult',
  ddsName: 'rcl_interfaces::msg::dds_::SetParametersResult_',
  typeHash: 'RIHS01_cfcc0fb0371ee5159b403960ef4300f8f9d2f1fd6117c8666b7f9654d528a9b1',
  fields: [
    ['successful', 'bool'],
    ['reason', 'string'],
  ],
};

export const GID: MessageType = {
  rosName: 'rmw_dds_common/msg/Gid',
  ddsName: 'rmw_dds_common::msg::dds_::Gid_',
  typeHash: 'RIHS01_ab6f21cfbb0a6dbb837161e1110c2051a2850ed9f9c53944d7115d9bcebedf71',
  fields: [['data', { array: 'uint8', length: 16 }]],
};

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

export const PARTICIPANT_ENTITIES_INFO: MessageType = {
  rosName: 'rmw_dds_common/msg/ParticipantEntitiesInfo',
  ddsName: 'rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_',
  typeHash: 'RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e',
  fields: [
    ['gid', GID],
    ['node_entities_info_seq', { sequence: NODE_ENTITIES_INFO }],
  ],
};

export type AlertMessage = {
  readonly alert_id: string;
  readonly severity: string;
  readonly metric: string;
  readonly value: number;
  readonly threshold: number;
  readonly timestamp: string;
  readonly resolved: boolean;
};
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

export type AlertArrayMessage = {
  readonly stamp: TimeMessage;
  readonly node_name: string;
  readonly alerts: readonly AlertMessage[];
};
export const ALERT_ARRAY: MessageType = {
  rosName: 'edge_health_interfaces/msg/AlertArray',
  ddsName: 'edge_health_interfaces::msg::dds_::AlertArray_',
  typeHash: 'RIHS01_e4da6b36ebb24c64c4e4337e122298bd4bc734b6e8e8a5c5f0dde10f6b9bc874',
  fields: [
    ['stamp', TIME],
    ['node_name', 'string'],
    ['alerts', { sequence: ALERT }],
  ],
};

export type HealthStatusMessage = {
  readonly cpu_percent: number;
  readonly memory_percent: number;
  readonly disk_percent: number;
  readonly temperature: number;
  readonly status: string;
  readonly node_name: string;
  readonly timestamp: string;
};
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

export type ShutdownStatusMessage = {
  readonly request_id: string;
  readonly state: string;
  readonly step: string;
  readonly reason: string;
  readonly requested_by: string;
  readonly action: string;
  readonly seconds_left: number;
  readonly message: string;
  readonly timestamp: string;
};
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

export const DESCRIBE_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_Request_',
  typeHash: 'RIHS01_05dd1c2bc87dec2627105c8070d6f9725c781a4f2ab852975bf105462b82b644',
  fields: [['names', { sequence: 'string' }]],
};

export const DESCRIBE_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_Response_',
  typeHash: 'RIHS01_ad6747319613c6131589e062e095b469a46cc764f7d0f12a001a49e6cd893995',
  fields: [['descriptors', { sequence: PARAMETER_DESCRIPTOR }]],
};

export const GET_PARAMETER_TYPES_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes_Request',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_Request_',
  typeHash: 'RIHS01_87d7ec5ef545d4daa289d500025d31fb2437bc8b8365ca367161c4dac4be33fd',
  fields: [['names', { sequence: 'string' }]],
};

export const GET_PARAMETER_TYPES_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes_Response',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_Response_',
  typeHash: 'RIHS01_ac1335dce67c478e669434f6ac2fbff34fcd529580f272d3006785ba8b54e47f',
  fields: [['types', { sequence: 'uint8' }]],
};

export const GET_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_Request_',
  typeHash: 'RIHS01_135a9e1c3d7cebef792f6687d7ddf99949b21a0bd9a320d863a9110a3f5cf4d6',
  fields: [['names', { sequence: 'string' }]],
};

export const GET_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/GetParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_Response_',
  typeHash: 'RIHS01_9fa773b46e39cc5d02db6224d8fd520bb9caeeffc2b27c96c1e59431baba9f2a',
  fields: [['values', { sequence: PARAMETER_VALUE }]],
};

export const LIST_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/ListParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_Request_',
  typeHash: 'RIHS01_a1b0b5d6b967a5b8ac5bc8563c3ea678f349e312a6a4967227c5a96bc5ce38df',
  fields: [
    ['prefixes', { sequence: 'string' }],
    ['depth', 'uint64'],
  ],
};

export const LIST_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/ListParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_Response_',
  typeHash: 'RIHS01_31b937b82de3612426be79f231e386259f97e8dc843e3f2845288b4bfa296bdd',
  fields: [['result', LIST_PARAMETERS_RESULT]],
};

export const SET_PARAMETERS_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParameters_Request',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_Request_',
  typeHash: 'RIHS01_130d46386b7e84ea9ecf60608a4d83cbe5e5cb7c6cc5b712b7a4e3a6c254e932',
  fields: [['parameters', { sequence: PARAMETER }]],
};

export const SET_PARAMETERS_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParameters_Response',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_Response_',
  typeHash: 'RIHS01_7a0e8140a0b8d98308fa81a5403a766e610af29a239caf54b7553227906fc266',
  fields: [['results', { sequence: SET_PARAMETERS_RESULT }]],
};

export const SET_PARAMETERS_ATOMICALLY_REQUEST: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically_Request',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_Request_',
  typeHash: 'RIHS01_db0bd950ed5ed867a0e90b225e44dea382d762c0762ff3e0ee842190042a59e5',
  fields: [['parameters', { sequence: PARAMETER }]],
};

export const SET_PARAMETERS_ATOMICALLY_RESPONSE: MessageType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically_Response',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_Response_',
  typeHash: 'RIHS01_31b1a38c5b0b9d893ee24da45f69638f4561c78461d82d52750f429b534502b8',
  fields: [['result', SET_PARAMETERS_RESULT]],
};

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

export const SAFE_SHUTDOWN_RESPONSE: MessageType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown_Response',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_Response_',
  typeHash: 'RIHS01_bb0dedd9c330de0538edf260a8b5dd7d81d38dfe1e82a70bff106352468029f8',
  fields: [
    ['success', 'bool'],
    ['message', 'string'],
  ],
};

export const DESCRIBE_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/DescribeParameters',
  ddsName: 'rcl_interfaces::srv::dds_::DescribeParameters_',
  request: DESCRIBE_PARAMETERS_REQUEST,
  response: DESCRIBE_PARAMETERS_RESPONSE,
};

export const GET_PARAMETER_TYPES: ServiceType = {
  rosName: 'rcl_interfaces/srv/GetParameterTypes',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameterTypes_',
  request: GET_PARAMETER_TYPES_REQUEST,
  response: GET_PARAMETER_TYPES_RESPONSE,
};

export const GET_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/GetParameters',
  ddsName: 'rcl_interfaces::srv::dds_::GetParameters_',
  request: GET_PARAMETERS_REQUEST,
  response: GET_PARAMETERS_RESPONSE,
};

export const LIST_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/ListParameters',
  ddsName: 'rcl_interfaces::srv::dds_::ListParameters_',
  request: LIST_PARAMETERS_REQUEST,
  response: LIST_PARAMETERS_RESPONSE,
};

export const SET_PARAMETERS: ServiceType = {
  rosName: 'rcl_interfaces/srv/SetParameters',
  ddsName: 'rcl_interfaces::srv::dds_::SetParameters_',
  request: SET_PARAMETERS_REQUEST,
  response: SET_PARAMETERS_RESPONSE,
};

export const SET_PARAMETERS_ATOMICALLY: ServiceType = {
  rosName: 'rcl_interfaces/srv/SetParametersAtomically',
  ddsName: 'rcl_interfaces::srv::dds_::SetParametersAtomically_',
  request: SET_PARAMETERS_ATOMICALLY_REQUEST,
  response: SET_PARAMETERS_ATOMICALLY_RESPONSE,
};

export const SAFE_SHUTDOWN: ServiceType = {
  rosName: 'edge_health_interfaces/srv/SafeShutdown',
  ddsName: 'edge_health_interfaces::srv::dds_::SafeShutdown_',
  request: SAFE_SHUTDOWN_REQUEST,
  response: SAFE_SHUTDOWN_RESPONSE,
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
