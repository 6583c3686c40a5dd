/** Upgrades that fail or are interrupted. The fault upgrade-downgrade (test/faults) tests an upgrade under load. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { ALERTING, Appliance, CONFIG, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import type { Finished } from '../../../testkit/container/finish.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { builtPackage, repackaged } from '../../../testkit/container/package.ts';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { ROOT } from '../../../testkit/service/service.ts';

t.setTimeout(600_000);
t.jobs = 2;
const skip = containersUnavailable();

const NEWER = '99.0.0';

/** A newer version, whose default configuration differs as well. */
async function newerPackage(t: Test): Promise<string> {
  const config = readFileSync(join(ROOT, 'config/edge_health_config.yaml'), 'utf8');
  const files = { [CONFIG]: `# Of the newer version.\n${config}` };
  return repackaged((await builtPackage()).file, { version: NEWER, files }, temporaryFolder(t));
}

/** As unattended-upgrades does: an edited configuration file is kept without a prompt. */
function upgrade(machine: Container): Promise<Finished> {
  const options = ['-o', 'DPkg::Options::=--force-confdef', '-o', 'DPkg::Options::=--force-confold'];
  return machine.run(['apt-get', 'install', '-y', ...options, '/root/newer.deb'], {
    environment: { DEBIAN_FRONTEND: 'noninteractive' },
    timeoutSeconds: 300,
  });
}

t.test('an upgrade that ends in a service that cannot start reports the reason, and blocks nothing', { skip }, async (t) => {
  const newer = await newerPackage(t);
  const appliance = await Appliance.boot(t, { suite: 'trixie', config: ALERTING, installed: (await builtPackage()).file });
  const { machine } = appliance;
  await machine.copyIn(newer, '/root/newer.deb');
  const before = await appliance.history();
  // Edited, and not reloaded: the running service has the previous one.
  await machine.write(CONFIG, 'thresholds:\n  cpu: {warning: 95}\nrest:\n  prot: 80\n');

  const { code, stdout, stderr } = await upgrade(machine);
  t.equal(code, 0, 'apt is not left with a half configured package');
  const output = stdout + stderr;
  t.match(output, /edge_health_config\.yaml:2:\d+:.*thresholds\.cpu/, 'the output has the place of the first mistake');
  t.match(output, /edge_health_config\.yaml:4:3:.*prot.*port/, 'and of the second, with what was probably meant');
  t.match(output, /systemctl restart edge-health/, 'and what to do');
  t.equal(await machine.show(UNIT, 'ActiveState'), 'failed', 'systemd shows that the service has failed');
  t.equal(await machine.sh('dpkg --status edge-health | grep -E "^(Status|Version):"'), `Status: install ok installed\nVersion: ${NEWER}`);

  await machine.write(CONFIG, stringify(ALERTING));
  await machine.systemctl('restart', UNIT);
  await appliance.measures();
  t.equal((await appliance.status()).version, NEWER);
  t.same((await appliance.history()).slice(0, before.length), before, 'corrected, it runs with its history');
});

t.test('after a power cut in the middle of an upgrade the service runs, and the upgrade can be repeated', { skip }, async (t) => {
  const newer = await newerPackage(t);
  const appliance = await Appliance.boot(t, { suite: 'trixie' });
  const { machine } = appliance;
  await machine.copyIn(newer, '/root/newer.deb');
  const cut = upgrade(machine);
  const unpacked = ['test', '-e', '/usr/lib/edge-health/dist/main.cjs.dpkg-new'];
  await machine.until(
    async () => (await machine.run(unpacked)).code === 0,
    240,
    () => 'nothing is unpacked',
  );
  await machine.cutPower();
  t.equal((await cut).code, null, 'apt was cut off');

  await machine.bootAgain();
  await appliance.measures();
  t.equal((await machine.run(unpacked)).code, 0, 'half of it is unpacked');
  t.equal(await machine.show(UNIT, 'ActiveState'), 'active', 'the service runs all the same');
  t.match((await upgrade(machine)).stderr, /dpkg --configure -a/, 'apt asks for that first');
  await machine.sh('dpkg --configure -a');
  const again = await upgrade(machine);
  t.equal(again.code, 0, again.stderr);
  await machine.untilJson<{ version: string }>('/status', ({ version }) => version === NEWER, 120);
  t.equal(
    await machine.sh('dpkg --verify edge-health; find / -xdev -name "*.dpkg-new" -path "*edge-health*"'),
    '',
    'everything is in its place',
  );
});
