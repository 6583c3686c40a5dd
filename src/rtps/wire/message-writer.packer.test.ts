import t from 'tap';
import type { Change, MatchedReader } from '../endpoints/writer.ts';
import { destinationOf, dissect, only } from '../testing/dissect.ts';
import { Packer } from './message-writer.ts';
import { FRAGMENT_OCTETS, guidOf, prefixOf, VENDOR } from './protocol.ts';

const OWN = '0000aaaaaaaaaaaaaaaaaaaa';
const PEER = '0110bbbbbbbbbbbbbbbbbbbb';
const WRITER = 0x103;
const READER: MatchedReader = { guid: guidOf(PEER, 0x204), reliable: true, transientLocal: true, userData: 'typehash=' };
/** What goes through Ethernet in one piece: 1500 less the headers of IP and UDP. */
const MOST_OCTETS = 1472;

const change = (sequenceNumber: number, payload: Change['payload']): Change => ({
  sequenceNumber,
  payload,
  isKey: false,
  inlineQos: null,
  timestampMs: 1_700_000_000_250,
  only: null,
  instance: null,
});

t.test('submessages for one reader are packed in order into few datagrams of bounded size', async (t) => {
  const packer = new Packer(OWN, VENDOR.UNKNOWN);
  const changes = Array.from({ length: 30 }, (_, i) => change(i + 1, Buffer.alloc(150, i)));
  const datagrams = packer.forReader(prefixOf(READER.guid), WRITER, READER, [
    ...changes.map((entry) => ({ kind: 'data', change: entry }) as const),
    { kind: 'gap', numbers: [31, 32, 40] },
    { kind: 'heartbeat', first: 1, last: 40 },
  ]);
  t.ok(datagrams.length <= 6, `${datagrams.length} datagrams`);
  for (const datagram of datagrams) {
    t.ok(datagram.length <= MOST_OCTETS, `${datagram.length} octets`);
    t.equal(destinationOf(datagram), PEER);
    t.equal(datagram.toString('hex', 8, 20), OWN);
  }
  const parts = datagrams.flatMap((datagram) => dissect(datagram));
  t.same(
    parts.map((part) => (part.kind === 'data' ? part.sequenceNumber : part.kind)),
    [...changes.map(({ sequenceNumber }) => sequenceNumber), 'gap', 'heartbeat'],
  );
  for (const part of parts) t.match(part, { sender: guidOf(OWN, WRITER), receiver: 0x204 });
  for (const part of parts) if (part.kind === 'data') t.equal(part.sourceTimestampMs, 1_700_000_000_250);
});

t.test('a large sample in fragments, or some of them', async (t) => {
  const packer = new Packer(OWN, VENDOR.UNKNOWN);
  const large = change(7, Buffer.alloc(5 * FRAGMENT_OCTETS + 1, 'x'));
  const all = packer.forReader(prefixOf(READER.guid), WRITER, READER, [{ kind: 'data', change: large }]);
  t.same(
    only('dataFrag', all).map(({ fragmentStart }) => fragmentStart),
    [1, 2, 3, 4, 5, 6],
  );
  for (const datagram of all) t.ok(datagram.length <= MOST_OCTETS, `${datagram.length} octets`);
  const some = packer.forReader(prefixOf(READER.guid), WRITER, READER, [
    { kind: 'fragments', change: large, numbers: [0, 2, 6, 7, 2 ** 32] },
  ]);
  t.same(
    only('dataFrag', some).map(({ fragmentStart }) => fragmentStart),
    [2, 6],
    'those that there are',
  );
  const small = packer.forReader(prefixOf(READER.guid), WRITER, READER, [
    { kind: 'fragments', change: change(8, Buffer.from('small')), numbers: [1] },
  ]);
  t.equal(only('data', small).length, 1, 'what is in one piece is sent in one piece');
});

t.test('a payload that depends on the reader', async (t) => {
  const packer = new Packer(OWN, VENDOR.UNKNOWN);
  const depends = change(1, ({ userData }) => Buffer.from(userData.includes('typehash=') ? 'iron' : 'old!'));
  for (const [userData, payload] of [
    ['typehash=', 'iron'],
    ['', 'old!'],
  ] as const) {
    const [data] = only(
      'data',
      packer.forReader(prefixOf(READER.guid), WRITER, { ...READER, userData }, [{ kind: 'data', change: depends }]),
    );
    t.equal(String(data?.payload), payload);
  }
});

t.test('counts only increase', async (t) => {
  const packer = new Packer(OWN, VENDOR.UNKNOWN);
  const writer = { guid: guidOf(PEER, 0x103), reliable: true, transientLocal: true, vendor: VENDOR.FAST_DDS, userData: '' };
  const datagrams = [1, 2, 3].flatMap(() => [
    ...packer.forReader(prefixOf(READER.guid), WRITER, READER, [{ kind: 'heartbeat', first: 1, last: 1 }]),
    ...packer.forWriter(prefixOf(writer.guid), 0x204, writer, [
      { kind: 'ackNack', set: { base: 1, numbers: [2] }, isFinal: false },
      { kind: 'nackFrag', sequenceNumber: 1, set: { base: 1, numbers: [1] } },
    ]),
  ]);
  const counts = datagrams.flatMap((datagram) => dissect(datagram)).flatMap((part) => ('count' in part ? part.count : []));
  t.equal(counts.length, 6);
  t.same(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  t.equal(new Set(counts).size, 6);
});

t.test('a sample in no history, to all participants or to one', async (t) => {
  const packer = new Packer(OWN, VENDOR.UNKNOWN);
  const all = packer.single(0x100c2, change(1, Buffer.from('here')), null);
  t.equal(destinationOf(all), null);
  t.match(dissect(all)[0], { kind: 'data', receiver: 0, sequenceNumber: 1 });
  const one = packer.single(0x100c2, change(1, Buffer.from('here')), PEER);
  t.equal(destinationOf(one), PEER);
  t.equal(dissect(one, OWN.replace('a', 'c')).length, 0, 'other participants ignore it');
});
