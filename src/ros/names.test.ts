import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { applianceOf, applianceTopic, graphNames, isName, isNamespace, isNodeName, monitorName, type RemapRule } from './names.ts';

const PLAIN = { node_name: 'health_monitor', namespace: null };
const any = (from: string, to: string, node: string | null = null): RemapRule => ({ kind: 'any', node, from, to });

t.test('without a namespace: the names of the specification', async (t) => {
  const names = graphNames(PLAIN, []);
  t.same(names, {
    namespace: '/',
    nodes: {
      healthMonitor: 'health_monitor',
      thresholdMonitor: 'threshold_monitor',
      alertPublisher: 'alert_publisher',
      safeShutdown: 'safe_shutdown',
    },
    topics: {
      healthStatus: '/health_status',
      alerts: '/alerts',
      openAlerts: '/open_alerts',
      shutdownStatus: '/shutdown_status',
      diagnostics: '/diagnostics',
    },
    services: { safeShutdown: '/safe_shutdown', ownSafeShutdown: '/health_monitor/safe_shutdown' },
  });
  t.equal(monitorName(names), 'health_monitor');
});

t.test('a namespace precedes all names but /diagnostics, and node_name', async (t) => {
  for (const namespace of ['robot1', '/robot1']) {
    const names = graphNames({ ...PLAIN, namespace }, []);
    t.equal(names.namespace, '/robot1');
    t.same(names.topics, {
      healthStatus: '/robot1/health_status',
      alerts: '/robot1/alerts',
      openAlerts: '/robot1/open_alerts',
      shutdownStatus: '/robot1/shutdown_status',
      diagnostics: '/diagnostics',
    });
    t.equal(names.services.safeShutdown, '/robot1/safe_shutdown');
    t.equal(names.services.ownSafeShutdown, `/robot1/${names.nodes.healthMonitor}/safe_shutdown`);
    t.equal(names.nodes.healthMonitor, 'health_monitor');
    t.equal(monitorName(names), 'robot1/health_monitor');
  }
  const remapped = graphNames({ ...PLAIN, namespace: 'robot1' }, [
    { kind: 'namespace', to: '/fleet/robot2' },
    { kind: 'namespace', to: '/later' },
  ]);
  t.equal(remapped.namespace, '/fleet/robot2', 'a rule wins over the configuration, the first over the second');
  t.equal(monitorName(remapped), 'fleet/robot2/health_monitor');
  t.equal(graphNames({ ...PLAIN, namespace: '/' }, []).topics.alerts, '/alerts');
  t.equal(graphNames({ ...PLAIN, namespace: 'robot1' }, [{ kind: 'namespace', to: '/' }]).topics.alerts, '/alerts');
});

t.test('__node renames the health monitor, with a prefix the node named', async (t) => {
  const rename = (to: string, node: string | null = null): RemapRule => ({ kind: 'node', node, to });
  const one = graphNames({ ...PLAIN, node_name: 'edge_brain' }, [rename('brain')]);
  t.same(Object.values(one.nodes), ['brain', 'edge_brain_threshold_monitor', 'edge_brain_alert_publisher', 'edge_brain_safe_shutdown']);
  t.equal(monitorName(one), 'brain');
  const each = graphNames(PLAIN, [
    rename('a', 'health_monitor'),
    rename('b', 'threshold_monitor'),
    rename('c', 'alert_publisher'),
    rename('d', 'safe_shutdown'),
    rename('e', 'nobody'),
    rename('f'),
  ]);
  t.same(Object.values(each.nodes), ['a', 'b', 'c', 'd']);
});

t.test("a role's node_name is a prefix of its helper nodes, not of topics and the service", async (t) => {
  const role = (node_name: string, rules: RemapRule[] = []) => graphNames({ node_name, namespace: null }, rules);
  const brain = role('edge_brain');
  t.same(Object.values(brain.nodes), [
    'edge_brain',
    'edge_brain_threshold_monitor',
    'edge_brain_alert_publisher',
    'edge_brain_safe_shutdown',
  ]);
  t.same(brain.topics, graphNames(PLAIN, []).topics);
  t.same(brain.services, { safeShutdown: '/safe_shutdown', ownSafeShutdown: '/edge_brain/safe_shutdown' });
  const nodes = ['edge_brain', 'sensor_node', 'health_monitor'].flatMap((name) => Object.values(role(name).nodes));
  t.equal(new Set(nodes).size, nodes.length, 'roles and the default service on one graph share no name');
  for (const name of ['alert_publisher', 'edge_brain_alert_publisher']) {
    const renamed = role('edge_brain', [{ kind: 'node', node: name, to: 'alarms' }, any('alerts', '/x', 'alarms')]);
    t.same([renamed.nodes.alertPublisher, renamed.topics.alerts], ['alarms', '/x'], `a rule for ${name}`);
    t.equal(role('edge_brain', [any('alerts', '/x', name)]).topics.alerts, '/x', `a topic of ${name}`);
  }
});

t.test('topics and the service are remapped by absolute, relative and private names; the first rule that matches counts', async (t) => {
  const namespaced = { ...PLAIN, namespace: '/r' };
  const to = (config: typeof namespaced, ...rules: RemapRule[]) => graphNames(config, rules);
  t.equal(to(namespaced, any('/r/health_status', '/x/health_status')).topics.healthStatus, '/x/health_status');
  t.equal(to(namespaced, any('health_status', 'sub/status')).topics.healthStatus, '/r/sub/status');
  t.equal(to(namespaced, any('health_status', '~/status')).topics.healthStatus, '/r/health_monitor/status');
  t.equal(to(namespaced, any('/health_status', '/x')).topics.healthStatus, '/r/health_status', 'another name than ours');
  t.equal(to(namespaced, any('alerts', '/a'), any('alerts', '/b')).topics.alerts, '/a');
  t.equal(
    to(namespaced, any('alerts', '/a', 'health_monitor'), any('alerts', '/b')).topics.alerts,
    '/b',
    'alerts are the alert publisher’s',
  );
  t.equal(to(namespaced, any('alerts', '/a', 'alert_publisher')).topics.alerts, '/a');
  t.equal(to(namespaced, any('/diagnostics', 'diagnostics')).topics.diagnostics, '/r/diagnostics');
  t.equal(to(namespaced, any('safe_shutdown', '/stop')).services.safeShutdown, '/stop');
});

t.test('rules for topics do not affect services, and vice versa', async (t) => {
  const topic = graphNames(PLAIN, [{ kind: 'topic', node: null, from: '/safe_shutdown', to: '/x' }]);
  t.equal(topic.services.safeShutdown, '/safe_shutdown');
  const service = graphNames(PLAIN, [
    { kind: 'service', node: null, from: '/safe_shutdown', to: '/x' },
    { kind: 'service', node: null, from: '/alerts', to: '/y' },
  ]);
  t.equal(service.services.safeShutdown, '/x');
  t.equal(service.topics.alerts, '/alerts');
});

t.test('a rule for a renamed node uses its new name, as in rcl', async (t) => {
  const rules: RemapRule[] = [
    { kind: 'node', node: null, to: 'brain' },
    any('health_status', '/x', 'brain'),
    any('health_status', '/y', 'health_monitor'),
  ];
  t.equal(graphNames(PLAIN, rules).topics.healthStatus, '/x');
});

t.test('whatever the rules: every name is absolute and valid', async (t) => {
  const token = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/);
  const path = fc.array(token, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
  const name = fc.tuple(fc.constantFrom('', '/', '~/'), path).map(([head, rest]) => head + rest);
  const from = fc.oneof(
    name,
    fc.constantFrom('health_status', '/health_status', 'alerts', 'open_alerts', 'safe_shutdown', '/diagnostics', 'shutdown_status'),
  );
  const node = fc.option(fc.oneof(token, fc.constantFrom('health_monitor', 'alert_publisher')), { nil: null });
  const rule: fc.Arbitrary<RemapRule> = fc.oneof(
    path.map((to) => ({ kind: 'namespace' as const, to: `/${to}` })),
    fc.record({ kind: fc.constant('node' as const), node, to: token }),
    fc.record({ kind: fc.constantFrom('any' as const, 'topic' as const, 'service' as const), node, from, to: name }),
  );
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 8 }), fc.option(path, { nil: null }), (rules, namespace) => {
      const names = graphNames({ ...PLAIN, namespace }, rules);
      const absolute = [...Object.values(names.topics), ...Object.values(names.services)];
      return (
        absolute.every((one) => one.startsWith('/') && isName(one)) &&
        isNamespace(names.namespace) &&
        Object.values(names.nodes).every(isNodeName)
      );
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
  t.pass('they are');
});

t.test('valid and invalid names', async (t) => {
  for (const good of ['/a', 'a', '~/a', '~', 'a/b_2', '/A/b']) t.ok(isName(good), good);
  for (const bad of ['', '/', 'a/', '/a//b', '2a', 'a-b', 'a b', '~a', 'a/~/b', '{node}', 'é', `/${'a'.repeat(130)}`])
    t.notOk(isName(bad), bad);
  for (const good of ['/', '/a', '/a/b']) t.ok(isNamespace(good), good);
  for (const bad of ['', 'a', '/a/', '//', '/1']) t.notOk(isNamespace(bad), bad);
  for (const bad of ['', '/a', '1a', 'a/b', 'a'.repeat(129)]) t.notOk(isNodeName(bad), bad);
});

t.test('an appliance topic contains a valid node name', async (t) => {
  const appliance = { name: 'robot1/health_monitor', mode: 'auto' as const };
  t.same(applianceOf(applianceTopic(appliance)), appliance);
  for (const name of ['x'.repeat(65), 'a\u202eb', 'a\nb', ' ']) t.equal(applianceOf(applianceTopic({ ...appliance, name })), null);
});
