import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../../testkit/effort.ts';
import { LIMITS } from '../limits.ts';
import { ParameterList, ParameterWriter } from './parameters.ts';
import { Malformed, PID } from './protocol.ts';

const GUID = '0102030405060708090a0b0c000001c1';

/** A parameter list of these octets in the endianness, as payload. */
function payload(parameters: readonly (readonly [id: number, value: readonly number[]])[], little: boolean, length?: number): Buffer {
  const parts = [...parameters, [PID.SENTINEL, []] as const].map(([id, value]) => {
    const part = Buffer.alloc(4 + value.length);
    const size = length !== undefined && id !== PID.SENTINEL ? length : value.length;
    if (little) part.writeUInt32LE(size * 65536 + id);
    else part.writeUInt32BE(id * 65536 + size);
    part.set(value, 4);
    return part;
  });
  return Buffer.concat([Buffer.from([0, little ? 3 : 2, 0, 0]), ...parts]);
}

function listOf(parameters: readonly (readonly [id: number, value: readonly number[]])[], little = true): ParameterList {
  return ParameterList.ofPayload(payload(parameters, little)) as ParameterList;
}

t.test('written values are read back', async (t) => {
  const locator = { address: '10.77.1.2', port: 7411 };
  const written = new ParameterWriter()
    .guid(PID.PARTICIPANT_GUID, GUID)
    .uint32(PID.DOMAIN_ID, 232)
    .uint32(PID.RELIABILITY, 2, 0, 7)
    .seconds(PID.PARTICIPANT_LEASE_DURATION, 20.25)
    .text(PID.ENTITY_NAME, 'Käfer')
    .octets(PID.USER_DATA, Buffer.from('enclave=/;'))
    .locator(PID.DEFAULT_UNICAST_LOCATOR, locator)
    .locator(PID.DEFAULT_UNICAST_LOCATOR, { ...locator, address: '192.168.0.1' })
    .bytes(PID.EXPECTS_INLINE_QOS, Buffer.from([1]));
  for (const list of [ParameterList.ofPayload(written.payload()), ParameterList.read(written.list(), 0, true).list.detached()]) {
    assert(list);
    t.equal(list.guid(PID.PARTICIPANT_GUID), GUID);
    t.equal(list.uint32(PID.DOMAIN_ID), 232);
    t.equal(list.uint32(PID.RELIABILITY), 2);
    t.equal(list.seconds(PID.PARTICIPANT_LEASE_DURATION), 20.25);
    t.equal(list.text(PID.ENTITY_NAME), 'Käfer');
    t.equal(list.text(PID.USER_DATA), 'enclave=/;', 'octets without a zero at the end');
    t.same(list.locators(PID.DEFAULT_UNICAST_LOCATOR), [locator, { ...locator, address: '192.168.0.1' }]);
    t.equal(list.bytes(PID.EXPECTS_INLINE_QOS)?.[0], 1);
    t.equal(list.guid(PID.ENDPOINT_GUID), null, 'what is not there');
    t.same(list.texts(PID.PARTITION), []);
    t.ok(list.isUnderstood);
  }
});

t.test('both endiannesses', async (t) => {
  const big = listOf(
    [
      [PID.DOMAIN_ID, [0, 0, 1, 2]],
      [PID.PARTICIPANT_LEASE_DURATION, [0, 0, 0, 10, 0x80, 0, 0, 0]],
      [PID.PARTITION, [0, 0, 0, 2, 0, 0, 0, 2, 0x61, 0, 0, 0, 0, 0, 0, 1, 0]],
      [PID.DEFAULT_UNICAST_LOCATOR, [0, 0, 0, 1, 0, 0, 0x1c, 0xf3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]],
    ],
    false,
  );
  t.equal(big.uint32(PID.DOMAIN_ID), 258);
  t.equal(big.seconds(PID.PARTICIPANT_LEASE_DURATION), 10.5);
  t.same(big.texts(PID.PARTITION), ['a', '']);
  t.same(big.locators(PID.DEFAULT_UNICAST_LOCATOR), [{ address: '10.0.0.1', port: 7411 }]);
});

t.test('durations', async (t) => {
  const seconds = (...value: number[]): number | null => listOf([[PID.DEADLINE, value]]).seconds(PID.DEADLINE);
  t.equal(seconds(0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff), Number.POSITIVE_INFINITY);
  t.equal(seconds(0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0), Number.POSITIVE_INFINITY);
  t.equal(seconds(0, 0, 0, 0, 0, 0, 0, 0), 0);
  t.equal(seconds(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), -1, 'negative');
});

t.test('ignored locators', async (t) => {
  const found = (kind: number, port: number, a: number, b = 0, c = 0, d = 1): unknown => {
    const value = Buffer.alloc(24);
    value.writeUInt32LE(kind, 0);
    value.writeUInt32LE(port, 4);
    value.set([a, b, c, d], 20);
    return listOf([[PID.UNICAST_LOCATOR, [...value]]]).locators(PID.UNICAST_LOCATOR)[0];
  };
  t.same(found(1, 7411, 127), { address: '127.0.0.1', port: 7411 });
  t.same(found(1, 65535, 223, 255, 255, 255), { address: '223.255.255.255', port: 65535 });
  for (const [what, kind, port, first] of [
    ['IPv6', 2, 7411, 10],
    ['TCP', 4, 7411, 10],
    ['shared memory', 16, 7411, 10],
    ['no port', 1, 0, 10],
    ['a port too large', 1, 65536, 10],
    ['this network', 1, 7411, 0],
    ['a group', 1, 7411, 239],
    ['broadcast', 1, 7411, 255],
  ] as const) {
    t.equal(found(kind, port, first), undefined, what);
  }
  t.same(listOf([[PID.UNICAST_LOCATOR, [1, 0, 0, 0]]]).locators(PID.UNICAST_LOCATOR), [], 'cut short');
});

t.test('must-understand parameters', async (t) => {
  const understood = (id: number): boolean => listOf([[id, [0, 0, 0, 0]]]).isUnderstood;
  t.ok(understood(0x0077), 'unknown, may be ignored');
  t.ok(understood(0x8077), 'of a vendor, may be ignored');
  t.notOk(understood(0x4014), 'the domain tag of RTPS 2.4');
  t.notOk(understood(0xc077), 'of a vendor');
  t.ok(understood(0x4000 | PID.DEADLINE), 'known');
  t.equal(listOf([[0x4000 | PID.DOMAIN_ID, [9, 0, 0, 0]]]).uint32(PID.DOMAIN_ID), 9);
  t.equal(listOf([[0x4014, []]]).detached().isUnderstood, false);
});

t.test('values that are too short or exceed the list', async (t) => {
  const short = listOf([[PID.DOMAIN_ID, [1, 2, 3]]]);
  t.throws(() => short.uint32(PID.DOMAIN_ID), Malformed);
  t.throws(() => short.guid(PID.DOMAIN_ID), Malformed);
  t.throws(() => short.seconds(PID.DOMAIN_ID), Malformed);
  const lying = listOf([[PID.PARTITION, [0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0, 1, 1, 1, 1]]]);
  t.throws(() => lying.text(PID.PARTITION), Malformed);
  t.throws(() => lying.texts(PID.PARTITION), Malformed);
  t.throws(() => listOf([[PID.PARTITION, [3, 0, 0, 0, 0, 0, 0, 0]]]).texts(PID.PARTITION), Malformed, 'fewer strings than the count');
});

t.test('invalid lists', async (t) => {
  t.equal(ParameterList.ofPayload(Buffer.from([0, 1, 0, 0, 1, 0, 0, 0])), null, 'CDR');
  t.equal(ParameterList.ofPayload(Buffer.from([0, 3])), null, 'nothing');
  t.throws(() => ParameterList.ofPayload(Buffer.from([0, 3, 0, 0])), Malformed, 'without an end');
  t.throws(() => ParameterList.ofPayload(payload([[PID.DOMAIN_ID, [0]]], true, 500)), Malformed, 'a length that lies');
  const pads = Array.from({ length: 300 }, () => [PID.PAD, []] as const);
  t.throws(() => ParameterList.ofPayload(payload(pads, true)), Malformed, 'more than 256 parameters');
  t.ok(ParameterList.ofPayload(payload(pads.slice(0, 255), true)), '256 parameters with the sentinel');
});

t.test('long names are cut', async (t) => {
  const list = ParameterList.ofPayload(new ParameterWriter().text(PID.TOPIC_NAME, 'x'.repeat(50_000)).payload());
  t.equal(list?.text(PID.TOPIC_NAME)?.length, LIMITS.nameOctets);
});

t.test('arbitrary octets', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (octets, little) => {
      try {
        const { list, end } = ParameterList.read(Buffer.from(octets), 0, little);
        assert.ok(end <= octets.length);
        for (const id of Object.values(PID)) {
          list.locators(id);
          for (const read of ['uint32', 'guid', 'text', 'texts', 'seconds'] as const) {
            try {
              list[read](id);
            } catch (error) {
              assert.ok(error instanceof Malformed, String(error));
            }
          }
        }
      } catch (error) {
        assert.ok(error instanceof Malformed, String(error));
      }
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});
