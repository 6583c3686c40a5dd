import type { Qos } from '../endpoints/qos.ts';
import { LIMITS } from '../limits.ts';
import { type ParameterList, ParameterWriter } from '../wire/parameters.ts';
import {
  BUILTIN_ENDPOINTS,
  ENTITY,
  type Guid,
  type GuidPrefix,
  guidOf,
  type Locator,
  Malformed,
  PID,
  PROTOCOL_VERSION,
  prefixOf,
  READS_LIVELINESS,
  VENDOR,
} from '../wire/protocol.ts';

/** The announcement of a participant (8.5.3.2, SPDPdiscoveredParticipantData). */
export interface ParticipantData {
  readonly prefix: GuidPrefix;
  readonly vendor: number;
  readonly domain: number | null;
  readonly name: string;
  readonly userData: string;
  readonly leaseSeconds: number;
  readonly metaUnicast: readonly Locator[];
  readonly userUnicast: readonly Locator[];
  /** Whether it has a reader of liveliness messages. */
  readonly readsLiveliness: boolean;
}

/** The announcement of an endpoint (8.5.4.4). */
export interface EndpointData {
  readonly guid: Guid;
  readonly topic: string;
  readonly type: string;
  readonly userData: string;
  readonly qos: Qos;
  /** Its own locators; empty: the default ones of its participant. */
  readonly unicast: readonly Locator[];
}

/** 8.5.3.2: default of leaseDuration. */
const DEFAULT_LEASE_SECONDS = 100;
const RELIABLE = 2;
/** max_blocking_time of RELIABILITY: a default for other implementations; writes here never block. */
const MAX_BLOCKING_SECONDS = 0.1;

/** `further`: locators in vendor parameters that only this implementation reads. */
export function participantPayload(
  own: Omit<ParticipantData, 'readsLiveliness'>,
  multicast: Locator | null,
  further: Pick<ParticipantData, 'metaUnicast' | 'userUnicast'> = { metaUnicast: [], userUnicast: [] },
): Buffer {
  const list = new ParameterWriter()
    .bytes(PID.PROTOCOL_VERSION, PROTOCOL_VERSION)
    .bytes(PID.VENDOR_ID, vendorOctets(own.vendor))
    .guid(PID.PARTICIPANT_GUID, guidOf(own.prefix, ENTITY.PARTICIPANT))
    .seconds(PID.PARTICIPANT_LEASE_DURATION, own.leaseSeconds)
    .uint32(PID.BUILTIN_ENDPOINT_SET, BUILTIN_ENDPOINTS)
    .uint32(PID.DOMAIN_ID, own.domain ?? 0)
    .text(PID.ENTITY_NAME, own.name)
    .octets(PID.USER_DATA, Buffer.from(own.userData));
  for (const locator of own.metaUnicast) list.locator(PID.METATRAFFIC_UNICAST_LOCATOR, locator);
  for (const locator of own.userUnicast) list.locator(PID.DEFAULT_UNICAST_LOCATOR, locator);
  for (const locator of further.metaUnicast) list.locator(PID.FURTHER_METATRAFFIC_LOCATOR, locator);
  for (const locator of further.userUnicast) list.locator(PID.FURTHER_DEFAULT_LOCATOR, locator);
  if (multicast) list.locator(PID.METATRAFFIC_MULTICAST_LOCATOR, multicast);
  return list.payload();
}

/** The key of a participant that leaves. */
export function participantKey(prefix: GuidPrefix): Buffer {
  return new ParameterWriter().guid(PID.PARTICIPANT_GUID, guidOf(prefix, ENTITY.PARTICIPANT)).payload();
}

/**
 * Throws Malformed when the GUID is missing. Null: the participant is in another domain, or has an unknown must-understand parameter
 * such as a domain tag.
 */
export function readParticipant(list: ParameterList, domain: number): ParticipantData | null {
  if (!list.isUnderstood) return null;
  const guid = list.guid(PID.PARTICIPANT_GUID);
  if (!guid) throw new Malformed('participant without GUID');
  const announced = list.uint32(PID.DOMAIN_ID);
  if (announced !== null && announced !== domain) return null;
  const lease = list.seconds(PID.PARTICIPANT_LEASE_DURATION) ?? DEFAULT_LEASE_SECONDS;
  const vendor = list.bytes(PID.VENDOR_ID, 2)?.readUInt16BE(0) ?? VENDOR.UNKNOWN;
  // In the ranges of other vendors these ids have other meanings.
  const further = (id: number): Locator[] => (vendor === VENDOR.UNKNOWN ? list.locators(id) : []);
  return {
    prefix: prefixOf(guid),
    vendor,
    domain: announced,
    name: list.text(PID.ENTITY_NAME) ?? '',
    userData: list.text(PID.USER_DATA) ?? '',
    leaseSeconds: Math.min(Math.max(lease, 0), LIMITS.leaseSeconds),
    metaUnicast: [...list.locators(PID.METATRAFFIC_UNICAST_LOCATOR), ...further(PID.FURTHER_METATRAFFIC_LOCATOR)],
    userUnicast: [...list.locators(PID.DEFAULT_UNICAST_LOCATOR), ...further(PID.FURTHER_DEFAULT_LOCATOR)],
    readsLiveliness: ((list.uint32(PID.BUILTIN_ENDPOINT_SET) ?? 0) & READS_LIVELINESS) !== 0,
  };
}

export function endpointPayload(endpoint: Omit<EndpointData, 'unicast'>, historyDepth: number): Buffer {
  const list = new ParameterWriter()
    .guid(PID.ENDPOINT_GUID, endpoint.guid)
    .guid(PID.PARTICIPANT_GUID, guidOf(prefixOf(endpoint.guid), ENTITY.PARTICIPANT))
    .bytes(PID.PROTOCOL_VERSION, PROTOCOL_VERSION)
    .bytes(PID.VENDOR_ID, vendorOctets(VENDOR.UNKNOWN))
    .text(PID.TOPIC_NAME, endpoint.topic)
    .text(PID.TYPE_NAME, endpoint.type)
    .uint32(PID.RELIABILITY, endpoint.qos.reliable ? RELIABLE : 1, 0, Math.floor(MAX_BLOCKING_SECONDS * 2 ** 32))
    .uint32(PID.DURABILITY, endpoint.qos.durability)
    .uint32(PID.HISTORY, 0, historyDepth);
  const { deadlineSeconds, liveliness, livelinessLeaseSeconds } = endpoint.qos;
  if (Number.isFinite(deadlineSeconds)) list.seconds(PID.DEADLINE, deadlineSeconds);
  if (Number.isFinite(livelinessLeaseSeconds)) list.seconds(PID.LIVELINESS, livelinessLeaseSeconds, liveliness);
  if (endpoint.userData !== '') list.octets(PID.USER_DATA, Buffer.from(endpoint.userData));
  return list.payload();
}

/**
 * Throws Malformed when GUID, topic or type is missing. Defaults are those of 9.6.2.2.2 (table 9.13): a reader is best effort, a
 * writer reliable.
 */
export function readEndpoint(list: ParameterList, isWriter: boolean): EndpointData {
  const guid = list.guid(PID.ENDPOINT_GUID);
  const topic = list.text(PID.TOPIC_NAME);
  const type = list.text(PID.TYPE_NAME);
  if (!guid || !topic || !type) throw new Malformed('endpoint without GUID, topic or type');
  const reliability = list.uint32(PID.RELIABILITY);
  return {
    guid,
    topic,
    type,
    userData: list.text(PID.USER_DATA) ?? '',
    qos: {
      reliable: reliability === null ? isWriter : reliability === RELIABLE,
      durability: list.uint32(PID.DURABILITY) ?? 0,
      deadlineSeconds: list.seconds(PID.DEADLINE) ?? Number.POSITIVE_INFINITY,
      liveliness: list.uint32(PID.LIVELINESS) ?? 0,
      livelinessLeaseSeconds: list.seconds(PID.LIVELINESS, 4) ?? Number.POSITIVE_INFINITY,
      ownership: list.uint32(PID.OWNERSHIP) ?? 0,
      partitions: list.texts(PID.PARTITION),
    },
    unicast: list.locators(PID.UNICAST_LOCATOR),
  };
}

/** 9.6.3.4 (9.6.3.9 since 2.3): bits of STATUS_INFO. */
export const STATUS = { DISPOSED: 0x1, UNREGISTERED: 0x2 } as const;

/** Whether inline QoS marks an instance as disposed or unregistered. */
export function isEnd(inlineQos: ParameterList | null): boolean {
  const status = inlineQos?.bytes(PID.STATUS_INFO, 4)?.[3] ?? 0;
  return (status & (STATUS.DISPOSED | STATUS.UNREGISTERED)) !== 0;
}

/** Inline QoS that disposes of the instance of a GUID. Fast DDS reads the key from here and ignores the one in the payload. */
export function endOfInstance(guid: Guid): Buffer {
  return new ParameterWriter()
    .guid(PID.KEY_HASH, guid)
    .bytes(PID.STATUS_INFO, Buffer.from([0, 0, 0, STATUS.DISPOSED | STATUS.UNREGISTERED]))
    .list();
}

function vendorOctets(vendor: number): Buffer {
  return Buffer.from([vendor >> 8, vendor & 0xff]);
}
