import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { readDefinitions } from '../../scripts/ros/definitions.ts';
import { METRICS } from '../../src/core/metrics.ts';
import { DIAGNOSTIC_LEVELS, diagnosticArray } from '../../src/ros/diagnostics.ts';
import { ALERT, ALERT_ARRAY, DIAGNOSTIC_ARRAY, HEALTH_STATUS, SHUTDOWN_STATUS } from '../../src/ros/interfaces.generated.ts';
import { graphNames } from '../../src/ros/names.ts';
import { CONTEXT, HEALTH } from '../../testkit/dds/contents.ts';
import { ROOT } from '../../testkit/service/service.ts';

/**
 * The files for viewers of the ament package, as far as they can be checked without the viewers: each follows the format that its program
 * reads, and every name in it exists in what edge-health publishes. test/system/ros2/launch.test.ts runs diagnostic_aggregator.
 */

const read = (name: string): string => readFileSync(join(ROOT, 'ros2/edge_health/viewers', name), 'utf8');
const { structs } = readDefinitions();
const { topics } = graphNames({ node_name: 'health_monitor', namespace: null }, []);
const TYPES: Readonly<Record<string, string>> = {
  [topics.healthStatus]: HEALTH_STATUS.rosName,
  [topics.alerts]: ALERT.rosName,
  [topics.openAlerts]: ALERT_ARRAY.rosName,
  [topics.shutdownStatus]: SHUTDOWN_STATUS.rosName,
  [topics.diagnostics]: DIAGNOSTIC_ARRAY.rosName,
};

/** The type of a field of a topic's messages; undefined if there is none. */
function typeOf(topic: string, fields: readonly string[]): string | undefined {
  let type = TYPES[topic];
  for (const name of fields) type = structs.get(type ?? '')?.fields.find((field) => field.name === name)?.type;
  return type;
}

interface Analyzer {
  readonly type: string;
  readonly path: string;
  readonly regex: readonly string[];
  readonly timeout: number;
  readonly num_items?: number;
}

t.test('diagnostic_aggregator: each entry is in one group, and a machine without a sensor is not ill', async (t) => {
  const { '/**': node, ...others } = parse(read('diagnostic_aggregator.yaml'));
  t.same(Object.keys(others), [], 'for an aggregator of any name and namespace');
  const { path, pub_rate, ...analyzers } = node.ros__parameters as { path: string; pub_rate: number } & Record<string, Analyzer>;
  t.same([typeof path, pub_rate], ['string', 1]);
  const groups = Object.entries(analyzers) as [string, Analyzer][];
  for (const [name, { num_items, path, regex, timeout, type, ...unknown }] of groups) {
    t.same(Object.keys(unknown), [], `${name}: parameters of GenericAnalyzer alone`);
    t.equal(type, 'diagnostic_aggregator/GenericAnalyzer');
    t.ok(path.length > 0 && !path.includes('/') && regex.length > 0 && timeout > 0, name);
    t.ok(num_items === undefined || Number.isInteger(num_items), name);
  }
  // A parameter of ROS is an integer or a double by its text.
  t.equal(read('diagnostic_aggregator.yaml').match(/timeout: \d+\.\d+$/gm)?.length, groups.length);
  // regex_match of C++: the whole name, ECMAScript.
  const groupsOf = (name: string): string[] =>
    groups.filter(([, { regex }]) => regex.some((text) => new RegExp(`^(?:${text})$`).test(name))).map(([group]) => group);
  const found = new Set<string>();
  for (const node_name of ['health_monitor', 'robot1/arm_monitor']) {
    for (const { name } of diagnosticArray({ ...HEALTH, node_name }, CONTEXT).status) {
      const [group = '', ...more] = groupsOf(name);
      t.same(more, [], name);
      t.ok(name.endsWith(`: ${analyzers[group]?.path}`), `${name} is in a group of its title`);
      found.add(group);
    }
  }
  t.same([...found], Object.keys(analyzers), 'no group without entries');
  t.same(groupsOf('driver: CPU usage of the lidar'), []);
  // GenericAnalyzerBase::report(): without an entry a group is STALE, unless num_items is 0.
  const healthy = { ...HEALTH, status: 'OK' as const, cpu_percent: null, memory_percent: null, disk_percent: null, temperature: null };
  const { status } = diagnosticArray(healthy, { ...CONTEXT, openAlerts: [], isExpected: () => false });
  const levels = groups.map(([group, { num_items }]) => {
    const items = status.filter(({ name }) => groupsOf(name).includes(group)).map(({ level }) => level);
    return items.length === 0 && num_items !== 0 ? DIAGNOSTIC_LEVELS.UNKNOWN : Math.max(0, ...items);
  });
  t.same(levels, [0, 0, 0, 0, 0]);
});

/** Panels of Foxglove, with the key of the topic or message path that each shows. */
const PANELS: Readonly<Record<string, string>> = {
  DiagnosticSummary: 'topicToRender',
  Plot: 'paths',
  RawMessages: 'topicPath',
  StateTransitions: 'paths',
  Table: 'topicPath',
};

type Split = string | { readonly first: Split; readonly second: Split; readonly direction: string; readonly splitPercentage: number };

t.test('Foxglove: every panel is placed once and shows a field that is published', async (t) => {
  const layout = JSON.parse(read('foxglove.json'));
  t.same(Object.keys(layout).sort(), ['configById', 'globalVariables', 'layout', 'playbackConfig', 'userNodes']);
  const placed: string[] = [];
  const place = (at: Split): void => {
    if (typeof at === 'string') return void placed.push(at);
    t.ok(['row', 'column'].includes(at.direction) && at.splitPercentage > 0 && at.splitPercentage < 100);
    place(at.first);
    place(at.second);
  };
  place(layout.layout);
  t.same(placed.sort(), Object.keys(layout.configById).sort());
  const shown = new Set<string>();
  for (const [id, config] of Object.entries(layout.configById) as [string, Record<string, unknown>][]) {
    const key = PANELS[id.split('!')[0] ?? ''] ?? '';
    const paths = key === 'paths' ? (config[key] as { value: string }[]).map(({ value }) => value) : [String(config[key])];
    t.ok(paths.length > 0, id);
    for (const path of paths) {
      const {
        topic = '',
        filter,
        variable,
        fields = '',
      } = /^(?<topic>[\w/]+)(?:\{(?<filter>\w+)==\$(?<variable>\w+)\})?(?<fields>(?:\.\w+)*)$/.exec(path)?.groups ?? {};
      t.ok(typeOf(topic, fields.split('.').slice(1)), `${id}: ${path}`);
      if (filter !== undefined) t.equal(typeOf(topic, [filter]), 'string', path);
      if (variable !== undefined) t.equal(typeof layout.globalVariables[variable], 'string', path);
      if (id.startsWith('Plot!')) t.equal(typeOf(topic, fields.split('.').slice(1)), 'float64', path);
      shown.add(topic);
      if (fields !== '') shown.add(fields.slice(1));
    }
  }
  for (const name of [...Object.keys(TYPES), ...METRICS]) t.ok(shown.has(name), `${name} is shown`);
});

interface Settings {
  readonly keys: Readonly<Record<string, { readonly type: string; readonly repr: string }>>;
  readonly groups: Readonly<Record<string, Settings>>;
}

t.test('rqt: every plugin has its settings, and the plots show all metrics', async (t) => {
  const perspective = JSON.parse(read('edge_health.perspective')) as Settings;
  const walk = ({ groups, keys, ...unknown }: Settings): void => {
    t.same(Object.keys(unknown), []);
    for (const value of Object.values(keys)) t.same(Object.keys(value), ['type', 'repr']);
    for (const group of Object.values(groups)) walk(group);
  };
  walk(perspective);
  t.same(Object.keys(perspective.groups), ['mainwindow', 'pluginmanager']);
  /** The literals of Python in this file are also JSON, apart from the quotes and True. */
  const value = (settings: Settings | undefined, key: string): unknown =>
    JSON.parse((settings?.keys[key]?.repr ?? 'null').replaceAll("'", '"').replaceAll('True', 'true'));
  const manager = perspective.groups['pluginmanager'];
  const running = Object.entries(JSON.parse(JSON.stringify(value(manager, 'running-plugins'))) as Record<string, number[]>);
  t.same(
    running.map(([plugin]) => plugin),
    ['rqt_plot/Plot', 'rqt_robot_monitor/RobotMonitor'],
  );
  const instances = running.flatMap(([plugin, serials]) => serials.map((serial) => `plugin__${plugin.replace('/', '__')}__${serial}`));
  t.same(Object.keys(manager?.groups ?? {}), instances);
  const plotted = instances
    .filter((name) => name.includes('rqt_plot'))
    .flatMap((name) => value(manager?.groups[name]?.groups['plugin'], 'topics') as string[]);
  for (const path of plotted) {
    const at = path.lastIndexOf('/');
    t.equal(typeOf(path.slice(0, at), [path.slice(at + 1)]), 'float64', path);
  }
  t.same(
    plotted.map((path) => path.split('/').at(-1)),
    METRICS,
  );
});
