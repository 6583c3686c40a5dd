import type { Alert } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log } from '../../core/ports.ts';
import { decode } from '../../rtps/cdr.ts';
import type { EndpointData } from '../../rtps/discovery-data.ts';
import type { LocalReader } from '../../rtps/endpoints.ts';
import type { Participant } from '../../rtps/participant.ts';
import { type Guid, Malformed } from '../../rtps/protocol.ts';
import type { Qos } from '../../rtps/qos.ts';
import type { Received } from '../../rtps/reader.ts';
import { DEPTH } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertFrom, type Checked, healthStatusFrom } from '../messages.ts';
import { isProbeTopic } from '../names.ts';
import { nameOf, typeHashData } from './names.ts';

/** Readers of topics that are taken in: two of each of 512 nodes in namespaces of their own, and some more. */
const MAX_GATHERING = 1088;
/**
 * The readers of so many topics are announced to every participant, as any subscription is; further ones only to publishers of their topic.
 * Several topics of each robot would make the number of announcements a square of the number of robots.
 */
const MAX_ANNOUNCED_TO_ALL = 32;

/** What a writer offers and a reader asks for. */
type Offer = 'whole' | 'volatile' | 'best effort';

/**
 * The QoS of the reader that is announced to every participant: what a publisher offers by default, which would log incompatible QoS for
 * a more demanding reader. A publisher that offers something else gets the announcement of a matching reader in its place.
 */
const SHOWN: Offer = 'volatile';

/** As much as the writer promises: one that offers less than the contract asks for is read all the same. */
function offerOf({ reliable, durability }: Qos): Offer {
  if (!reliable) return 'best effort';
  return durability > 0 ? 'whole' : 'volatile';
}

export type Kind = 'health' | 'alert';

const TYPES: Readonly<Record<Kind, MessageType>> = { health: HEALTH_STATUS, alert: ALERT };

interface Entry {
  readonly topic: string;
  readonly kind: Kind;
  readonly reader: LocalReader;
  readonly isShown: boolean;
}

export interface TopicReadersOptions {
  /** Whether a topic that somebody publishes on, by its DDS name, is to be read. */
  readonly wants: (topic: string, kind: Kind) => boolean;
  readonly onHealthStatus: (status: HealthStatus, received: Received, topic: string) => void;
  readonly onAlert: (alert: Alert, received: Received, topic: string) => void;
  /** The last writer of a node's health statuses was disposed of. */
  readonly onNodeLeft?: (nodeName: string) => void;
  /** A message that was well-formed, but not what it should be. */
  readonly onRefused: (topic: string, reason: string) => void;
  /** There is another reader that everybody is told of. */
  readonly onChange: () => void;
  readonly log: Log;
}

/** The readers of health statuses and alerts of a participant: for each topic one for each thing that its writers promise. */
export class TopicReaders {
  readonly #options: TopicReadersOptions;
  readonly #participant: Participant;
  /** `node_name` of the last health status of each matched writer. */
  readonly #nodeOfWriter = new Map<Guid, string>();
  readonly #readers = new Map<string, Entry>();
  #shownCount = 0;

  constructor(participant: Participant, options: TopicReadersOptions) {
    this.#participant = participant;
    this.#options = options;
  }

  /** Those that count as a node's, for `ros2 node info`: of each topic the one that is announced to all, and those in its place. */
  guids(kind: Kind): Guid[] {
    return [...this.#readers.values()].filter((entry) => entry.kind === kind && entry.isShown).map(({ reader }) => reader.guid);
  }

  /** For the participant's `onRemoteWriter`. */
  onRemoteWriter({ topic, type, qos }: EndpointData): boolean {
    const kind = (['health', 'alert'] as const).find((one) => type === TYPES[one].ddsName && this.#options.wants(topic, one));
    if (!kind || isProbeTopic(nameOf(topic))) return true;
    this.read(topic, kind);
    return this.#read(topic, kind, offerOf(qos));
  }

  /** For the participant's option of this name. A node is left only by the last of its writers, and so are the readers of a topic. */
  onRemoteGone(guid: Guid, hasLeft: boolean): void {
    this.#removeUnused();
    const node = this.#nodeOfWriter.get(guid);
    if (node === undefined) return;
    this.#nodeOfWriter.delete(guid);
    if (hasLeft && ![...this.#nodeOfWriter.values()].includes(node)) this.#options.onNodeLeft?.(node);
  }

  /** Reads a topic, whether somebody publishes there already or not. */
  read(topic: string, kind: Kind): void {
    if (this.#shownCount < MAX_ANNOUNCED_TO_ALL) this.#read(topic, kind, SHOWN);
  }

  /** False: there are too many. */
  #read(topic: string, kind: Kind, offer: Offer): boolean {
    const key = `${topic} ${offer}`;
    if (this.#readers.has(key)) return true;
    const { log, onAlert, onChange, onHealthStatus } = this.#options;
    if (this.#readers.size >= MAX_GATHERING) this.#removeUnused();
    if (this.#readers.size >= MAX_GATHERING) {
      log('warning', 'too many remote topics: one not subscribed', { topic, most: MAX_GATHERING });
      return false;
    }
    const type = TYPES[kind];
    const take =
      kind === 'health'
        ? this.#taking(topic, type, healthStatusFrom, (status, received) => {
            this.#nodeOfWriter.set(received.writer.guid, status.node_name);
            onHealthStatus(status, received, topic);
          })
        : this.#taking(topic, type, alertFrom, (alert, received) => onAlert(alert, received, topic));
    const isForAll = offer === SHOWN && this.#shownCount < MAX_ANNOUNCED_TO_ALL;
    const insteadOf = this.#shown(topic);
    const reader = this.#participant.createReader({
      topic,
      isDiscreet: !isForAll,
      insteadOf,
      isFor: (offered) => offerOf(offered) === offer,
      type: type.ddsName,
      reliable: offer !== 'best effort',
      transientLocal: offer === 'whole',
      depth: DEPTH,
      userData: typeHashData(type),
      onSample: take,
    });
    const isShown = isForAll || insteadOf !== null;
    this.#readers.set(key, { topic, kind, reader, isShown });
    if (isForAll) this.#shownCount += 1;
    if (isShown) onChange();
    return true;
  }

  /** Topics come and go, and whoever makes them up must not fill the list. Those whose readers are announced to all stay. */
  #removeUnused(): void {
    for (const [key, { isShown, reader }] of this.#readers) {
      if (isShown || reader.state.writerCount > 0) continue;
      this.#readers.delete(key);
      this.#participant.removeReader(reader);
    }
  }

  /** The reader of a topic that is announced to all; null: there is none. */
  #shown(topic: string): LocalReader | null {
    const entry = this.#readers.get(`${topic} ${SHOWN}`);
    return entry?.isShown ? entry.reader : null;
  }

  #taking<T>(
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
        this.#options.onRefused(topic, `${checked.reason} (from ${source.address})`);
        throw new Malformed(checked.reason);
      }
    };
  }
}
