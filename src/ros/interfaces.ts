/** Layouts of ROS messages as data: what a CDR encoder or decoder walks along. Bounds of strings and sequences are left out. */

/** `byte` and `char` of .msg files are uint8. A string is UTF-8. */
export type PrimitiveType =
  | 'bool'
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float32'
  | 'float64'
  | 'string';

export type ElementType = PrimitiveType | Layout;
export interface Sequence {
  readonly sequence: ElementType;
}
export interface FixedArray {
  readonly array: ElementType;
  readonly length: number;
}
export type FieldType = ElementType | Sequence | FixedArray;

/** Name and type of every field, in the order on the wire. */
export interface Layout {
  readonly fields: readonly (readonly [name: string, type: FieldType])[];
}

export interface MessageType extends Layout {
  /** `edge_health_interfaces/msg/HealthStatus`. */
  readonly rosName: string;
  /** `edge_health_interfaces::msg::dds_::HealthStatus_`: the type's name in DDS discovery. */
  readonly ddsName: string;
  /** `RIHS01_…`, announced by ROS 2 from Iron on. */
  readonly typeHash: string;
}

export interface ServiceType {
  readonly rosName: string;
  readonly ddsName: string;
  /** Of the service as a whole; request and response have their own. */
  readonly typeHash: string;
  readonly request: MessageType;
  readonly response: MessageType;
  /** What service introspection publishes. */
  readonly event: MessageType;
}
