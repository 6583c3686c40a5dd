/**
 * Names and numbers of the wire protocol. Clauses are of OMG DDSI-RTPS 2.2 (formal/2014-09-01) unless another document is named.
 */

/** 9.4.5.1.1: kinds of submessages. */
export const SUBMESSAGE = {
  PAD: 0x01,
  ACKNACK: 0x06,
  HEARTBEAT: 0x07,
  GAP: 0x08,
  INFO_TS: 0x09,
  INFO_SRC: 0x0c,
  INFO_DST: 0x0e,
  NACK_FRAG: 0x12,
  HEARTBEAT_FRAG: 0x13,
  DATA: 0x15,
  DATA_FRAG: 0x16,
} as const;

/** 9.6.2.2.2, table 9.12: parameter ids; the last ones are of DDS-RPC and of vendor ranges. */
export const PID = {
  PAD: 0x0000,
  SENTINEL: 0x0001,
  PARTICIPANT_LEASE_DURATION: 0x0002,
  TOPIC_NAME: 0x0005,
  TYPE_NAME: 0x0007,
  DOMAIN_ID: 0x000f,
  PROTOCOL_VERSION: 0x0015,
  VENDOR_ID: 0x0016,
  RELIABILITY: 0x001a,
  LIVELINESS: 0x001b,
  DURABILITY: 0x001d,
  OWNERSHIP: 0x001f,
  DEADLINE: 0x0023,
  PARTITION: 0x0029,
  USER_DATA: 0x002c,
  UNICAST_LOCATOR: 0x002f,
  DEFAULT_UNICAST_LOCATOR: 0x0031,
  METATRAFFIC_UNICAST_LOCATOR: 0x0032,
  METATRAFFIC_MULTICAST_LOCATOR: 0x0033,
  HISTORY: 0x0040,
  EXPECTS_INLINE_QOS: 0x0043,
  PARTICIPANT_GUID: 0x0050,
  BUILTIN_ENDPOINT_SET: 0x0058,
  ENDPOINT_GUID: 0x005a,
  ENTITY_NAME: 0x0062,
  KEY_HASH: 0x0070,
  STATUS_INFO: 0x0071,
  /** DDS-RPC 1.0, 7.8.2: the request to which a reply belongs. */
  RELATED_SAMPLE_IDENTITY: 0x0083,
  /** The same in the vendor range of Fast DDS, used before its version 2.14. */
  RELATED_SAMPLE_IDENTITY_FAST: 0x800f,
  /** In the vendor range of this implementation: further addresses from which a participant may send. */
  FURTHER_METATRAFFIC_LOCATOR: 0x8e01,
  FURTHER_DEFAULT_LOCATOR: 0x8e02,
} as const;

/** 9.3.1.2, table 9.1 and 9.2: predefined entities. */
export const ENTITY = {
  UNKNOWN: 0x00000000,
  PARTICIPANT: 0x000001c1,
  SPDP_WRITER: 0x000100c2,
  PUBLICATIONS_WRITER: 0x000003c2,
  PUBLICATIONS_READER: 0x000003c7,
  SUBSCRIPTIONS_WRITER: 0x000004c2,
  SUBSCRIPTIONS_READER: 0x000004c7,
  LIVELINESS_WRITER: 0x000200c2,
  LIVELINESS_READER: 0x000200c7,
} as const;

/** The writers that announce endpoints (8.5.4), and the reader at the other end of each. */
export const DISCOVERY_READERS: ReadonlyMap<number, number> = new Map([
  [ENTITY.PUBLICATIONS_WRITER, ENTITY.PUBLICATIONS_READER],
  [ENTITY.SUBSCRIPTIONS_WRITER, ENTITY.SUBSCRIPTIONS_READER],
]);

/** 9.3.1.2: kind octet of user endpoints without a key, as every ROS 2 topic has them. */
export const ENTITY_KIND = { WRITER_NO_KEY: 0x03, READER_NO_KEY: 0x04 } as const;

/**
 * 9.3.2, BuiltinEndpointSet_t of this participant: announcer and detector of participants, publications and subscriptions, and the writer
 * of liveliness messages.
 */
export const BUILTIN_ENDPOINTS = 0x43f;
/** BuiltinEndpointSet_t: the participant reads liveliness messages. */
export const READS_LIVELINESS = 0x800;

/** OMG's list of vendor ids; Fast DDS and Cyclone DDS map ROS 2 services differently. */
export const VENDOR = { UNKNOWN: 0x0000, FAST_DDS: 0x010f, CYCLONE_DDS: 0x0110 } as const;

export const PROTOCOL_VERSION = Buffer.from([2, 2]);

/** 9.6.1.4.1: the multicast group that every participant joins. */
export const MULTICAST_GROUP = '239.255.0.1';

/** 9.6.1.1: 7400 + 250 × domain, and the offsets d0 to d3. */
export const ports = {
  metaMulticast: (domain: number): number => 7400 + 250 * domain,
  metaUnicast: (domain: number, index: number): number => 7400 + 250 * domain + 10 + 2 * index,
  userUnicast: (domain: number, index: number): number => 7400 + 250 * domain + 11 + 2 * index,
};

/** 9.6.1.3: higher domain ids have no ports. */
export const MAX_DOMAIN = 232;

/** A participant: 12 octets as 24 hexadecimal digits. */
export type GuidPrefix = string;
/** An endpoint: 16 octets as 32 hexadecimal digits. */
export type Guid = string;
/** The last four octets of a guid, big endian. */
export type EntityId = number;

export function guidOf(prefix: GuidPrefix, entity: EntityId): Guid {
  return prefix + entity.toString(16).padStart(8, '0');
}

export function prefixOf(guid: Guid): GuidPrefix {
  return guid.slice(0, 24);
}

export function entityOf(guid: Guid): EntityId {
  return Number.parseInt(guid.slice(24), 16);
}

/** Octets per fragment when writing; samples up to this size are not fragmented. */
export const FRAGMENT_OCTETS = 1280;

/** An IPv4 address and port (9.3.2: LOCATOR_KIND_UDPv4). */
export interface Locator {
  readonly address: string;
  readonly port: number;
}

/** A received message violates the protocol. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}
