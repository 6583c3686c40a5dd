import assert from 'node:assert/strict';
import t, { type Test } from 'tap';
import { type EndpointData, readEndpoint } from '../../rtps/discovery/discovery-data.ts';
import type { MatchedWriter } from '../../rtps/endpoints/reader.ts';
import type { Change, MatchedReader } from '../../rtps/endpoints/writer.ts';
import { only } from '../../rtps/testing/dissect.ts';
import { Wire } from '../../rtps/testing/memory-network.ts';
import { participantOn } from '../../rtps/testing/participants.ts';
import { recorded } from '../../rtps/testing/recorded.ts';
import { VirtualTime } from '../../rtps/testing/virtual-time.ts';
import { decode } from '../../rtps/wire/cdr.ts';
import type { DataSubmessage } from '../../rtps/wire/message-reader.ts';
import { ParameterList } from '../../rtps/wire/parameters.ts';
import { ENTITY, entityOf, type Guid, guidOf, PID, prefixOf, VENDOR } from '../../rtps/wire/protocol.ts';
import { SAFE_SHUTDOWN } from '../interfaces.generated.ts';
import { ServiceServer } from './service-server.ts';

/** What real clients announced and requested. */
interface Clients {
  readonly requests: readonly DataSubmessage[];
  readonly writers: ReadonlyMap<Guid, MatchedWriter>;
  readonly readers: readonly MatchedReader[];
}

function clientsIn(scenes: RegExp, vendor: number): Clients {
  const said = only(
    'data',
    recorded(scenes).map(({ datagram }) => datagram),
  );
  const endpoints = (entity: number, isWriter: boolean): EndpointData[] =>
    said.flatMap(({ sender, payload, isKey }) => {
      const list = entityOf(sender) === entity && !isKey && payload ? ParameterList.ofPayload(payload) : null;
      return list ? readEndpoint(list, isWriter) : [];
    });
  const writers = endpoints(ENTITY.PUBLICATIONS_WRITER, true).filter(({ topic }) => topic === 'rq/safe_shutdownRequest');
  const readers = endpoints(ENTITY.SUBSCRIPTIONS_WRITER, false).filter(({ topic }) => topic === 'rr/safe_shutdownReply');
  const matched = writers.map(({ guid, userData }): [Guid, MatchedWriter] => [
    guid,
    { guid, reliable: true, transientLocal: false, vendor, userData },
  ]);
  return {
    writers: new Map(matched),
    readers: readers.map(({ guid, userData }) => ({ guid, reliable: true, transientLocal: false, userData })),
    // Each request once, even if it was sent again.
    requests: said
      .filter(({ sender, payload }) => payload !== null && writers.some(({ guid }) => guid === sender))
      .filter((one, i, all) => all.findIndex((other) => other.sender === one.sender && other.sequenceNumber === one.sequenceNumber) === i),
  };
}

interface Reply {
  readonly to: Guid;
  readonly change: Change;
}

interface Rig {
  readonly time: VirtualTime;
  readonly server: ServiceServer;
  readonly calls: unknown[];
  /** Repeated requests. */
  readonly repeated: unknown[];
  readonly lines: string[];
  ask(data: DataSubmessage, writer: MatchedWriter, address?: string): void;
  /** What the server has sent since the last call, with its destination. */
  replies(): Promise<Reply[]>;
}

/** Requests from this address are treated as unauthorised. */
const FORGER = '10.0.0.66';

function rig(
  t: Test,
  answer: () => Promise<{ success: boolean; message: string }> = async () => ({ success: true, message: 'tschüss' }),
): Rig {
  const time = new VirtualTime(t, 1000);
  const calls: unknown[] = [];
  const repeated: unknown[] = [];
  const lines: string[] = [];
  const participant = participantOn(new Wire().host({ lan: '10.0.0.1' }), time.now);
  const server = new ServiceServer({
    name: '/safe_shutdown',
    type: SAFE_SHUTDOWN,
    participant,
    log: (level, message, fields) => lines.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    handler: async (request, { isNew, prove: _, ...requester }) => {
      const call = { ...request, ...requester };
      if (requester.address === FORGER) return null;
      if (!isNew()) {
        repeated.push(call);
        return null;
      }
      calls.push(call);
      return { ...(await answer()) };
    },
  });
  t.teardown(() => server.stop());
  return {
    time,
    server,
    calls,
    repeated,
    lines,
    ask: (data, writer, address = '10.0.0.2') => server.requests.options.onSample({ data, writer, source: { address, port: 7411 } }),
    replies: async () => {
      await time.pass(0.01);
      const sent: Reply[] = [];
      server.replies.state.poll(time.now(), ({ guid }, actions) => {
        for (const action of actions) if (action.kind === 'data') sent.push({ to: guid, change: action.change });
      });
      return sent;
    },
  };
}

/** Matches the reader of a client, which has answered the first heartbeat. */
function join(server: ServiceServer, reader: MatchedReader): void {
  server.replies.state.match(reader, 1000);
  server.replies.state.onAckNack(reader.guid, { base: 1, numbers: [] }, 1, true);
}

const KINDS = [
  ['Cyclone DDS', /^cyclone-call/, VENDOR.CYCLONE_DDS],
  ['Fast DDS', /^fastdds-call/, VENDOR.FAST_DDS],
  ['rmw_cyclonedds_cpp', /^ros2-.*cyclone/, VENDOR.CYCLONE_DDS],
  ['rmw_fastrtps_cpp', /^ros2-.*fastrtps/, VENDOR.FAST_DDS],
] as const;

t.test('requests of real clients are read, and each reply goes to its client alone', async (t) => {
  for (const [name, scenes, vendor] of KINDS) {
    const { requests, writers, readers } = clientsIn(scenes, vendor);
    t.ok(requests.length > 0 && readers.length > 0, `${name}: ${requests.length} requests, ${readers.length} readers of replies`);
    const { server, calls, ask, replies } = rig(t);
    for (const reader of readers) join(server, reader);
    await replies();
    for (const request of requests) {
      const writer = writers.get(request.sender);
      assert(writer);
      ask(request, writer);
      const [reply, ...others] = await replies();
      assert(reply?.change.payload instanceof Buffer);
      t.same(others, [], 'one reply');
      t.equal(prefixOf(reply.to), prefixOf(request.sender));
      t.equal(reply.change.only, reply.to);
      const skip = vendor === VENDOR.CYCLONE_DDS ? 16 : 0;
      t.same(decode(SAFE_SHUTDOWN.response, reply.change.payload, skip), { success: true, message: 'tschüss' });
      if (skip > 0) t.same(reply.change.payload.subarray(4, 20), (request.payload as Buffer).subarray(4, 20), 'its header comes back');
      else checkIdentity(t, reply, request);
    }
    t.equal(calls.length, requests.length);
    for (const call of calls) t.match(call, { reason: 'MANUAL', timeout: 30.5, address: '10.0.0.2', local: false });
  }
});

/** Checks that the reply contains the reader that the client named, and the number of its request, under both ids. */
function checkIdentity(t: Test, { to, change }: Reply, request: DataSubmessage): void {
  const { list } = ParameterList.read(change.inlineQos ?? Buffer.alloc(0), 0, true);
  for (const id of [PID.RELATED_SAMPLE_IDENTITY, PID.RELATED_SAMPLE_IDENTITY_FAST]) {
    const identity = list.bytes(id, 24);
    t.equal(identity?.toString('hex', 0, 16), to);
    t.equal((identity?.readInt32LE(16) ?? -1) * 2 ** 32 + (identity?.readUInt32LE(20) ?? 0), request.sequenceNumber);
  }
}

const PREFIX = '0110cccccccccccccccccccc';
const CLIENT: MatchedWriter = {
  guid: guidOf(PREFIX, 0x103),
  reliable: true,
  transientLocal: false,
  vendor: VENDOR.CYCLONE_DDS,
  userData: 'clientid=1;',
};
const readerNumber = (key: number, userData = 'clientid=1;'): MatchedReader => ({
  guid: guidOf(PREFIX, (key << 8) | 4),
  reliable: true,
  transientLocal: false,
  userData,
});

/** A request as rmw_cyclonedds writes it, in either endianness. */
function request(number: number, little = true): DataSubmessage {
  const body = Buffer.alloc(48);
  const write64 = (value: bigint, at: number): unknown => (little ? body.writeBigUInt64LE(value, at) : body.writeBigUInt64BE(value, at));
  const write32 = (value: number, at: number): unknown => (little ? body.writeUInt32LE(value, at) : body.writeUInt32BE(value, at));
  write64(0x0102030405060708n, 0);
  write64(BigInt(number), 8);
  write32(7, 16);
  body.write('MANUAL\0', 20);
  write32(3, 28);
  body.write('me\0', 32);
  little ? body.writeDoubleLE(5, 40) : body.writeDoubleBE(5, 40);
  const payload = Buffer.concat([Buffer.from([0, little ? 1 : 0, 0, 0]), body]);
  return {
    sender: CLIENT.guid,
    senderEntity: entityOf(CLIENT.guid),
    receiver: 0,
    sequenceNumber: number,
    payload,
    isKey: false,
    inlineQos: null,
    sourceTimestampMs: null,
  };
}

t.test('a big-endian client gets its header in little endian', async (t) => {
  const { server, calls, ask, replies } = rig(t);
  join(server, readerNumber(2));
  ask(request(7, false), CLIENT);
  const [reply] = await replies();
  t.match(calls[0], { reason: 'MANUAL', requested_by: 'me', timeout: 5 });
  const payload = reply?.change.payload as Buffer;
  t.equal(payload.readBigUInt64LE(4), 0x0102030405060708n);
  t.equal(payload.readBigUInt64LE(12), 7n);
});

t.test('the reply is sent to the calling one of several clients of a process', async (t) => {
  const { server, ask, replies } = rig(t);
  for (const reader of [readerNumber(2, 'clientid=2;'), readerNumber(4, 'clientid=1;'), readerNumber(6, 'clientid=3;')]) {
    join(server, reader);
  }
  ask(request(1), CLIENT);
  t.same(
    (await replies()).map(({ to }) => to),
    [readerNumber(4).guid],
  );
});

t.test('without a client id all readers of the process get the reply', async (t) => {
  const { server, ask, replies } = rig(t);
  for (const key of [2, 4]) join(server, readerNumber(key, ''));
  join(server, { ...readerNumber(6, ''), guid: guidOf('0110dddddddddddddddddddd', 0x604) });
  ask(request(1), { ...CLIENT, userData: '' });
  t.same((await replies()).map(({ to }) => to).sort(), [readerNumber(2).guid, readerNumber(4).guid]);
});

t.test('a duplicate request is not executed, and is logged', async (t) => {
  const { server, calls, repeated, lines, ask, replies } = rig(t);
  join(server, readerNumber(2));
  for (const number of [1, 1, 2, 1, 2]) ask(request(number), CLIENT);
  await replies();
  t.equal(calls.length, 2);
  t.equal(repeated.length, 3);
  t.same(
    lines,
    [1, 1, 2].map((number) => {
      const fields = { service: '/safe_shutdown', address: '10.0.0.2', port: 7411, number };
      return `debug: duplicate service request ignored ${JSON.stringify(fields)}`;
    }),
  );
});

t.test('a forged request does not block the number of a genuine one', async (t) => {
  const { server, calls, ask, replies } = rig(t);
  join(server, readerNumber(2));
  for (const number of [1, 2, 3, 2 ** 40]) ask(request(number), CLIENT, FORGER);
  for (const number of [1, 2, 3]) ask(request(number), CLIENT);
  t.equal((await replies()).length, 3);
  t.equal(calls.length, 3);
  for (let number = 4; number < 200; number += 1) ask(request(number), CLIENT);
  for (const number of [199, 190, 140]) ask(request(number), CLIENT);
  await replies();
  t.equal(calls.length, 199, 'the last ones of a writer are remembered');
});

t.test('a reply waits for a reader that is discovered after the request', async (t) => {
  const { server, time, ask, replies } = rig(t);
  ask(request(1), CLIENT);
  t.same(await replies(), []);
  await time.pass(15);
  join(server, readerNumber(2));
  server.replies.options.onMatched?.(readerNumber(2));
  t.equal((await replies()).length, 1);
  ask(request(2), { ...CLIENT, guid: guidOf('0110dddddddddddddddddddd', 0x103) });
  await time.pass(30);
  t.equal(time.pending, 0, 'but not for ever');
});

t.test('invalid requests are refused', async (t) => {
  const { server, calls, ask, replies } = rig(t);
  join(server, readerNumber(2));
  t.throws(() => ask({ ...request(1), payload: Buffer.from([0, 1, 0, 0, 1, 2, 3]) }, CLIENT), /header/);
  t.throws(() => ask({ ...request(2), payload: request(2).payload?.subarray(0, 30) ?? null }, CLIENT));
  ask({ ...request(3), payload: null }, CLIENT);
  ask({ ...request(4), isKey: true }, CLIENT);
  t.same(await replies(), []);
  t.same(calls, []);
});

t.test('requests of this machine are distinguished from those of others', async (t) => {
  const { calls, time, ask } = rig(t);
  for (const [i, address] of ['127.0.0.1', '10.0.0.1', '10.0.0.2'].entries()) ask(request(i + 1), CLIENT, address);
  await time.pass(0.1);
  t.same(
    calls.map((call) => (call as { local: boolean }).local),
    [true, true, false],
  );
});

t.test('the number of remembered requests is bounded with many clients', async (t) => {
  const { server, calls, time, ask } = rig(t);
  for (let i = 0; i < 5000; i += 1) {
    const prefix = `0110${i.toString(16).padStart(20, '0')}`;
    ask(request(1), { ...CLIENT, guid: guidOf(prefix, 0x103) });
  }
  await time.pass(0.1);
  t.equal(calls.length, 5000);
  t.ok(time.pending <= 256, `${time.pending} replies wait`);
  server.stop();
  t.equal(time.pending, 0);
});
