import t from 'tap';
import { type Circumstances, chooseTransport, type RosProbes } from './choose.ts';
import type { RosFinding } from './rclnodejs/prepared.ts';

const ros = { state: 'sourced', distro: 'jazzy', prefixes: ['/opt/ros/jazzy'], librcl: '/opt/ros/jazzy/lib/librcl.so' } as const;
const prepared = { key: 'jazzy-2.2.0-1a2b3c4d', distro: 'jazzy', folder: '/data/ros/jazzy-2.2.0-1a2b3c4d' };
const usual: Circumstances = { discoveryRange: 'SUBNET', securityEnforced: false };

const FOUND: Readonly<Record<RosFinding['state'], RosFinding>> = {
  none: { state: 'none', reason: 'no ROS 2 is sourced' },
  broken: { state: 'broken', reason: 'ROS 2 jazzy is sourced, but librcl.so is not found' },
  unprepared: { state: 'unprepared', ros, reason: 'not prepared: run edge-health ros-setup' },
  prepared: { state: 'prepared', ros, prepared },
};

function probes(found: RosFinding, problem: string | null = null): RosProbes {
  return { find: () => found, probe: async () => problem };
}

const untouched: RosProbes = {
  find: () => {
    throw new Error('nothing may be looked for');
  },
  probe: async () => {
    throw new Error('nothing may be tried');
  },
};

t.test('a fixed transport is used without a search for ROS 2', async (t) => {
  t.same(await chooseTransport('off', usual, untouched), {
    transport: 'off',
    reason: 'ros.transport is off',
    fallback: false,
    prepared: null,
  });
  t.match(await chooseTransport('embedded', usual, untouched), { transport: 'embedded', reason: 'ros.transport is embedded' });
});

t.test('with discovery OFF the transport is off', async (t) => {
  for (const configured of ['auto', 'rclnodejs', 'embedded'] as const) {
    const choice = await chooseTransport(configured, { ...usual, discoveryRange: 'OFF' }, untouched);
    t.match(choice, { transport: 'off', reason: /OFF: no socket is opened/, fallback: false });
  }
});

t.test('auto: rclnodejs if it works', async (t) => {
  t.same(await chooseTransport('auto', usual, probes(FOUND.prepared)), {
    transport: 'rclnodejs',
    reason: 'ROS 2 jazzy is sourced and prepared',
    fallback: false,
    prepared,
  });
  t.equal((await chooseTransport('rclnodejs', usual, probes(FOUND.prepared))).transport, 'rclnodejs');
});

t.test('auto without ROS 2: embedded, without a warning', async (t) => {
  t.match(await chooseTransport('auto', usual, probes(FOUND.none)), {
    transport: 'embedded',
    reason: /^no ROS 2 is sourced$/,
    fallback: false,
  });
});

t.test('auto: fallback to embedded with reason and remedy', async (t) => {
  t.match(await chooseTransport('auto', usual, probes(FOUND.broken)), {
    transport: 'embedded',
    reason: /librcl\.so is not found; embedded instead$/,
    fallback: true,
  });
  t.match(await chooseTransport('auto', usual, probes(FOUND.unprepared)), {
    transport: 'embedded',
    reason: 'ROS 2 jazzy is sourced, but not prepared: run edge-health ros-setup; embedded instead',
    fallback: true,
  });
  t.match(await chooseTransport('auto', usual, probes(FOUND.prepared, 'it crashed (SIGSEGV)')), {
    transport: 'embedded',
    reason: /does not work: it crashed \(SIGSEGV\); embedded instead$/,
    fallback: true,
    prepared: null,
  });
});

t.test('rclnodejs that cannot be used is off, without a fallback', async (t) => {
  for (const found of [FOUND.none, FOUND.broken, FOUND.unprepared]) {
    const choice = await chooseTransport('rclnodejs', usual, probes(found));
    t.match(choice, { transport: 'off', fallback: true, reason: /ros\.transport is rclnodejs, so ROS 2 is disabled/ }, found.state);
    t.match(choice.reason, 'reason' in found ? found.reason : '', 'what is wrong comes first');
  }
  t.match(await chooseTransport('rclnodejs', usual, probes(FOUND.prepared, 'no')), { transport: 'off', reason: /does not work: no;/ });
});

t.test('with enforced SROS2 the embedded transport is not used', async (t) => {
  const enforced = { ...usual, securityEnforced: true };
  t.match(await chooseTransport('auto', enforced, probes(FOUND.prepared)), { transport: 'rclnodejs' });
  for (const found of [FOUND.none, FOUND.broken, FOUND.unprepared]) {
    t.match(await chooseTransport('auto', enforced, probes(found)), { transport: 'off', reason: /Enforce/, fallback: true }, found.state);
  }
  t.match(await chooseTransport('auto', enforced, probes(FOUND.prepared, 'no')), { transport: 'off', reason: /Enforce/ });
  t.match(await chooseTransport('embedded', enforced, untouched), { transport: 'off', reason: /Enforce/ });
});

t.test('a rejected probe is a reason, too', async (t) => {
  const rejecting: RosProbes = { find: () => FOUND.prepared, probe: async () => Promise.reject(new Error('no more processes')) };
  t.match(await chooseTransport('auto', usual, rejecting), { transport: 'embedded', reason: /no more processes/ });
});
