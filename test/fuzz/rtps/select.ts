import type { Captured } from './pcap.ts';

const DATA_FRAG = 0x16;
/** How many datagrams of each shape are kept. */
const MOST_ALIKE = 2;
/** Announcements with these names differ from other announcements. */
const NAMES = /safe_shutdown(?:Request|Reply)|health_status|ros_discovery_info/g;

interface Outline {
  /** The kinds of submessages with their source and destination entities: datagrams of the same shape are alike. */
  readonly shape: string;
  /** Which sample its fragments belong to; null: none. */
  readonly fragmentsOf: string | null;
}

/** Reads only what determines the shape of a datagram, without the code under test, so that a recording does not depend on it. */
function outline(datagram: Buffer): Outline {
  const shape: string[] = [];
  let fragmentsOf: string | null = null;
  for (let at = 20; at + 4 <= datagram.length; ) {
    const [kind = 0, flags = 0] = datagram.subarray(at, at + 2);
    const little = (flags & 1) !== 0;
    const said = little ? datagram.readUInt16LE(at + 2) : datagram.readUInt16BE(at + 2);
    const body = datagram.subarray(at + 4);
    const entities =
      kind === 0x15 || kind === DATA_FRAG
        ? body.subarray(4, 12)
        : kind === 0x06 || kind === 0x07 || kind === 0x08 || kind === 0x12
          ? body.subarray(0, 8)
          : Buffer.alloc(0);
    shape.push(`${kind.toString(16)}/${flags}/${entities.toString('hex')}`);
    if (kind === DATA_FRAG) fragmentsOf = body.subarray(4, 20).toString('hex');
    at += 4 + (said === 0 && kind !== 0x01 && kind !== 0x09 ? body.length : said);
  }
  return { shape: shape.join(' '), fragmentsOf };
}

/** Selects datagrams that differ in shape, and all fragments of the first fragmented sample. */
export function select(all: readonly Captured[]): Captured[] {
  const seen = new Map<string, number>();
  const contents = new Set<string>();
  let sample: string | null = null;
  return all.filter(({ payload }) => {
    const { shape, fragmentsOf } = outline(payload);
    const content = payload.toString('latin1');
    if (contents.has(content)) return false;
    contents.add(content);
    if (fragmentsOf !== null) sample ??= fragmentsOf;
    if (fragmentsOf !== null && fragmentsOf === sample) return true;
    const key = `${payload.toString('hex', 8, 20)} ${shape} ${content.match(NAMES)}`;
    const alike = (seen.get(key) ?? 0) + 1;
    seen.set(key, alike);
    return alike <= MOST_ALIKE;
  });
}
