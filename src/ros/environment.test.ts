import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { type DiscoveryConfig, discoverySettings } from './environment.ts';
import type { DiscoverySettings } from './graph.ts';

const UNSET: DiscoveryConfig = { domain_id: null, discovery_range: null, static_peers: null };

function settingsOf(
  environment: Record<string, string>,
  config: Partial<DiscoveryConfig> = {},
): DiscoverySettings & { notes: readonly string[] } {
  const result = discoverySettings({ ...UNSET, ...config }, environment);
  if (!result.ok) throw new Error(result.problem);
  return { ...result.discovery, notes: result.notes };
}

t.test('nothing set: domain 0, the subnet, no peers', async (t) => {
  const standard = { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [], notes: [] };
  t.same(settingsOf({}), standard);
  t.same(
    settingsOf({ ROS_DOMAIN_ID: '', ROS_LOCALHOST_ONLY: '', ROS_AUTOMATIC_DISCOVERY_RANGE: '', ROS_STATIC_PEERS: '' }),
    standard,
    'empty is unset',
  );
});

t.test('ROS_DOMAIN_ID reads as strtoul does', async (t) => {
  for (const [text, id] of [
    ['0', 0],
    ['42', 42],
    [' 7 ', 7],
    ['232', 232],
    ['0x2A', 42],
    ['010', 8],
  ] as const) {
    t.equal(settingsOf({ ROS_DOMAIN_ID: text }).domainId, id, text);
  }
});

t.test('an invalid domain id is a problem with a message', async (t) => {
  for (const text of ['233', '-1', 'seven', '12abc', '1.5', '0x', '1e2', '99999999999999999999', '08', '٣']) {
    const result = discoverySettings(UNSET, { ROS_DOMAIN_ID: text });
    t.same(result, {
      ok: false,
      problem: `ROS_DOMAIN_ID is "${text}"; set it to a whole number from 0 to 232, or set ros.domain_id`,
    });
    t.equal(settingsOf({ ROS_DOMAIN_ID: text }, { domain_id: 5 }).domainId, 5, 'the configuration wins, and the variable is not read');
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      const result = discoverySettings(UNSET, { ROS_DOMAIN_ID: text });
      return (
        !result.ok || (Number.isInteger(result.discovery.domainId) && result.discovery.domainId >= 0 && result.discovery.domainId <= 232)
      );
    }),
    { numRuns: runs(100, 5000), seed: SEED },
  );
});

t.test('ROS_AUTOMATIC_DISCOVERY_RANGE; an unknown value is LOCALHOST, as in rcl', async (t) => {
  for (const range of ['SUBNET', 'LOCALHOST', 'OFF', 'SYSTEM_DEFAULT'] as const) {
    t.same(settingsOf({ ROS_AUTOMATIC_DISCOVERY_RANGE: range }), { domainId: 0, discoveryRange: range, staticPeers: [], notes: [] });
  }
  const odd = settingsOf({ ROS_AUTOMATIC_DISCOVERY_RANGE: 'subnet' });
  t.equal(odd.discoveryRange, 'LOCALHOST');
  t.match(odd.notes[0], /ROS_AUTOMATIC_DISCOVERY_RANGE is "subnet", .* using LOCALHOST/);
  t.equal(settingsOf({ ROS_AUTOMATIC_DISCOVERY_RANGE: 'OFF' }, { discovery_range: 'SUBNET' }).discoveryRange, 'SUBNET');
});

t.test('ROS_LOCALHOST_ONLY=1 overrides the newer variables, but not the configuration', async (t) => {
  const environment = { ROS_LOCALHOST_ONLY: '1', ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET', ROS_STATIC_PEERS: '192.0.2.1' };
  t.same(settingsOf(environment), { domainId: 0, discoveryRange: 'LOCALHOST', staticPeers: [], notes: [] });
  t.same(settingsOf({ ...environment, ROS_LOCALHOST_ONLY: '0' }), {
    domainId: 0,
    discoveryRange: 'SUBNET',
    staticPeers: ['192.0.2.1'],
    notes: [],
  });
  t.same(settingsOf(environment, { discovery_range: 'SUBNET' }).staticPeers, ['192.0.2.1']);
  t.same(settingsOf(environment, { static_peers: ['a.example'] }), {
    domainId: 0,
    discoveryRange: 'LOCALHOST',
    staticPeers: ['a.example'],
    notes: [],
  });
});

t.test('ROS_STATIC_PEERS: separated by semicolons, bounded, and only where the range uses them', async (t) => {
  t.same(settingsOf({ ROS_STATIC_PEERS: '192.0.2.1; robot.example ;;2001:db8::1;' }).staticPeers, [
    '192.0.2.1',
    'robot.example',
    '2001:db8::1',
  ]);
  t.same(settingsOf({ ROS_STATIC_PEERS: '192.0.2.1', ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' }).staticPeers, ['192.0.2.1']);
  for (const range of ['OFF', 'SYSTEM_DEFAULT']) {
    const discovery = settingsOf({ ROS_STATIC_PEERS: '192.0.2.1', ROS_AUTOMATIC_DISCOVERY_RANGE: range });
    t.same(discovery.staticPeers, []);
    t.match(discovery.notes[0], `static peers are not used, since the discovery range is ${range}`);
  }
  const long = settingsOf({ ROS_STATIC_PEERS: `${'x'.repeat(256)};192.0.2.1` });
  t.same(long.staticPeers, ['192.0.2.1']);
  t.match(long.notes[0], /more than 255 characters/);
  const many = settingsOf({ ROS_STATIC_PEERS: Array.from({ length: 100 }, (_, n) => `10.0.0.${n}`).join(';') });
  t.equal(many.staticPeers.length, 64);
  t.match(many.notes[0], /100 addresses; the first 64 are used/);
  t.same(
    settingsOf({ ROS_STATIC_PEERS: '192.0.2.1' }, { static_peers: [] }).staticPeers,
    [],
    'an empty list of the configuration wins as well',
  );
});
