import assert from 'node:assert/strict';
import t from 'tap';
import { OWN_QOS } from '../endpoints/qos.ts';
import { LIMITS } from '../limits.ts';
import { ParameterList, ParameterWriter } from '../wire/parameters.ts';
import { BUILTIN_ENDPOINTS, ENTITY, guidOf, Malformed, PID, VENDOR } from '../wire/protocol.ts';
import {
  endOfInstance,
  endpointPayload,
  isEnd,
  participantKey,
  participantPayload,
  readEndpoint,
  readParticipant,
} from './discovery-data.ts';

const PREFIX = '0110aabbccddeeff00112233';
const GUID = `${PREFIX}00000103`;

function list(payload: Buffer): ParameterList {
  const found = ParameterList.ofPayload(payload);
  assert(found);
  return found;
}

t.test('a participant is written and read back', async (t) => {
  const own = {
    prefix: PREFIX,
    vendor: VENDOR.CYCLONE_DDS,
    domain: 7,
    name: 'Käfer',
    userData: 'enclave=/;',
    leaseSeconds: 20.5,
    metaUnicast: [{ address: '10.0.0.1', port: 7410 }],
    userUnicast: [
      { address: '10.0.0.1', port: 7411 },
      { address: '192.168.1.1', port: 7411 },
    ],
  };
  const written = list(participantPayload(own, { address: '239.255.0.1', port: 7400 }));
  t.same(readParticipant(written, 7), { ...own, readsLiveliness: false });
  t.equal(readParticipant(written, 8), null, 'of another domain');
  const further = { metaUnicast: [{ address: '10.0.9.1', port: 7410 }], userUnicast: [{ address: '10.0.9.1', port: 7411 }] };
  const withFurther = (vendor: number): unknown => {
    const read = readParticipant(list(participantPayload({ ...own, vendor }, null, further)), 7);
    return [read?.metaUnicast, read?.userUnicast];
  };
  t.same(withFurther(VENDOR.UNKNOWN), [
    [...own.metaUnicast, ...further.metaUnicast],
    [...own.userUnicast, ...further.userUnicast],
  ]);
  t.same(withFurther(VENDOR.FAST_DDS), [own.metaUnicast, own.userUnicast], 'numbers of another vendor');
  t.equal(written.uint32(PID.BUILTIN_ENDPOINT_SET), BUILTIN_ENDPOINTS);
  t.equal(list(participantKey(PREFIX)).guid(PID.PARTICIPANT_GUID), guidOf(PREFIX, ENTITY.PARTICIPANT));
});

t.test('optional parameters of a participant may be missing', async (t) => {
  const guid = guidOf(PREFIX, ENTITY.PARTICIPANT);
  const read = readParticipant(list(new ParameterWriter().guid(PID.PARTICIPANT_GUID, guid).payload()), 3);
  const defaults = { vendor: 0, domain: null, name: '', userData: '', leaseSeconds: 100, metaUnicast: [], userUnicast: [] };
  t.same(read, { prefix: PREFIX, ...defaults, readsLiveliness: false });
  const set = new ParameterWriter().guid(PID.PARTICIPANT_GUID, guid).uint32(PID.BUILTIN_ENDPOINT_SET, 0xc3f).payload();
  t.equal(readParticipant(list(set), 0)?.readsLiveliness, true);
  const lease = (seconds: number) => {
    const payload = new ParameterWriter().guid(PID.PARTICIPANT_GUID, guid).uint32(PID.PARTICIPANT_LEASE_DURATION, seconds, 0).payload();
    return readParticipant(list(payload), 0)?.leaseSeconds;
  };
  t.equal(lease(0x7fffffff), LIMITS.leaseSeconds, 'without end');
  t.equal(lease(10), 10);
  t.equal(lease(-5), 0);
  t.throws(() => readParticipant(list(new ParameterWriter().payload()), 0), Malformed, 'a guid it needs');
  const tagged = new ParameterWriter().guid(PID.PARTICIPANT_GUID, guid).text(0x4014, 'another graph').payload();
  t.equal(readParticipant(list(tagged), 0), null, 'a domain tag');
});

t.test('an endpoint is written and read back', async (t) => {
  const endpoint = { guid: GUID, topic: 'rt/health_status', type: 'pkg::msg::dds_::Type_', userData: 'typehash=RIHS01_00;' };
  for (const [reliable, durability, periods] of [
    [true, 1, {}],
    [false, 0, {}],
    [true, 0, { deadlineSeconds: 2.858, livelinessLeaseSeconds: 4.287 }],
  ] as const) {
    const qos = { ...OWN_QOS, reliable, durability, ...periods };
    t.same(readEndpoint(list(endpointPayload({ ...endpoint, qos }, 10)), true), { ...endpoint, qos, unicast: [] });
  }
});

t.test('optional parameters of an endpoint may be missing: a reader is best effort, a writer reliable', async (t) => {
  const payload = new ParameterWriter().guid(PID.ENDPOINT_GUID, GUID).text(PID.TOPIC_NAME, 't').text(PID.TYPE_NAME, 'T').payload();
  t.same(readEndpoint(list(payload), false).qos, { ...OWN_QOS, reliable: false, durability: 0 });
  t.same(readEndpoint(list(payload), true).qos, { ...OWN_QOS, reliable: true, durability: 0 });
});

t.test('all parameters of an endpoint are read', async (t) => {
  const payload = new ParameterWriter()
    .guid(PID.ENDPOINT_GUID, GUID)
    .text(PID.TOPIC_NAME, 't')
    .text(PID.TYPE_NAME, 'T')
    .uint32(PID.DEADLINE, 1, 2 ** 31)
    .uint32(PID.LIVELINESS, 2, 3, 0)
    .uint32(PID.OWNERSHIP, 1)
    .bytes(PID.PARTITION, Buffer.from('02000000020000006100000003000000622a0000', 'hex'))
    .locator(PID.UNICAST_LOCATOR, { address: '10.0.0.9', port: 9000 })
    .payload();
  const read = readEndpoint(list(payload), true);
  t.match(read.qos, { deadlineSeconds: 1.5, liveliness: 2, livelinessLeaseSeconds: 3, ownership: 1, partitions: ['a', 'b*'] });
  t.same(read.unicast, [{ address: '10.0.0.9', port: 9000 }]);
});

t.test('an endpoint without a required parameter is refused', async (t) => {
  const parts = {
    [PID.ENDPOINT_GUID]: Buffer.from(GUID, 'hex'),
    [PID.TOPIC_NAME]: Buffer.from('\x02\0\0\0t\0'),
    [PID.TYPE_NAME]: Buffer.from('\x02\0\0\0T\0'),
  };
  for (const missing of Object.keys(parts)) {
    const writer = new ParameterWriter();
    for (const [id, value] of Object.entries(parts)) if (id !== missing) writer.bytes(Number(id), value);
    t.throws(() => readEndpoint(list(writer.payload()), true), Malformed, missing);
  }
});

t.test('the end of an instance is written and read back', async (t) => {
  const read = (qos: Buffer): ParameterList => ParameterList.read(qos, 0, true).list;
  const end = read(endOfInstance(GUID));
  t.ok(isEnd(end));
  t.equal(end.guid(PID.KEY_HASH), GUID);
  t.notOk(isEnd(null));
  for (const [flags, ended] of [
    [0, false],
    [1, true],
    [2, true],
    [3, true],
    [4, false],
  ] as const) {
    t.equal(isEnd(read(new ParameterWriter().bytes(PID.STATUS_INFO, Buffer.from([0, 0, 0, flags])).list())), ended, `flags ${flags}`);
  }
});
