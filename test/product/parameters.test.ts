import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { DESCRIBE_PARAMETERS, GET_PARAMETERS, LIST_PARAMETERS, SET_PARAMETERS } from '../../src/ros/interfaces.generated.ts';
import { LoopbackParticipant } from '../../testkit/dds/loopback.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { NO_ROS } from '../../testkit/network/this-machine.ts';
import { startIn } from '../../testkit/service/rest.ts';
import { until } from '../../testkit/wait.ts';

t.test('what judges can be read as ROS parameters, and only the configuration changes it', async (t) => {
  const domain = await reserveDomain(t);
  const service = await startIn(t, temporaryFolder(t), {
    config: {
      thresholds: { cpu: { warning: 70, raise_after_seconds: 30 }, memory: { critical: 97 } },
      ros: { transport: 'embedded', domain_id: domain, discovery_range: 'LOCALHOST' },
    },
    environment: NO_ROS,
  });
  const other = new LoopbackParticipant(t, domain);
  const client = (name: string, type: typeof GET_PARAMETERS) => other.client(`/threshold_monitor/${name}`, type);
  const [list, get, describe, set] = [
    client('list_parameters', LIST_PARAMETERS),
    client('get_parameters', GET_PARAMETERS),
    client('describe_parameters', DESCRIBE_PARAMETERS),
    client('set_parameters', SET_PARAMETERS),
  ];
  await other.start();
  const valuesOf = async (...names: string[]): Promise<(number | null)[]> => {
    const { values } = (await get.call({ names })) as { values: { type: number; double_value: number }[] };
    return values.map(({ type, double_value }) => (type === 3 ? double_value : null));
  };
  const listed = async (): Promise<string[]> =>
    ((await list.call({ prefixes: [], depth: 0n })) as { result: { names: string[] } }).result.names;

  const { result } = (await list.call({ prefixes: ['thresholds'], depth: 0n })) as { result: { names: string[] } };
  t.same(
    result.names,
    ['cpu', 'memory', 'disk', 'temperature'].flatMap((metric) =>
      ['warning', 'critical', 'raise_after_seconds', 'clear_after_seconds'].map((name) => `thresholds.${metric}.${name}`),
    ),
  );
  t.ok((await listed()).includes('alerts.hysteresis_percent'));
  const judging = ['thresholds.cpu.warning', 'thresholds.cpu.critical', 'thresholds.memory.critical'];
  const delays = ['thresholds.cpu.raise_after_seconds', 'thresholds.memory.raise_after_seconds', 'alerts.raise_after_seconds'];
  t.same(await valuesOf(...judging, ...delays), [70, 90, 97, 30, 3, 3], 'the delays of a metric are those in force');
  t.match(await describe.call({ names: ['thresholds.temperature.warning'] }), {
    descriptors: [
      { type: 3, read_only: true, description: /WARNING.*temperature/, additional_constraints: '°C; a number from -40 to 150' },
    ],
  });
  const parameters = [{ name: 'thresholds.cpu.warning', value: { type: 3, double_value: 99 } }];
  t.match(await set.call({ parameters }), { results: [{ successful: false, reason: /read-only.*systemctl reload/ }] });

  const config = parse(readFileSync(service.configFile, 'utf8')) as { thresholds: object };
  writeFileSync(service.configFile, stringify({ ...config, thresholds: { cpu: { warning: 60 }, temperature: 'off' } }));
  service.process.kill('SIGHUP');
  await until('the reloaded values', async () => (await valuesOf('thresholds.cpu.warning'))[0] === 60);
  t.same(await valuesOf(...judging.slice(1), ...delays), [90, 95, 3, 3, 3]);
  t.same(
    (await listed()).filter((name) => name.startsWith('thresholds.temperature')),
    [],
    'a metric that is off has none',
  );
});
