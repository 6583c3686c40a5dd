/** A datagram, split into its header and its submessages as far as their lengths are correct. */
export interface Parts {
  readonly head: Buffer;
  readonly submessages: readonly Buffer[];
}

const HEAD_OCTETS = 20;
const KIND = {
  ACKNACK: 0x06,
  HEARTBEAT: 0x07,
  GAP: 0x08,
  INFO_TS: 0x09,
  INFO_DST: 0x0e,
  NACK_FRAG: 0x12,
  HEARTBEAT_FRAG: 0x13,
  DATA: 0x15,
  DATA_FRAG: 0x16,
};

export function partsOf(datagram: Buffer): Parts {
  const submessages: Buffer[] = [];
  for (let at = HEAD_OCTETS; at + 4 <= datagram.length; ) {
    const said = ((datagram[at + 1] as number) & 1) !== 0 ? datagram.readUInt16LE(at + 2) : datagram.readUInt16BE(at + 2);
    const end = said === 0 && datagram[at] !== KIND.INFO_TS ? datagram.length : at + 4 + said;
    submessages.push(datagram.subarray(at, end));
    at = end;
  }
  return { head: datagram.subarray(0, HEAD_OCTETS), submessages };
}

/** The destination of a redirected datagram: the participant under test, and one of its endpoints. */
export interface Target {
  readonly prefix: string;
  readonly writers: readonly number[];
  readonly readers: readonly number[];
}

/** A recorded datagram as if it had been sent to the target: the destination becomes one of its user endpoints. */
export function redirected(datagram: Buffer, target: Target, random: () => number): Buffer {
  const copy = Buffer.from(datagram);
  const pick = (list: readonly number[]): number => list[Math.floor(random() * list.length)] as number;
  for (const part of partsOf(copy).submessages) {
    const kind = part[0];
    if (kind === KIND.INFO_DST && part.length >= 16) part.write(target.prefix, 4, 'hex');
    // The reader comes first, also without a writer; 0 and the endpoints of discovery are kept.
    const isOfReader = kind === KIND.ACKNACK || kind === KIND.NACK_FRAG;
    const isOfWriter = kind === KIND.HEARTBEAT || kind === KIND.GAP || kind === KIND.HEARTBEAT_FRAG;
    const at = isOfReader ? 8 : isOfWriter ? 4 : kind === KIND.DATA || kind === KIND.DATA_FRAG ? 8 : null;
    if (at === null || part.length < at + 4) continue;
    const entity = part.readUInt32BE(at);
    if (entity !== 0 && (entity & 0xc0) === 0) part.writeUInt32BE(pick(isOfReader ? target.writers : target.readers), at);
  }
  return copy;
}

/** Numbers that are likely to be wrong somewhere. */
const WORDS = [0, 1, 2, 255, 256, 257, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff];
const DATAGRAM_OCTETS = 65_507;

type Mutation = (datagram: Buffer, random: () => number, other: Buffer) => Buffer;

const at = (datagram: Buffer, random: () => number, octets = 1): number => Math.floor(random() * Math.max(1, datagram.length - octets + 1));
const joined = ({ head, submessages }: Parts): Buffer => Buffer.concat([head, ...submessages]).subarray(0, DATAGRAM_OCTETS);

/** What a datagram may become. Each mutation returns a new datagram, or changes the one that it was given. */
export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'as it was': (datagram) => datagram,
  'bits flipped': (datagram, random) => {
    for (let flips = 1 + Math.floor(random() * 8); flips > 0; flips -= 1) {
      const place = at(datagram, random);
      if (place < datagram.length) datagram[place] = (datagram[place] as number) ^ (1 << Math.floor(random() * 8));
    }
    return datagram;
  },
  'cut short': (datagram, random) => datagram.subarray(0, at(datagram, random)),
  'more behind it': (datagram, random) =>
    Buffer.concat([datagram, Buffer.from(Array.from({ length: 1 + Math.floor(random() * 64) }, () => random() * 256))]),
  'a word of another value': (datagram, random) => {
    for (let words = 1 + Math.floor(random() * 3); words > 0 && datagram.length >= 4; words -= 1) {
      const word = WORDS[Math.floor(random() * WORDS.length)] as number;
      const place = at(datagram, random, 4);
      const aligned = random() < 0.8 ? place & ~3 : place;
      random() < 0.8 ? datagram.writeUInt32LE(word, aligned) : datagram.writeUInt32BE(word, aligned);
    }
    return datagram;
  },
  'a length that lies': (datagram, random) => {
    const { submessages } = partsOf(datagram);
    const part = submessages[Math.floor(random() * submessages.length)];
    if (part && part.length >= 4) part.writeUInt16LE(Math.floor(random() * (random() < 0.5 ? 80 : 65_536)), 2);
    return datagram;
  },
  'another endianness': (datagram, random) => {
    for (const part of partsOf(datagram).submessages) if (random() < 0.5) part[1] = (part[1] ?? 0) ^ 1;
    return datagram;
  },
  'other flags': (datagram, random) => {
    for (const part of partsOf(datagram).submessages) if (random() < 0.5) part[1] = ((part[1] ?? 0) & 1) | Math.floor(random() * 256);
    return datagram;
  },
  'another kind': (datagram, random) => {
    for (const part of partsOf(datagram).submessages) if (random() < 0.3) part[0] = Math.floor(random() * 0x20);
    return datagram;
  },
  'a submessage again and again': (datagram, random) => {
    const { head, submessages } = partsOf(datagram);
    const times = 1 + Math.floor(random() * (random() < 0.02 ? 1000 : 20));
    return joined({ head, submessages: submessages.flatMap((part) => (random() < 0.5 ? Array<Buffer>(times).fill(part) : [part])) });
  },
  'spliced with another': (datagram, random, other) => {
    const { head, submessages } = partsOf(datagram);
    const mixed = [...submessages, ...partsOf(other).submessages].sort(() => random() - 0.5);
    return joined({ head, submessages: mixed.slice(0, 1 + Math.floor(random() * mixed.length)) });
  },
  'from another participant': (datagram, random) => {
    const sender = datagram.subarray(8, HEAD_OCTETS);
    if (sender.length < 12) return datagram;
    const [known, changed] = [Buffer.from(sender), Buffer.from(sender)];
    changed.writeUInt16BE(Math.floor(random() * 2000), 10);
    // At every occurrence, also in announcements.
    for (let found = datagram.indexOf(known); found >= 0; found = datagram.indexOf(known, found + 12)) changed.copy(datagram, found);
    return datagram;
  },
};

const NAMES = Object.keys(MUTATIONS);

/** Applies one to three mutations to a datagram that is not shared. */
export function mutated(datagram: Buffer, other: Buffer, random: () => number): Buffer {
  let result = datagram;
  for (let times = 1 + Math.floor(random() * 3); times > 0; times -= 1) {
    const name = NAMES[Math.floor(random() * NAMES.length)] as string;
    result = Buffer.from((MUTATIONS[name] as Mutation)(result, random, other));
  }
  return result;
}
