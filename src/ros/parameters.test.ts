import t from 'tap';
import { decode, encode, type Message } from '../rtps/wire/cdr.ts';
import type { RosParameter } from './graph.ts';
import { graphNames } from './names.ts';
import { parameterServices } from './parameters.ts';

const of = (name: string, value: number): RosParameter => ({ name, value, description: `What ${name} is.`, constraints: 'percent' });
let current = [of('alerts.clear_after_seconds', 10), of('thresholds.cpu.critical', 90), of('thresholds.cpu.warning', 80)];
const SOURCE = { names: graphNames({ node_name: 'health_monitor', namespace: '/arm' }, []), parameters: () => current };

/** The response as a client reads it. */
function ask(name: string, request: Message, node = '/arm/threshold_monitor'): Message {
  const service = new Map(parameterServices(node, SOURCE)).get(`${node}/${name}`);
  if (!service) throw new Error(`no service ${name}`);
  return decode(
    service.type.response,
    encode(service.type.response, service.answer(decode(service.type.request, encode(service.type.request, request)))),
  );
}

const list = (prefixes: string[], depth: bigint): unknown => ask('list_parameters', { prefixes, depth })['result'];

t.test('list: all, or those below prefixes, to a depth', async (t) => {
  const names = ['alerts.clear_after_seconds', 'thresholds.cpu.critical', 'thresholds.cpu.warning'];
  t.same(list([], 0n), { names, prefixes: ['alerts', 'thresholds.cpu'] });
  t.match(list([], 2n), { names: names.slice(0, 1) });
  t.match(list(['thresholds'], 0n), { names: names.slice(1) });
  t.match(list(['thresholds'], 1n), { names: [] });
  t.match(list(['thresholds.cpu'], 1n), { names: names.slice(1) });
  t.match(list(['thresholds.cpu.warning', 'alert'], 1n), { names: names.slice(2) }, 'a name is not a prefix of its neighbours');
});

t.test('get, types and descriptors are of the current values; an unknown name is not set', async (t) => {
  const names = ['thresholds.cpu.warning', 'thresholds.gpu.warning'];
  t.match(ask('get_parameters', { names }), { values: [{ type: 3, double_value: 80 }, { type: 0 }] });
  t.same([...(ask('get_parameter_types', { names })['types'] as number[])], [3, 0]);
  t.match(ask('describe_parameters', { names }), {
    descriptors: [
      {
        name: names[0],
        type: 3,
        description: 'What thresholds.cpu.warning is.',
        additional_constraints: 'percent',
        read_only: true,
        dynamic_typing: false,
      },
      { name: names[1], type: 0, description: '', read_only: false },
    ],
  });
  current = [of('thresholds.cpu.warning', 70)];
  t.match(ask('get_parameters', { names }), { values: [{ double_value: 70 }, { type: 0 }] });
  t.match(ask('get_parameters', { names: Array(257).fill('a') }), { values: [] }, 'a response is not many times as large as its request');
});

t.test('setting is refused, with what to do instead', async (t) => {
  const parameters = ['thresholds.cpu.warning', 'a'].map((name) => ({ name, value: { type: 3, double_value: 1 } }));
  const refused = { successful: false, reason: /read-only: change the configuration file, then: sudo systemctl reload edge-health/ };
  t.match(ask('set_parameters', { parameters }), { results: [refused, refused] });
  t.match(ask('set_parameters_atomically', { parameters }), { result: refused });
  t.match(ask('get_parameters', { names: ['thresholds.cpu.warning'] }), { values: [{ double_value: 70 }] });
});

t.test('the nodes that judge have them, the others have none', async (t) => {
  for (const [node, count] of [
    ['health_monitor', 1],
    ['threshold_monitor', 1],
    ['alert_publisher', 0],
    ['safe_shutdown', 0],
  ] as const)
    t.equal(
      (ask('list_parameters', { prefixes: [], depth: 0n }, `/arm/${node}`)['result'] as { names: string[] }).names.length,
      count,
      node,
    );
});
