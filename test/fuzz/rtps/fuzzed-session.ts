import type { Test } from 'tap';
import type { Log } from '../../../src/core/ports.ts';
import { newPrefix } from '../../../src/ros/embedded/rejoin.ts';
import { Session } from '../../../src/ros/embedded/session.ts';
import { HEALTH_STATUS } from '../../../src/ros/interfaces.generated.ts';
import { healthStatusMessage } from '../../../src/ros/messages.ts';
import { graphNames } from '../../../src/ros/names.ts';
import type { LocalWriter } from '../../../src/rtps/endpoints/endpoints.ts';
import { copyOf } from '../../../src/rtps/limits.ts';
import { destinationOf, only } from '../../../src/rtps/testing/dissect.ts';
import { ForgedParticipant } from '../../../src/rtps/testing/forged-participant.ts';
import { type MemoryNetwork, Wire } from '../../../src/rtps/testing/memory-network.ts';
import { participantOn, type TestParticipant } from '../../../src/rtps/testing/participants.ts';
import { VirtualTime } from '../../../src/rtps/testing/virtual-time.ts';
import { decode, encode } from '../../../src/rtps/wire/cdr.ts';
import { ParameterList } from '../../../src/rtps/wire/parameters.ts';
import { ENTITY, entityOf, type GuidPrefix, PID } from '../../../src/rtps/wire/protocol.ts';
import type { Target } from './mutations.ts';

/** Number of datagrams that are kept, from the beginning. */
const MOST_KEPT = 500;
export const OWN_ADDRESS = '10.0.0.1';
const STATUS = { memory_percent: 1, disk_percent: null, temperature: null, status: 'OK', timestamp: '2026-01-02T03:04:05.000Z' } as const;

/** A well-behaved peer that reads and writes /health_status. */
export interface Friend {
  readonly participant: TestParticipant;
  readonly writer: LocalWriter;
  readonly read: { last: Record<string, unknown> | null };
}

/** The embedded ROS 2 session as in the service, on a network in memory and in virtual time, with friends that are matched with it. */
export class FuzzedSession {
  readonly time: VirtualTime;
  readonly network: MemoryNetwork;
  readonly session: Session;
  readonly lines: string[] = [];
  /** Datagrams that friends sent to it. */
  readonly received: Buffer[] = [];
  readonly #said: Buffer[] = [];
  sentDatagrams = 0;
  sentOctets = 0;
  readonly #wire = new Wire();
  /** The node names of the last statuses that arrived: the test itself keeps nothing that grows. */
  readonly #names: string[] = [];
  #friends = 0;
  readonly #friendNames = new Set<GuidPrefix>();
  #samples = 0;

  constructor(t: Test) {
    this.time = new VirtualTime(t, 1000);
    this.network = this.#wire.host({ lan: OWN_ADDRESS });
    this.#wire.onFlight = ({ from, to, datagram, isMulticast }) => {
      if (from === OWN_ADDRESS) {
        this.sentDatagrams += 1;
        this.sentOctets += datagram.length;
        if (this.#said.length < MOST_KEPT) this.#said.push(copyOf(datagram));
        if (!isMulticast) this.#answer(datagram, to);
      } else if (this.received.length < MOST_KEPT) this.received.push(copyOf(datagram));
    };
    const log: Log = (level, message, fields) => {
      if (level === 'error') this.lines.push(`${message} ${JSON.stringify(fields)}`);
    };
    const monotonicSeconds = this.time.now;
    this.session = new Session(
      {
        discovery: { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [] },
        names: graphNames({ node_name: 'health_monitor', namespace: null }, []),
        listener: {
          onHealthStatus: ({ node_name }) => {
            this.#names.push(node_name);
            if (this.#names.length > MOST_KEPT) this.#names.shift();
          },
          onAlert: () => {},
          onSafeShutdown: async ({ reason }) => ({ success: true, message: reason }),
        },
        localNode: 'here',
        observe: 'always',
        publishSeconds: 1,
        isObserving: true,
        parameters: () => [],
        diagnostics: () => {
          throw new Error('nobody asks');
        },
        log,
        monotonicSeconds,
      },
      {
        domain: 0,
        prefix: newPrefix(),
        userData: '',
        network: this.network,
        staticPeers: [],
        localhostOnly: false,
        log,
        monotonicSeconds,
        wallMilliseconds: () => 1_700_000_000_000,
      },
      null,
    );
    t.teardown(() => this.session.stop());
  }

  /** Answers for invented participants: otherwise only their announcements would be read. */
  #answer(datagram: Buffer, to: string): void {
    const prefix = destinationOf(datagram);
    const { participant } = this.session;
    if (prefix === null || participant.isProven(prefix) || this.#friendNames.has(prefix)) return;
    const answer = ForgedParticipant.named(prefix).answer(datagram);
    if (answer) setTimeout(() => this.network.inject(answer, to, false), 1);
  }

  /** The target to which datagrams are redirected: its endpoints, as it has announced them. */
  get target(): Target {
    const data = only('data', this.#said).filter(({ payload }) => payload !== null);
    const announced = (by: number): number[] => [
      ...new Set(data.filter(({ sender }) => entityOf(sender) === by).map(({ payload }) => entityOf(guidIn(payload as Buffer)))),
    ];
    return {
      prefix: this.session.participant.prefix,
      writers: announced(ENTITY.PUBLICATIONS_WRITER),
      readers: announced(ENTITY.SUBSCRIPTIONS_WRITER),
    };
  }

  /** Adds a peer that discovers the session and is discovered. */
  async befriend(t: Test): Promise<Friend> {
    this.#friends += 1;
    const participant = participantOn(this.#wire.host({ lan: `10.0.0.${this.#friends + 1}` }), this.time.now);
    this.#friendNames.add(participant.prefix);
    const writer = participant.createWriter({
      topic: 'rt/health_status',
      type: HEALTH_STATUS.ddsName,
      transientLocal: true,
      depth: 10,
      userData: '',
    });
    const read: Friend['read'] = { last: null };
    participant.createReader({
      topic: 'rt/health_status',
      type: HEALTH_STATUS.ddsName,
      reliable: true,
      transientLocal: true,
      depth: 10,
      userData: '',
      onSample: ({ data }) => {
        read.last = decode(HEALTH_STATUS, data.payload ?? Buffer.alloc(0));
      },
    });
    t.teardown(() => participant.stop());
    await participant.start();
    await this.time.pass(3);
    return { participant, writer, read };
  }

  /** Publishes a status, as the service does once a second. */
  publish(): number {
    this.#samples += 1;
    this.session.publish(
      'healthStatus',
      encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, cpu_percent: this.#samples, node_name: 'here' })),
    );
    return this.#samples;
  }

  /** Whether samples pass between the session and a friend, both ways. */
  async exchanges({ participant, writer, read }: Friend): Promise<{ readonly out: boolean; readonly back: boolean }> {
    const number = this.publish();
    const name = `friend ${number}`;
    participant.write(writer, encode(HEALTH_STATUS, healthStatusMessage({ ...STATUS, cpu_percent: 1, node_name: name })));
    await this.time.pass(2);
    return {
      out: read.last?.['cpu_percent'] === number,
      back: this.#names.includes(name),
    };
  }
}

function guidIn(payload: Buffer): string {
  return ParameterList.ofPayload(payload)?.guid(PID.ENDPOINT_GUID) ?? '0'.repeat(32);
}
