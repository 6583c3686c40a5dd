import t from 'tap';
import type { DiscoverySettings } from '../graph.ts';
import { addressesOf, isLoopbackOnly } from './rejoin.ts';

async function addresses(discovery: Partial<DiscoverySettings>): Promise<{ found: string[]; lines: string[] }> {
  const lines: string[] = [];
  const whole: DiscoverySettings = { domainId: 0, discoveryRange: 'SUBNET', staticPeers: [], ...discovery };
  const found = await addressesOf(whole, (level, message, fields) => lines.push(`${level}: ${message} ${JSON.stringify(fields)}`));
  return { found, lines };
}

t.test('unicast addresses depend on the discovery range', async (t) => {
  const staticPeers = ['10.0.0.7', '10.0.0.8', '10.0.0.7'];
  t.same((await addresses({ staticPeers })).found, ['10.0.0.7', '10.0.0.8'], 'each once');
  t.same((await addresses({ staticPeers, discoveryRange: 'LOCALHOST' })).found, ['127.0.0.1', '10.0.0.7', '10.0.0.8']);
  t.same((await addresses({ staticPeers, discoveryRange: 'SYSTEM_DEFAULT' })).found, []);
  t.same((await addresses({})).found, []);
});

t.test('names are resolved; an unknown one is logged and skipped', async (t) => {
  const { found, lines } = await addresses({ staticPeers: ['localhost', 'no-such-robot.invalid', '10.0.0.7'] });
  t.same(found, ['127.0.0.1', '10.0.0.7']);
  t.equal(lines.length, 1);
  t.match(lines[0], /^warning: static peer not resolved .*no-such-robot\.invalid/);
});

t.test('with LOCALHOST other interfaces are used only for static peers', async (t) => {
  const discovery: DiscoverySettings = { domainId: 0, discoveryRange: 'LOCALHOST', staticPeers: [] };
  t.ok(isLoopbackOnly(discovery));
  t.notOk(isLoopbackOnly({ ...discovery, staticPeers: ['10.0.0.7'] }));
  t.notOk(isLoopbackOnly({ ...discovery, discoveryRange: 'SUBNET' }));
});
