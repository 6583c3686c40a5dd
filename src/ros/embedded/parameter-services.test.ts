import t from 'tap';
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

const PARAMETERS = ['a', 'b'].map((name) => ({ name, value: { type: 1, bool_value: true } }));
const REFUSED = { successful: false, reason: 'edge-health has no ROS parameters; see its configuration file' };
const CALLS = [
  ['list_parameters', LIST_PARAMETERS, { prefixes: [], depth: 0n }, { result: { names: [], prefixes: [] } }],
  ['get_parameters', GET_PARAMETERS, { names: ['a'] }, { values: [] }],
  ['get_parameter_types', GET_PARAMETER_TYPES, { names: ['a'] }, { types: [] }],
  ['describe_parameters', DESCRIBE_PARAMETERS, { names: ['a'] }, { descriptors: [] }],
  ['set_parameters', SET_PARAMETERS, { parameters: PARAMETERS }, { results: [REFUSED, REFUSED] }],
  ['set_parameters_atomically', SET_PARAMETERS_ATOMICALLY, { parameters: PARAMETERS }, { result: REFUSED }],
] as const;

t.test('every node answers that it has no parameters, and refuses to set one', async (t) => {
  const onSafeShutdown = async () => ({ success: true, message: '' });
  const all = transportRig(t, { listener: { onHealthStatus: () => {}, onAlert: () => {}, onSafeShutdown } });
  const { transport, other, time } = all;
  await transport.start();
  await other.start();
  await time.pass(3);
  for (const node of ['health_monitor', 'threshold_monitor', 'alert_publisher', 'safe_shutdown']) {
    for (const [name, type, request, response] of CALLS) {
      t.strictSame(await ask(all, `/${node}/${name}`, type, request), [response], `${node}/${name}`);
    }
  }
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
