import { rateLimited } from '../../core/platform/log.ts';
import type { LocalReader, LocalWriter, TopicReaderOptions, TopicWriterOptions } from '../endpoints/endpoints.ts';
import type { Network } from '../net/network.ts';
import { Participant, type ParticipantOptions } from '../participant.ts';

export const TOPIC = { topic: 'rt/health_status', type: 'edge_health_interfaces::msg::dds_::HealthStatus_', userData: '' } as const;

let made = 0;

export interface TestParticipant extends Participant {
  /** Lines of warning, notice and error. */
  readonly lines: string[];
}

/** A participant with a unique name, on a network in memory unless the options contain another one. */
export function participantOn(network: Network, now: () => number, options: Partial<ParticipantOptions> = {}): TestParticipant {
  made += 1;
  const lines: string[] = [];
  const participant = new Participant({
    domain: 0,
    prefix: `0000${made.toString(16).padStart(20, '0')}`,
    name: `participant ${made}`,
    userData: '',
    network,
    staticPeers: [],
    localhostOnly: false,
    log: rateLimited((level, message, fields) => {
      if (level !== 'debug') lines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
    }, now),
    monotonicSeconds: now,
    wallMilliseconds: () => 1_700_000_000_000 + now() * 1000,
    ...options,
  });
  return Object.assign(participant, { lines });
}

/** A writer of the topic: reliable, transient local, keep last 10. */
export function writerOf(participant: Participant, options: Partial<TopicWriterOptions> = {}): LocalWriter {
  return participant.createWriter({ ...TOPIC, transientLocal: true, depth: 10, ...options });
}

export interface TestReader extends LocalReader {
  /** The received samples, as text. */
  readonly samples: string[];
}

export function readerOf(participant: Participant, options: Partial<TopicReaderOptions> = {}): TestReader {
  const samples: string[] = [];
  const onSample: TopicReaderOptions['onSample'] = ({ data }) => samples.push(String(data.payload).replace(/\0+$/, ''));
  const reader = participant.createReader({ ...TOPIC, reliable: true, transientLocal: true, depth: 10, onSample, ...options });
  return Object.assign(reader, { samples });
}
