import type { Alert } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log } from '../../core/ports.ts';
import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import type { LocalReader } from '../../rtps/endpoints/endpoints.ts';
import type { Qos } from '../../rtps/endpoints/qos.ts';
import type { Received } from '../../rtps/endpoints/reader.ts';
import type { Participant } from '../../rtps/participant.ts';
import { decode } from '../../rtps/wire/cdr.ts';
import { type Guid, type GuidPrefix, Malformed, prefixOf } from '../../rtps/wire/protocol.ts';
import { DEPTH } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertFrom, type Checked, healthStatusFrom } from '../messages.ts';
import { isProbeTopic } from '../names.ts';
import { nameOf, typeHashData } from './dds-names.ts';

/** Limit of readers: two for each of 512 nodes in different namespaces, and a reserve. */
const MAX_READERS = 1088;
/**
 * Readers that are announced to every participant, as any subscription is; further ones are announced only to publishers of their topic.
 * Otherwise the number of announcements would grow with the square of the number of robots.
 */
const MAX_ANNOUNCED_TO_ALL = 32;

/** The QoS classes that a writer may offer: reliable and transient local, reliable and volatile, best effort. */
type Offer = 'transient local' | 'volatile' | 'best effort';

/**
 * The QoS of the reader that is announced to every participant: the default of publishers, which log incompatible QoS for a more
 * demanding reader. To a publisher with another offer a matching reader is announced instead.
 */
const ANNOUNCED_OFFER: Offer = 'volatile';

/** The class of a writer's offer. Writers that offer less than the interface contract are read, too. */
function offerOf({ reliable, durability }: Qos): Offer {
  if (!reliable) return 'best effort';
  return durability > 0 ? 'transient local' : 'volatile';
}

export type Kind = 'health' | 'alert';

const TYPES: Readonly<Record<Kind, MessageType>> = { health: HEALTH_STATUS, alert: ALERT };

interface Entry {
  readonly topic: string;
  readonly kind: Kind;
  readonly reader: LocalReader;
  readonly isAnnounced: boolean;
}

export interface TopicReadersOptions {
  /** Whether to read what a writer publishes. */
  readonly wants: (writer: EndpointData, kind: Kind) => boolean;
  readonly onHealthStatus: (status: HealthStatus, received: Received, topic: string) => void;
  readonly onAlert: (alert: Alert, received: Received, topic: string) => void;
  /** The last writer of a participant that sent health statuses of the node was disposed of, or its lease has expired. */
  readonly onPublisherGone?: (nodeName: string, participant: GuidPrefix, hasLeft: boolean) => void;
  /** The list of `guids` has changed. */
  readonly onChange: () => void;
  readonly log: Log;
}

/** A participant's readers of health statuses and alerts: for each topic, one per QoS class that its writers offer. */
export class TopicReaders {
  readonly #options: TopicReadersOptions;
  readonly #participant: Participant;
  /** `node_name` of the last health status of each matched writer. */
  readonly #nodeOfWriter = new Map<Guid, string>();
  readonly #readers = new Map<string, Entry>();
  #announcedCount = 0;
  #isAnnounced = true;

  constructor(participant: Participant, options: TopicReadersOptions) {
    this.#participant = participant;
    this.#options = options;
  }

  /** The readers to list for a node in `ros2 node info`: those announced to all participants, and those that replace them. */
  guids(kind: Kind): Guid[] {
    return [...this.#readers.values()].filter((entry) => entry.kind === kind && entry.isAnnounced).map(({ reader }) => reader.guid);
  }

  /** Handler of the participant's option of this name: creates a matching reader for the writer of a wanted topic. */
  onRemoteWriter(writer: EndpointData): boolean {
    const { qos, topic, type } = writer;
    const kind = (['health', 'alert'] as const).find((one) => type === TYPES[one].ddsName && this.#options.wants(writer, one));
    if (!kind || isProbeTopic(nameOf(topic))) return true;
    if (this.#isAnnounced) this.read(topic, kind);
    return this.#read(topic, kind, offerOf(qos));
  }

  /** Handler of the participant's option of this name. */
  onRemoteGone(guid: Guid, hasLeft: boolean): void {
    this.#removeUnused();
    const node = this.#nodeOfWriter.get(guid);
    if (node === undefined) return;
    this.#nodeOfWriter.delete(guid);
    const participant = prefixOf(guid);
    const hasOther = [...this.#nodeOfWriter].some(([writer, name]) => name === node && writer.startsWith(participant));
    if (!hasOther) this.#options.onPublisherGone?.(node, participant, hasLeft);
  }

  /** Removes all readers. `isAnnounced`: whether later ones may be announced to all participants, as any subscription is. */
  restart(isAnnounced: boolean): void {
    for (const { reader } of this.#readers.values()) this.#participant.removeReader(reader);
    this.#readers.clear();
    this.#nodeOfWriter.clear();
    this.#announcedCount = 0;
    this.#isAnnounced = isAnnounced;
    this.#options.onChange();
  }

  /** Reads a topic, even if it has no publisher yet. */
  read(topic: string, kind: Kind): void {
    if (this.#announcedCount < MAX_ANNOUNCED_TO_ALL) this.#read(topic, kind, ANNOUNCED_OFFER);
  }

  /** False: the limit of readers is reached. */
  #read(topic: string, kind: Kind, offer: Offer): boolean {
    const key = `${topic} ${offer}`;
    if (this.#readers.has(key)) return true;
    const { log, onAlert, onChange, onHealthStatus } = this.#options;
    if (this.#readers.size >= MAX_READERS) this.#removeUnused();
    if (this.#readers.size >= MAX_READERS) {
      log('warning', 'too many remote topics, topic not subscribed', { topic, limit: MAX_READERS });
      return false;
    }
    const type = TYPES[kind];
    const onSample =
      kind === 'health'
        ? this.#sampleHandler(topic, type, healthStatusFrom, (status, received) => {
            const { guid } = received.writer;
            if (this.#nodeOfWriter.get(guid) !== status.node_name) this.#nodeOfWriter.set(guid, status.node_name);
            onHealthStatus(status, received, topic);
          })
        : this.#sampleHandler(topic, type, alertFrom, (alert, received) => onAlert(alert, received, topic));
    const isAnnouncedToAll = this.#isAnnounced && offer === ANNOUNCED_OFFER && this.#announcedCount < MAX_ANNOUNCED_TO_ALL;
    const replaces = this.#announcedReader(topic);
    const reader = this.#participant.createReader({
      topic,
      isAnnouncedToWritersOnly: !isAnnouncedToAll,
      replaces,
      isFor: (writer) => offerOf(writer.qos) === offer && this.#options.wants(writer, kind),
      type: type.ddsName,
      reliable: offer !== 'best effort',
      transientLocal: offer === 'transient local',
      depth: DEPTH,
      userData: typeHashData(type),
      onSample,
    });
    const isAnnounced = isAnnouncedToAll || replaces !== null;
    this.#readers.set(key, { topic, kind, reader, isAnnounced });
    if (isAnnouncedToAll) this.#announcedCount += 1;
    if (isAnnounced) onChange();
    return true;
  }

  /** Removes readers without a writer, so that invented topics cannot use up the limit. Readers announced to all participants stay. */
  #removeUnused(): void {
    for (const [key, { isAnnounced, reader }] of this.#readers) {
      if (isAnnounced || reader.state.writerCount > 0) continue;
      this.#readers.delete(key);
      this.#participant.removeReader(reader);
    }
  }

  /** The reader of a topic that is announced to all participants; null: none. */
  #announcedReader(topic: string): LocalReader | null {
    const entry = this.#readers.get(`${topic} ${ANNOUNCED_OFFER}`);
    return entry?.isAnnounced ? entry.reader : null;
  }

  #sampleHandler<T>(
    topic: string,
    type: MessageType,
    check: (message: unknown) => Checked<T>,
    take: (value: T, received: Received) => void,
  ): (received: Received) => void {
    return (received) => {
      const { data, source } = received;
      if (!data.payload || data.isKey) return;
      const checked = check(decode(type, data.payload));
      if (checked.ok) take(checked.value, received);
      else {
        this.#options.log('warning', 'message refused', { topic, reason: `${checked.reason} (from ${source.address})` });
        throw new Malformed(checked.reason);
      }
    };
  }
}
