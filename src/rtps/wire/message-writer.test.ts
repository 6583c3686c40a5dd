import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { dissect } from '../testing/dissect.ts';
import { message } from '../testing/octets.ts';
import * as write from './message-writer.ts';
import { ParameterWriter } from './parameters.ts';
import { guidOf, PID } from './protocol.ts';

const PEER = '0110aaaaaaaaaaaaaaaaaaaa';
const OWN = '0000bbbbbbbbbbbbbbbbbbbb';
const WRITER = 0x00000103;
const READER = 0x00000204;
const fromWriter = { sender: guidOf(PEER, WRITER), senderEntity: WRITER, receiver: READER };

t.test('written values are read back', async () => {
  const number = fc.nat(2 ** 40).map((n) => n + 1);
  const offsets = fc.uniqueArray(fc.nat(255), { maxLength: 40 }).map((list) => list.sort((a, b) => a - b));
  const inlineQos = new ParameterWriter().bytes(PID.KEY_HASH, Buffer.alloc(16, 7)).list();
  fc.assert(
    fc.property(number, offsets, fc.nat(0xffffffff), fc.boolean(), fc.uint8Array({ maxLength: 99 }), (first, list, count, flag, octets) => {
      const read = (part: Buffer): unknown => {
        const [found] = dissect(Buffer.concat([write.header(PEER, 0x0110), part]), OWN);
        if (found?.kind !== 'data') return found;
        const { inlineQos: qos, ...rest } = found;
        return { ...rest, hash: qos?.bytes(PID.KEY_HASH)?.toString('hex') };
      };
      const set = { base: first, numbers: list.map((offset) => first + offset) };
      assert.deepEqual(read(write.ackNack(WRITER, READER, set, count, flag)), {
        kind: 'ackNack',
        sender: guidOf(PEER, WRITER),
        senderEntity: WRITER,
        receiver: READER,
        set,
        count,
        isFinal: flag,
      });
      assert.deepEqual(read(write.heartbeat(READER, WRITER, first, first + list.length, count, flag)), {
        kind: 'heartbeat',
        ...fromWriter,
        first,
        last: first + list.length,
        count,
        isFinal: flag,
      });
      const fragments = { base: (first % 2 ** 31) + 1, numbers: list.map((offset) => (first % 2 ** 31) + 1 + offset) };
      assert.deepEqual(read(write.nackFrag(READER, WRITER, first, fragments, count)), {
        kind: 'nackFrag',
        sender: guidOf(PEER, READER),
        senderEntity: READER,
        receiver: WRITER,
        sequenceNumber: first,
        set: fragments,
      });
      const content = { sequenceNumber: first, payload: Buffer.from(octets), isKey: flag, inlineQos };
      const padded = Buffer.concat([octets, Buffer.alloc(-octets.length & 3)]);
      const common = { ...fromWriter, sequenceNumber: first, sourceTimestampMs: null, hash: '07'.repeat(16) };
      assert.deepEqual(read(write.data(READER, WRITER, content)), { kind: 'data', ...common, payload: padded, isKey: flag });
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});

t.test('a large sample in fragments', async (t) => {
  const sample = Buffer.from(Array.from({ length: 1000 }, (_, i) => i & 0xff));
  const content = { sequenceNumber: 9, payload: sample, isKey: false, inlineQos: new ParameterWriter().text(PID.TOPIC_NAME, 'x').list() };
  const parts = [1, 2, 3, 4].map((number) => write.dataFrag(READER, WRITER, content, number, 300));
  const read = dissect(Buffer.concat([write.header(PEER, 0), ...parts]), OWN);
  const pieces = read.map((part) => {
    assert(part.kind === 'dataFrag');
    t.match(part, { fragmentCount: 1, fragmentOctets: 300, sampleOctets: 1000, sequenceNumber: 9 });
    return part.payload;
  });
  t.same(Buffer.concat(pieces).subarray(0, 1000), sample);
  t.same(
    read.map((part) => part.kind === 'dataFrag' && part.inlineQos !== null),
    [true, false, false, false],
    'inline QoS once',
  );
});

t.test('a payload too large for its length field extends to the end of the datagram', async (t) => {
  const datagram = Buffer.concat([
    write.header(PEER, 0),
    write.data(READER, WRITER, { sequenceNumber: 1, payload: Buffer.alloc(70_000), isKey: false, inlineQos: null }),
  ]);
  const [read] = dissect(datagram, OWN);
  t.equal(read?.kind === 'data' && read.payload?.length, 70_000);
});

t.test('gaps contain every number once', async () => {
  const numbers = fc
    .uniqueArray(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 300 })
    .map((list) => list.sort((a, b) => a - b));
  fc.assert(
    fc.property(numbers, (list) => {
      const reported: number[] = [];
      let messages = 0;
      for (let rest: readonly number[] = list; rest.length > 0; messages += 1) {
        const next = write.gap(READER, WRITER, rest);
        assert.ok(next.rest.length < rest.length);
        const [read] = dissect(message(PEER, next.message), OWN);
        assert(read?.kind === 'gap');
        for (let number = read.start; number < read.set.base; number += 1) reported.push(number);
        reported.push(...read.set.numbers);
        rest = next.rest;
      }
      assert.deepEqual(reported, list);
      assert.ok(messages <= 9);
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});
