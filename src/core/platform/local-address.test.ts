import type { NetworkInterfaceInfo } from 'node:os';
import t from 'tap';
import { isOffline, localAddress } from './local-address.ts';

const of = (address: string, internal = false): NetworkInterfaceInfo =>
  ({
    address,
    internal,
    family: address.includes(':') ? 'IPv6' : 'IPv4',
    netmask: '',
    mac: '',
    cidr: null,
    ...(address.includes(':') ? { scopeid: 0 } : {}),
  }) as NetworkInterfaceInfo;

t.test('an address at which a server of this machine can be reached', async (t) => {
  const [v4, v6, lan, linkLocal, global] = [of('127.0.0.1', true), of('::1', true), of('10.0.0.2'), of('fe80::1'), of('2001:db8::2')];
  const machines: [host: string | null, own: NetworkInterfaceInfo[], expected: string][] = [
    ['192.0.2.7', [v4, lan], '192.0.2.7'],
    ['::1', [v4, v6], '::1'],
    [null, [v6, v4], '127.0.0.1'],
    ['::', [lan, global, v6, v4], '127.0.0.1'],
    ['::', [lan, v4], '127.0.0.1'],
    ['::', [lan, v6], '::1'],
    ['::', [linkLocal, global, lan], '10.0.0.2'],
    ['::', [linkLocal, global], '2001:db8::2'],
    ['0.0.0.0', [v6, global, lan], '10.0.0.2'],
    ['0.0.0.0', [v6], '127.0.0.1'],
    ['::', [], '127.0.0.1'],
  ];
  for (const [host, own, expected] of machines)
    t.equal(
      localAddress(host, () => ({ any: own })),
      expected,
      `${host} on ${own.map(({ address }) => address)}`,
    );
  const failing = (): never => {
    throw new Error('netlink sockets are not allowed');
  };
  t.equal(localAddress('::', failing), '127.0.0.1');
});

t.test('a machine is offline if only loopback is up', async (t) => {
  const [v4, v6, lan] = [of('127.0.0.1', true), of('::1', true), of('10.0.0.2')];
  t.ok(isOffline(() => ({ lo: [v4, v6] })));
  t.notOk(isOffline(() => ({ lo: [v4], eth0: [lan] })));
  const failing = (): never => {
    throw new Error('netlink sockets are not allowed');
  };
  t.notOk(isOffline(failing), 'not known');
});
