import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { FLEET, yaml } from '../../testkit/ops/fleet-files.ts';
import { ROOT } from '../../testkit/service/service.ts';

// What promtool and amtool find in these files is tested in test/system/fleet/files.test.ts.

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly image: string;
        readonly user: string;
        readonly ports: readonly string[];
        readonly volumes: readonly string[];
        readonly healthcheck: { readonly test: readonly string[] };
        readonly read_only: boolean;
        readonly cap_drop: readonly string[];
        readonly networks: readonly string[];
      }
    >
  >;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly networks: Readonly<Record<string, unknown>>;
}

t.test('the containers are pinned and run without root, and everything that is mounted exists', async (t) => {
  const fleet = temporaryFolder(t);
  cpSync(FLEET, fleet, { recursive: true });
  const folder = join(fleet, 'examples/containers');
  const prepare = () => spawnSync('sh', [join(folder, 'prepare.sh')], { encoding: 'utf8' });
  t.match(prepare(), { status: 0, stdout: /targets\/robots\.yml.*alertmanager\.yml/s });
  t.match(prepare(), { status: 0, stdout: /^$/, stderr: /^$/ }, 'once more changes nothing');
  t.equal(statSync(join(folder, 'secrets')).mode & 0o777, 0o700, 'secrets are closed to others');
  t.match(readFileSync(join(folder, 'secrets/grafana/admin-password'), 'utf8'), /^[0-9a-f]{32}$/);
  const { networks, services, volumes } = yaml<Compose>('examples/containers/compose.yaml');
  t.same(Object.keys(services), ['prometheus', 'alertmanager', 'grafana']);
  for (const [name, service] of Object.entries(services)) {
    t.match(service.image, /^[a-z]+\/[a-z]+:v?\d+\.\d+\.\d+$/, `${name} is pinned`);
    t.match(service.user, /^[1-9]\d*:[1-9]\d*$/, `${name} is not root`);
    t.equal(service.read_only, true);
    t.same(service.cap_drop, ['ALL']);
    for (const network of service.networks) t.ok(network in networks);
    for (const port of service.ports) t.match(port, /^127\.0\.0\.1:(\d+):\1$/, `${name} is not open to the network`);
    for (const mount of service.volumes) {
      const [source, , mode] = mount.split(':') as [string, string, string?];
      if (/^\./.test(source)) {
        t.ok(existsSync(resolve(folder, source)), `${name}: ${source} exists`);
        t.equal(mode, 'ro');
      } else t.ok(source in volumes, `${name}: ${source} is a volume`);
    }
    t.equal(service.healthcheck.test[0], 'CMD');
  }
  t.same(yaml('examples/containers/alertmanagers/containers.yml'), [{ targets: ['alertmanager:9093'] }]);
});

t.test('everything that the examples and docs/fleet/setup.md name exists', async (t) => {
  const guide = readFileSync(join(ROOT, 'docs/fleet/setup.md'), 'utf8');
  const named = [...guide.matchAll(/`((?:prometheus|alertmanager|grafana|examples)\/[\w./-]+)`/g)].map(([, path]) => path as string);
  t.ok(named.length > 3);
  for (const path of named) t.ok(existsSync(join(FLEET, path)), path);
  const links = [...guide.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path]) => path as string);
  for (const link of links) t.ok(existsSync(resolve(dirname(join(ROOT, 'docs/fleet/setup.md')), link)), link);
});
