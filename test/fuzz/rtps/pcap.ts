import { readFileSync } from 'node:fs';

/** A UDP datagram of a capture. */
export interface Captured {
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly payload: Buffer;
}

const FILE_HEADER_OCTETS = 24;
const RECORD_HEADER_OCTETS = 16;
const ETHERNET_OCTETS = 14;
const UDP_OCTETS = 8;
const IPV4 = 0x0800;
const UDP = 17;
/** More fragments, or an offset: parts of a datagram are skipped. */
const FRAGMENTED = 0x3fff;

/** The complete UDP datagrams over IPv4 in a tcpdump file (little endian, Ethernet), in order. */
export function readCapture(file: string): Captured[] {
  const capture = readFileSync(file);
  const found: Captured[] = [];
  for (let at = FILE_HEADER_OCTETS; at + RECORD_HEADER_OCTETS <= capture.length; ) {
    const octets = capture.readUInt32LE(at + 8);
    const frame = capture.subarray(at + RECORD_HEADER_OCTETS, at + RECORD_HEADER_OCTETS + octets);
    at += RECORD_HEADER_OCTETS + octets;
    if (frame.readUInt16BE(12) !== IPV4) continue;
    const packet = frame.subarray(ETHERNET_OCTETS);
    if (packet[9] !== UDP || (packet.readUInt16BE(6) & FRAGMENTED) !== 0) continue;
    const udp = packet.subarray(((packet[0] as number) & 0x0f) * 4);
    found.push({
      source: packet.subarray(12, 16).join('.'),
      destination: packet.subarray(16, 20).join('.'),
      port: udp.readUInt16BE(2),
      payload: udp.subarray(UDP_OCTETS, udp.readUInt16BE(4)),
    });
  }
  return found;
}
