import t from 'tap';
import { applyVariables, discoveryVariables, isSecured, isSecurityEnforced } from './ros-variables.ts';

t.test('domain and discovery range are set for Iron and later distributions', async (t) => {
  t.same(discoveryVariables('jazzy', { domainId: 7, discoveryRange: 'SUBNET', staticPeers: [] }), {
    ROS_DOMAIN_ID: '7',
    ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET',
    ROS_STATIC_PEERS: null,
    ROS_LOCALHOST_ONLY: null,
  });
  t.match(discoveryVariables('kilted', { domainId: 0, discoveryRange: 'LOCALHOST', staticPeers: ['10.0.0.1', 'robot.local'] }), {
    ROS_DOMAIN_ID: '0',
    ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST',
    ROS_STATIC_PEERS: '10.0.0.1;robot.local',
  });
});

t.test('domain and discovery range are set for Humble', async (t) => {
  const local = discoveryVariables('humble', { domainId: 3, discoveryRange: 'LOCALHOST', staticPeers: ['10.0.0.1'] });
  t.same(local, { ROS_DOMAIN_ID: '3', ROS_LOCALHOST_ONLY: '1' });
  t.match(discoveryVariables('humble', { domainId: 3, discoveryRange: 'OFF', staticPeers: [] }), { ROS_LOCALHOST_ONLY: '1' });
  t.match(discoveryVariables('humble', { domainId: 3, discoveryRange: 'SUBNET', staticPeers: [] }), { ROS_LOCALHOST_ONLY: '0' });
});

t.test('changes of the environment are visible to native code', async (t) => {
  const environment: NodeJS.ProcessEnv = { ROS_LOCALHOST_ONLY: '1', HOME: '/root' };
  applyVariables(environment, discoveryVariables('jazzy', { domainId: 9, discoveryRange: 'SUBNET', staticPeers: [] }));
  t.same(environment, { HOME: '/root', ROS_DOMAIN_ID: '9', ROS_AUTOMATIC_DISCOVERY_RANGE: 'SUBNET' });
});

t.test('security as rcl reads it: exactly these words', async (t) => {
  t.equal(isSecured({ ROS_SECURITY_ENABLE: 'true' }), true);
  t.equal(isSecured({ ROS_SECURITY_ENABLE: 'TRUE' }), false);
  t.equal(isSecured({}), false);
  t.equal(isSecurityEnforced({ ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Enforce' }), true);
  t.equal(isSecurityEnforced({ ROS_SECURITY_ENABLE: 'true', ROS_SECURITY_STRATEGY: 'Permissive' }), false);
  t.equal(isSecurityEnforced({ ROS_SECURITY_STRATEGY: 'Enforce' }), false);
});
