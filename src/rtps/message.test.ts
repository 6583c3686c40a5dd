import assert from 'node:assert/strict';
import t from 'tap';
import { dissect } from './testing/dissect.ts';
import { entity, message, type Part, sn, submessage, u16, u32 } from './testing/octets.ts';
import { isRtps, readMessage } from './wire/message-reader.ts';
import { guidOf, Malformed, PID } from './wire/protocol.ts';

const PEER = '0110aaaaaaaaaaaaaaaaaaaa';
const OWN = '0000bbbbbbbbbbbbbbbbbbbb';
const WRITER = 0x00000103;
const READER = 0x00000204;
const KIND = {
  PAD: 1,
  ACKNACK: 6,
  HEARTBEAT: 7,
  GAP: 8,
  INFO_TS: 9,
  INFO_SRC: 12,
  INFO_DST: 14,
  NACK_FRAG: 18,
  HEARTBEAT_FRAG: 19,
  DATA: 21,
  DATA_FRAG: 22,
};

const fromWriter = { sender: guidOf(PEER, WRITER), senderEntity: WRITER, receiver: READER };
const fromReader = { sender: guidOf(PEER, READER), senderEntity: READER, receiver: WRITER };
const ends: readonly Part[] = [entity(READER), entity(WRITER)];
const payload = Buffer.from('0001000007000000', 'hex');

/** Each submessage as 9.4.5 draws it, and what is to be read of it. */
const DRAWN: Record<string, { kind: number; flags?: number; parts: Part[]; read: object }> = {
  data: {
    kind: KIND.DATA,
    flags: 4,
    parts: [u16(0), u16(16), ...ends, sn(2 ** 33 + 5), payload],
    read: { kind: 'data', ...fromWriter, sequenceNumber: 2 ** 33 + 5, payload, isKey: false, inlineQos: null, sourceTimestampMs: null },
  },
  'data with more before the inline QoS than this version knows': {
    kind: KIND.DATA,
    flags: 4,
    parts: [u16(0), u16(20), ...ends, sn(1), u32(99), payload],
    read: { kind: 'data', ...fromWriter, sequenceNumber: 1, payload, isKey: false, inlineQos: null, sourceTimestampMs: null },
  },
  'data without a payload': {
    kind: KIND.DATA,
    parts: [u16(0), u16(16), ...ends, sn(1)],
    read: { kind: 'data', ...fromWriter, sequenceNumber: 1, payload: null, isKey: false, inlineQos: null, sourceTimestampMs: null },
  },
  key: {
    kind: KIND.DATA,
    flags: 8,
    parts: [u16(0), u16(16), ...ends, sn(1), payload],
    read: { kind: 'data', ...fromWriter, sequenceNumber: 1, payload, isKey: true, inlineQos: null, sourceTimestampMs: null },
  },
  fragments: {
    kind: KIND.DATA_FRAG,
    parts: [u16(0), u16(28), ...ends, sn(7), u32(3), u16(2), u16(4), u32(19), payload],
    read: {
      kind: 'dataFrag',
      ...fromWriter,
      sequenceNumber: 7,
      payload,
      isKey: false,
      inlineQos: null,
      sourceTimestampMs: null,
      fragmentStart: 3,
      fragmentCount: 2,
      fragmentOctets: 4,
      sampleOctets: 19,
    },
  },
  heartbeat: {
    kind: KIND.HEARTBEAT,
    parts: [...ends, sn(3), sn(9), u32(4)],
    read: { kind: 'heartbeat', ...fromWriter, first: 3, last: 9, count: 4, isFinal: false },
  },
  'final heartbeat of an empty writer': {
    kind: KIND.HEARTBEAT,
    flags: 2,
    parts: [...ends, sn(1), sn(0), u32(4)],
    read: { kind: 'heartbeat', ...fromWriter, first: 1, last: 0, count: 4, isFinal: true },
  },
  heartbeatFrag: {
    kind: KIND.HEARTBEAT_FRAG,
    parts: [...ends, sn(3), u32(12), u32(4)],
    read: { kind: 'heartbeatFrag', ...fromWriter, sequenceNumber: 3 },
  },
  gap: {
    kind: KIND.GAP,
    parts: [...ends, sn(3), sn(10), u32(3), u32(0xa0000000)],
    read: { kind: 'gap', ...fromWriter, start: 3, set: { base: 10, numbers: [10, 12] } },
  },
  acknack: {
    kind: KIND.ACKNACK,
    parts: [...ends, sn(10), u32(3), u32(0x60000000), u32(77)],
    read: { kind: 'ackNack', ...fromReader, set: { base: 10, numbers: [11, 12] }, count: 77, isFinal: false },
  },
  'final acknack of nothing': {
    kind: KIND.ACKNACK,
    flags: 2,
    parts: [...ends, sn(1), u32(0), u32(77)],
    read: { kind: 'ackNack', ...fromReader, set: { base: 1, numbers: [] }, count: 77, isFinal: true },
  },
  nackFrag: {
    kind: KIND.NACK_FRAG,
    parts: [...ends, sn(6), u32(2), u32(2), u32(0xc0000000), u32(5)],
    read: { kind: 'nackFrag', ...fromReader, sequenceNumber: 6, set: { base: 2, numbers: [2, 3] } },
  },
};

t.test('every submessage, in both endiannesses', async (t) => {
  for (const [what, { kind, flags = 0, parts, read }] of Object.entries(DRAWN)) {
    for (const little of [true, false]) {
      t.same(
        dissect(message(PEER, submessage(kind, parts, { flags, little })), OWN),
        [read],
        `${what}, ${little ? 'little' : 'big'} endian`,
      );
    }
  }
});

t.test('truncated submessages are refused', async (t) => {
  for (const [what, { kind, flags = 0, parts }] of Object.entries(DRAWN)) {
    const whole = submessage(kind, parts, { flags });
    const needed = kind === KIND.DATA ? 24 : kind === KIND.DATA_FRAG ? 36 : whole.length;
    // The count of NACK_FRAG, and the count and the last fragment of HEARTBEAT_FRAG, are ignored.
    const ignored = kind === KIND.HEARTBEAT_FRAG ? 8 : kind === KIND.NACK_FRAG ? 4 : 0;
    const looked = needed - ignored;
    for (let octets = 4; octets < looked; octets += 1) {
      const cut = Buffer.from(whole.subarray(0, octets));
      cut.writeUInt16LE(octets - 4, 2);
      assert.throws(
        () => dissect(message(PEER, cut), OWN),
        (error) => error instanceof Malformed || error instanceof RangeError,
        `${what}: ${octets}`,
      );
    }
    t.pass(what);
  }
});

t.test('inconsistent submessages are refused', async (t) => {
  const cases: Record<string, Buffer> = {
    'data 0': submessage(KIND.DATA, [u16(0), u16(16), ...ends, sn(0)]),
    'data that is a key as well': submessage(KIND.DATA, [u16(0), u16(16), ...ends, sn(1), payload], { flags: 12 }),
    'inline QoS beyond the end': submessage(KIND.DATA, [u16(0), u16(999), ...ends, sn(1)], { flags: 2 }),
    'inline QoS without its end': submessage(KIND.DATA, [u16(0), u16(16), ...ends, sn(1), u16(PID.KEY_HASH), u16(16)], { flags: 2 }),
    'fragment 0': submessage(KIND.DATA_FRAG, [u16(0), u16(28), ...ends, sn(1), u32(0), u16(1), u16(4), u32(8), payload]),
    'no fragments': submessage(KIND.DATA_FRAG, [u16(0), u16(28), ...ends, sn(1), u32(1), u16(0), u16(4), u32(8), payload]),
    'fragments of nothing': submessage(KIND.DATA_FRAG, [u16(0), u16(28), ...ends, sn(1), u32(1), u16(1), u16(0), u32(8), payload]),
    'fragments of an empty sample': submessage(KIND.DATA_FRAG, [u16(0), u16(28), ...ends, sn(1), u32(1), u16(1), u16(4), u32(0), payload]),
    'a fragment beyond the sample': submessage(KIND.DATA_FRAG, [u16(0), u16(28), ...ends, sn(1), u32(3), u16(1), u16(4), u32(8), payload]),
    'a heartbeat from 0': submessage(KIND.HEARTBEAT, [...ends, sn(0), sn(0), u32(1)]),
    'a heartbeat backwards': submessage(KIND.HEARTBEAT, [...ends, sn(9), sn(7), u32(1)]),
    'a gap from 0': submessage(KIND.GAP, [...ends, sn(0), sn(1), u32(0)]),
    'a gap backwards': submessage(KIND.GAP, [...ends, sn(5), sn(4), u32(0)]),
    'a length beyond the datagram': submessage(KIND.HEARTBEAT, [...ends, sn(1), sn(1), u32(1)], { says: 29 }),
    'a destination cut short': submessage(KIND.INFO_DST, [u32(0)]),
    'a source cut short': submessage(KIND.INFO_SRC, [u32(0), u32(0)]),
    'a time cut short': submessage(KIND.INFO_TS, [u32(0)]),
  };
  for (const [what, octets] of Object.entries(cases)) {
    t.throws(() => dissect(message(PEER, octets), OWN), what);
  }
});

t.test('submessages before an invalid one are handled', async (t) => {
  const good = submessage(KIND.HEARTBEAT, [...ends, sn(1), sn(1), u32(1)]);
  const bad = submessage(KIND.HEARTBEAT, [...ends, sn(0), sn(1), u32(1)]);
  let heartbeats = 0;
  const handler = { ...silent, onHeartbeat: () => (heartbeats += 1) };
  t.throws(() => readMessage(message(PEER, good, bad, good), Buffer.from(OWN, 'hex'), handler), Malformed);
  t.equal(heartbeats, 1);
});

const silent = {
  onMessage: (sender: string) => sender,
  onData: () => {},
  onDataFrag: () => {},
  onHeartbeat: () => {},
  onHeartbeatFrag: () => {},
  onGap: () => {},
  onAckNack: () => {},
  onNackFrag: () => {},
};

t.test('the receiver of a message (8.3.4)', async (t) => {
  const ask = submessage(KIND.HEARTBEAT, [...ends, sn(1), sn(1), u32(1)]);
  const to = (prefix: string): Buffer => submessage(KIND.INFO_DST, [Buffer.from(prefix, 'hex')]);
  const of = (prefix: string): Buffer => submessage(KIND.INFO_SRC, [u32(0), u32(0x0202_0110), Buffer.from(prefix, 'hex')]);
  const time = (little: boolean): Buffer => submessage(KIND.INFO_TS, [u32(1_700_000_000), u32(2 ** 31)], { little });
  const datum = submessage(KIND.DATA, [u16(0), u16(16), ...ends, sn(1)]);
  const stamps = (...parts: Buffer[]): unknown[] =>
    dissect(message(PEER, ...parts), OWN).map((entry) => (entry.kind === 'data' ? entry.sourceTimestampMs : null));
  const count = (...parts: Buffer[]): number => dissect(message(PEER, ...parts), OWN).length;

  t.equal(count(to(OWN), ask), 1, 'for us');
  t.equal(count(to(PEER), ask), 0, 'for another');
  t.equal(count(to(PEER), ask, to('0'.repeat(24)), ask), 1, 'then for all participants');
  t.equal(dissect(message(OWN, ask), OWN).length, 0, 'from ourselves');
  t.equal(count(of(OWN), ask), 0, 'from ourselves, forwarded');
  const other = '010f01010101010101010101';
  t.equal(dissect(message(PEER, of(other), ask), OWN)[0]?.sender, guidOf(other, WRITER), 'forwarded for another');
  t.same(stamps(time(true), datum), [1_700_000_000_500]);
  t.same(stamps(time(false), datum), [1_700_000_000_500], 'big endian');
  t.same(stamps(time(true), submessage(KIND.INFO_TS, [], { flags: 2 }), datum), [null], 'invalidated');
  t.same(stamps(time(true), of(other), datum), [null], 'of another sender');
  t.equal(count(submessage(KIND.PAD, []), submessage(0x55, [u32(1)]), submessage(0x80, [u32(1)]), ask), 1, 'padding and unknown kinds');
  t.equal(count(submessage(KIND.HEARTBEAT, [...ends, sn(1), sn(1), u32(1)], { says: 0 })), 1, 'no length: to the end');
  t.equal(count(submessage(KIND.PAD, [], { says: 0 }), ask), 1, 'except for padding');
  t.equal(count(ask, Buffer.from([7, 1, 0])), 1, 'less than a header at the end');
});

t.test('detection of RTPS', async (t) => {
  t.ok(isRtps(message(PEER)));
  t.notOk(isRtps(message(PEER).subarray(0, 19)), 'too short');
  t.notOk(isRtps(Buffer.from('RTPX\x02\x02'.padEnd(20, ' '))), 'another protocol');
  t.notOk(isRtps(Buffer.from('RTPS\x01\x00'.padEnd(20, ' '), 'latin1')), 'version 1');
  t.ok(isRtps(Buffer.from('RTPS\x02\x63'.padEnd(20, ' '), 'latin1')), 'a later minor version');
});
