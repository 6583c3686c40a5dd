import type { Layout } from '../rtps/wire/cdr.ts';

export type { Layout };

/** A ROS message type. Bounds of strings and sequences are not represented; `byte` and `char` of .msg files are uint8. */
export interface MessageType extends Layout {
  /** `edge_health_interfaces/msg/HealthStatus`. */
  readonly rosName: string;
  /** `edge_health_interfaces::msg::dds_::HealthStatus_`: the type's name in DDS discovery. */
  readonly ddsName: string;
  /** `RIHS01_…`, announced by ROS 2 since Iron. */
  readonly typeHash: string;
}

export interface ServiceType {
  readonly rosName: string;
  readonly ddsName: string;
  readonly request: MessageType;
  readonly response: MessageType;
}
