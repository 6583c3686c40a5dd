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
