import t from 'tap';
import type { EndpointData } from '../../rtps/discovery/discovery-data.ts';
import { participantOn, type TestParticipant } from '../../rtps/testing/participants.ts';
import { decode, encode, type Message } from '../../rtps/wire/cdr.ts';
import {
  DESCRIBE_PARAMETERS,
  GET_PARAMETER_TYPES,
  GET_PARAMETERS,
  LIST_PARAMETERS,
  SET_PARAMETERS,
  SET_PARAMETERS_ATOMICALLY,
} from '../interfaces.generated.ts';
import type { ServiceType } from '../interfaces.ts';
import { replyTopicOf, requestTopicOf } from './dds-names.ts';
import { type TransportRig, transportRig } from './testing/transport-rig.ts';

/** Sends a request as a client does; returns the responses. */
async function ask(
  { other, time }: TransportRig,
  service: string,
  { request, response }: ServiceType,
  message: Message,
): Promise<Message[]> {
  const replies: Message[] = [];
  const writer = other.createWriter({
    topic: requestTopicOf(service),
    type: request.ddsName,
    transientLocal: false,
    depth: 10,
    userData: '',
  });
  other.createReader({
    topic: replyTopicOf(service),
    type: response.ddsName,
    reliable: true,
    transientLocal: false,
    depth: 10,
    userData: '',
    onSample: ({ data }) => replies.push(decode(response, data.payload ?? Buffer.alloc(0))),
  });
  await time.pass(2);
  other.write(writer, encode(request, message));
  await time.pass(1);
  return replies;
}

const PARAMETER = { name: 'thresholds.cpu.warning', value: 80, description: 'Raise WARNING.', constraints: 'percent' };
const SET = { parameters: [{ name: PARAMETER.name, value: { type: 3, double_value: 99 } }] };
const REFUSED = { successful: false, reason: /read-only/ };
const CALLS = [
  ['list_parameters', LIST_PARAMETERS, { prefixes: [], depth: 0n }, { result: { names: [PARAMETER.name], prefixes: ['thresholds.cpu'] } }],
  ['get_parameters', GET_PARAMETERS, { names: [PARAMETER.name] }, { values: [{ type: 3, double_value: 80 }] }],
  ['get_parameter_types', GET_PARAMETER_TYPES, { names: [PARAMETER.name] }, { types: [3] }],
  [
    'describe_parameters',
    DESCRIBE_PARAMETERS,
    { names: [PARAMETER.name] },
    { descriptors: [{ description: 'Raise WARNING.', read_only: true }] },
  ],
  ['set_parameters', SET_PARAMETERS, SET, { results: [REFUSED] }],
  ['set_parameters_atomically', SET_PARAMETERS_ATOMICALLY, SET, { result: REFUSED }],
] as const;

t.test('every node has the services, and those that judge the parameters', async (t) => {
  const onSafeShutdown = async () => ({ success: true, message: '' });
  const listener = { onHealthStatus: () => {}, onAlert: () => {}, onSafeShutdown };
  const all = transportRig(t, { listener, parameters: () => [PARAMETER] });
  const { transport, other, time } = all;
  await transport.start();
  await other.start();
  await time.pass(3);
  for (const node of ['health_monitor', 'threshold_monitor'])
    for (const [name, type, request, response] of CALLS)
      t.match(await ask(all, `/${node}/${name}`, type, request), [response], `${node}/${name}`);
  for (const node of ['alert_publisher', 'safe_shutdown'])
    t.match(await ask(all, `/${node}/list_parameters`, LIST_PARAMETERS, { prefixes: [], depth: 0n }), [{ result: { names: [] } }], node);
  t.same(other.lines, []);
});

t.test('they are not announced before a client is discovered', async (t) => {
  const all = transportRig(t);
  const { transport, other, time, wire } = all;
  let announced = 0;
  wire.onFlight = ({ datagram, from }) => {
    if (from === '10.0.0.1' && datagram.includes('_parameter')) announced += 1;
  };
  await transport.start();
  await other.start();
  await time.pass(5);
  t.equal(announced, 0);
  await ask(all, '/health_monitor/list_parameters', LIST_PARAMETERS, { prefixes: [], depth: 0n });
  t.ok(announced > 0);
});

t.test('no parameter services for absent nodes: in a namespace, and without the service', async (t) => {
  const all = transportRig(t);
  const { transport, other, time } = all;
  await transport.start();
  await other.start();
  await time.pass(3);
  for (const node of ['/robot/health_monitor', '/safe_shutdown']) {
    t.same(await ask(all, `${node}/list_parameters`, LIST_PARAMETERS, { prefixes: [], depth: 0n }), [], node);
  }
});

t.test('they are removed when their client has gone, and created again for the next one', async (t) => {
  const all = transportRig(t, { parameters: () => [PARAMETER] });
  const { transport, other, time, wire } = all;
  let host = 2;
  const join = async (): Promise<{ participant: TestParticipant; topics: Set<string> }> => {
    const topics = new Set<string>();
    const notice = ({ topic }: EndpointData): boolean => Boolean(topic.includes('_parameter') && topics.add(topic));
    host += 1;
    const participant = participantOn(wire.host({ lan: `10.0.0.${host}` }), time.now, {
      onRemoteReader: notice,
      onRemoteWriter: (endpoint) => {
        notice(endpoint);
        return true;
      },
    });
    t.teardown(() => participant.stop());
    await participant.start();
    await time.pass(3);
    return { participant, topics };
  };
  const list = (client: TestParticipant): Promise<Message[]> =>
    ask({ ...all, other: client }, '/health_monitor/list_parameters', LIST_PARAMETERS, { prefixes: [], depth: 0n });
  await transport.start();
  await other.start();
  await time.pass(3);
  t.equal((await list(other)).length, 1);
  await time.pass(30);
  t.same(
    [...(await join()).topics].sort(),
    ['rq/health_monitor/list_parametersRequest', 'rr/health_monitor/list_parametersReply'],
    'it has a client',
  );
  other.stop();
  await time.pass(30);
  const { participant, topics } = await join();
  t.same([...topics], [], 'not visible any more');
  t.equal((await list(participant)).length, 1);
});
