import type { LocalWriter } from '../../rtps/endpoints/endpoints.ts';
import type { Participant } from '../../rtps/participant.ts';
import { encode, type Message } from '../../rtps/wire/cdr.ts';
import { ENTITY, type Guid, guidOf } from '../../rtps/wire/protocol.ts';
import { HUMBLE_PARTICIPANT_ENTITIES_INFO, PARTICIPANT_ENTITIES_INFO } from '../interfaces.generated.ts';
import { hasTypeHash, typeHashData } from './dds-names.ts';

/** A ROS 2 node: its name and its endpoints on the participant. */
export interface GraphNode {
  readonly name: string;
  readonly readers: readonly Guid[];
  readonly writers: readonly Guid[];
}

const IRON_GID_OCTETS = 16;
const HUMBLE_GID_OCTETS = 24;

/**
 * Makes the nodes visible to `ros2 node list` (rmw_dds_common, ParticipantEntitiesInfo on `ros_discovery_info`). A gid has 24 octets up
 * to Humble and 16 since Iron, so the payload depends on the reader.
 */
export class NodeGraph {
  readonly #participant: Participant;
  readonly #namespace: string;
  readonly #writer: LocalWriter;

  constructor(participant: Participant, namespace: string) {
    this.#participant = participant;
    this.#namespace = namespace;
    this.#writer = participant.createWriter({
      topic: 'ros_discovery_info',
      type: PARTICIPANT_ENTITIES_INFO.ddsName,
      transientLocal: true,
      depth: 1,
      userData: typeHashData(PARTICIPANT_ENTITIES_INFO),
    });
  }

  publish(nodes: readonly GraphNode[]): void {
    const iron = encode(PARTICIPANT_ENTITIES_INFO, this.#message(nodes, IRON_GID_OCTETS));
    const humble = encode(HUMBLE_PARTICIPANT_ENTITIES_INFO, this.#message(nodes, HUMBLE_GID_OCTETS));
    this.#participant.write(this.#writer, ({ userData }) => (hasTypeHash(userData) ? iron : humble));
  }

  #message(nodes: readonly GraphNode[], octets: number): Message {
    const gid = (guid: Guid): Message => ({ data: [...Buffer.from(guid, 'hex'), ...Array<number>(octets - 16).fill(0)] });
    return {
      gid: gid(guidOf(this.#participant.prefix, ENTITY.PARTICIPANT)),
      node_entities_info_seq: nodes.map(({ name, readers, writers }) => ({
        node_namespace: this.#namespace,
        node_name: name,
        reader_gid_seq: readers.map(gid),
        writer_gid_seq: writers.map(gid),
      })),
    };
  }
}
