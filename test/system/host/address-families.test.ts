import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { type Host, Network } from '../../../testkit/network/network.ts';
import { HostService } from '../../../testkit/network/service-on-host.ts';
import { NotifySocket } from '../../../testkit/service/notify-socket.ts';
import { ROOT } from '../../../testkit/service/service.ts';

const network = new Network();
t.teardown(() => network.dispose());
const set = (host: Host, key: string): string => host.exec('sysctl', '-qw', key);

const MACHINES: Record<string, { prepare(host: Host): void; url: string; rest?: object }> = {
  'IPv6 switched off': { prepare: (host) => set(host, 'net.ipv6.conf.all.disable_ipv6=1'), url: 'http://127.0.0.1:5000' },
  'IPv6 switched off on the loopback interface': {
    prepare: (host) => {
      network.segment().attach(host);
      set(host, 'net.ipv6.conf.lo.disable_ipv6=1');
    },
    url: 'http://127.0.0.1:5000',
  },
  'IPv6 alone': { prepare: (host) => host.ip('-4', 'address', 'flush', 'dev', 'lo'), url: 'http://[::1]:5000' },
  'one address of the machine': {
    prepare: (host) => network.segment().attach(host, { number: 9 }),
    rest: { host: '10.77.2.9' },
    url: 'http://10.77.2.9:5000',
  },
};

for (const [name, { prepare, rest = {}, url }] of Object.entries(MACHINES)) {
  t.test(name, async (t) => {
    const host = network.host();
    prepare(host);
    const folder = temporaryFolder(t);
    const manager = await NotifySocket.listen(t);
    const environment = { NOTIFY_SOCKET: manager.path, RUNTIME_DIRECTORY: folder };
    const service = await HostService.start(host, folder, { config: { rest, ros: { transport: 'off' } }, environment });
    t.teardown(() => service.end());
    await manager.waitFor(({ state }) => state['READY'] === '1');
    t.equal(host.exec(process.execPath, '-e', `fetch('${url}/health').then(({ status }) => console.log(status))`).trim(), '200');
    const command = `RUNTIME_DIRECTORY=${folder} ${ROOT}/bin/edge-health status --json --config ${folder}/config.yaml`;
    // The exit code depends on the load of this machine.
    t.match(JSON.parse(host.exec('sh', '-c', `${command} || true`)), { reachable: true });
  });
}
