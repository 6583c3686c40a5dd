import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { stringify } from 'yaml';
import { ALERTING, Appliance, CONFIG, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import type { Finished } from '../../../testkit/container/finish.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { builtPackage, repackaged } from '../../../testkit/container/package.ts';
import { EventReader } from '../../../testkit/events.ts';
import { ROOT, temporaryFolder } from '../../../testkit/service.ts';

t.setTimeout(600_000);
t.jobs = 2;
const skip = containersUnavailable();

const NEWER = '99.0.0';
const ROLE = 'edge-health@sensor_node.service';
const POLLS_PER_SECOND = 50;
/** While one process ends and the next begins nobody answers; on a busy machine that takes its time. */
const PATIENCE_SECONDS = 15;

const isStart = (line: string): boolean => line.startsWith('Starting ');

/** A newer version, whose default configuration differs as well. */
async function newerPackage(): Promise<{ file: string; remove: () => void }> {
  const folder = temporaryFolder();
  const config = readFileSync(join(ROOT, 'config/edge_health_config.yaml'), 'utf8');
  const files = { [CONFIG]: `# Of the newer version.\n${config}` };
  return { file: await repackaged((await builtPackage()).file, { version: NEWER, files }, folder.path), remove: folder.remove };
}

const UNATTENDED = ['-o', 'DPkg::Options::=--force-confdef', '-o', 'DPkg::Options::=--force-confold'];

/** By hand, where dpkg asks about an edited configuration file and gets Enter for an answer; or unattended. */
function upgrade(machine: Container, how: 'by hand' | 'unattended'): Promise<Finished> {
  return machine.run(['apt-get', 'install', '-y', ...(how === 'unattended' ? UNATTENDED : []), '/root/newer.deb'], {
    environment: { DEBIAN_FRONTEND: 'noninteractive' },
    timeoutSeconds: 120,
    input: how === 'by hand' ? '\n' : '',
  });
}

/** Asks for /health so many times a second, as somebody who does not know of any upgrade. */
class Poller {
  readonly answers: { readonly atMs: number; readonly ok: boolean }[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(url: string) {
    this.#timer = setInterval(() => {
      const atMs = performance.now();
      // A connection of its own each time: one that is kept may be closed by the service at the very moment it is used again.
      const request = get(`${url}/health`, { agent: false, timeout: PATIENCE_SECONDS * 1000 }, (response) => {
        response.resume().on('error', () => undefined);
        this.answers.push({ atMs, ok: response.statusCode === 200 });
      });
      request.on('timeout', () => request.destroy(new Error('no answer in time')));
      request.on('error', () => this.answers.push({ atMs, ok: false }));
    }, 1000 / POLLS_PER_SECOND);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** How many separate times there was no answer, and how long all of them took. */
  outages(): { times: number; seconds: number } {
    const answers = this.answers.toSorted((a, b) => a.atMs - b.atMs);
    let times = 0;
    let seconds = 0;
    for (const [index, { atMs, ok }] of answers.entries()) {
      const previous = answers[index - 1];
      if (previous?.ok !== false && !ok) times += 1;
      if (previous?.ok === false) seconds += (atMs - previous.atMs) / 1000;
    }
    return { times, seconds };
  }
}

t.test('an upgrade under load keeps data and edited configuration, and restarts once', { skip }, async (t) => {
  const newer = await newerPackage();
  t.teardown(newer.remove);
  const appliance = await Appliance.boot(t, { suite: 'bookworm', config: ALERTING, installed: (await builtPackage()).file });
  const { machine } = appliance;
  await machine.copyIn(newer.file, '/root/newer.deb');
  const alert = await appliance.alerted('memory_percent');
  const edited = await machine.read(CONFIG);
  await machine.systemctl('start', ROLE);
  const rolePid = await machine.show(ROLE, 'MainPID');
  const before = await appliance.history();
  const events = await EventReader.open(await machine.url());
  const poller = new Poller(await machine.url());
  t.teardown(() => poller.stop());
  await machine.until(() => events.health().length >= 2, 10);

  const beganMs = Date.now();
  const { code, stdout, stderr } = await upgrade(machine, 'by hand');
  const aptSeconds = (Date.now() - beganMs) / 1000;
  t.equal(code, 0, stdout + stderr);
  await machine.untilJson<{ version: string }>('/status', ({ version }) => version === NEWER, 30);
  await appliance.measures();
  const answersAtReturn = poller.answers.length;
  await machine.until(() => poller.answers.length > answersAtReturn + POLLS_PER_SECOND, 20);
  poller.stop();

  const { times, seconds } = poller.outages();
  t.comment(`apt-get took ${aptSeconds.toFixed(1)} s; ${poller.answers.length} requests, without an answer for ${seconds.toFixed(1)} s`);
  t.ok(times <= 1, `REST was away ${times} times`);
  t.ok(seconds < PATIENCE_SECONDS, 'and not for long');
  t.ok(poller.answers.at(-1)?.ok, 'and answers again');

  const journal = (await machine.journal(UNIT, '--since', `@${beganMs / 1000}`)).split('\n');
  t.equal(journal.filter((line) => line.startsWith('Stopping ')).length, 1, 'it was stopped once');
  t.equal(journal.filter(isStart).length, 1, 'and started once');
  t.equal(await appliance.restarts(), 0, 'no start failed');
  t.same(await appliance.openAlertIds('memory_percent'), [alert.alert_id], 'the alert that was open still is');

  const roleStarts = (await machine.journal(ROLE, '--since', `@${beganMs / 1000}`)).split('\n').filter(isStart);
  t.equal(roleStarts.length, 1, 'a further role that ran was started once');
  t.not(await machine.show(ROLE, 'MainPID'), rolePid, 'and runs the newer version as well');
  t.equal(await machine.show(ROLE, 'ActiveState'), 'active');

  t.equal(await machine.read(CONFIG), edited, 'the edited configuration is kept');
  t.match(await machine.read(`${CONFIG}.dpkg-dist`), /^# Of the newer version/, "the newer version's lies beside it");
  const history = await appliance.history();
  t.same(history.slice(0, before.length), before, 'no sample of before is lost');

  // What the stream told until it broke off, and what it tells one who comes again with the last id, is all there was.
  const last = events.received.at(-1)?.id as string;
  const resumed = await EventReader.open(await machine.url(), '/events', { 'Last-Event-ID': last });
  t.teardown(() => resumed.close());
  const latest = (await appliance.history()).at(-1) as number;
  await machine.until(() => resumed.health().some(({ timestamp }) => Date.parse(timestamp) >= latest), 10);
  const own = [...events.health(), ...resumed.health()].filter(({ node_name }) => node_name === 'health_monitor');
  const told = own.map(({ timestamp }) => Date.parse(timestamp));
  const complete = (await appliance.history()).filter((time) => time >= (told[0] as number) && time <= latest);
  t.same(
    told.filter((time) => time <= latest),
    complete,
    'the event stream, resumed, has every sample once',
  );
  await appliance.storeIsWhole(t);
});

t.test('an upgrade that ends in a service that cannot start says why, and blocks nothing', { skip }, async (t) => {
  const newer = await newerPackage();
  t.teardown(newer.remove);
  const appliance = await Appliance.boot(t, { suite: 'trixie', config: ALERTING, installed: (await builtPackage()).file });
  const { machine } = appliance;
  await machine.copyIn(newer.file, '/root/newer.deb');
  const before = await appliance.history();
  // Edited, and never reloaded: the running service does not know yet.
  await machine.write(CONFIG, 'thresholds:\n  cpu: {warning: 95}\nrest:\n  prot: 80\n');

  const { code, stdout, stderr } = await upgrade(machine, 'unattended');
  t.equal(code, 0, 'apt is not left with a half configured package');
  const said = stdout + stderr;
  t.match(said, /edge_health_config\.yaml:2:\d+:.*thresholds\.cpu/, 'it says where the first mistake is');
  t.match(said, /edge_health_config\.yaml:4:3:.*prot.*port/, 'and the second, and what was meant');
  t.match(said, /systemctl restart edge-health/, 'and what to do');
  t.equal(await machine.show(UNIT, 'ActiveState'), 'failed', 'the service is seen to have failed');
  t.equal(await machine.sh('dpkg --status edge-health | grep -E "^(Status|Version):"'), `Status: install ok installed\nVersion: ${NEWER}`);

  await machine.write(CONFIG, stringify(ALERTING));
  await machine.systemctl('restart', UNIT);
  await appliance.measures();
  t.equal((await appliance.status()).version, NEWER);
  t.same((await appliance.history()).slice(0, before.length), before, 'put right, it runs with its history');

  await t.test('and so does one that finds its port taken', async (t) => {
    await machine.systemctl('stop', UNIT);
    await machine.sh('systemd-run --quiet --unit=squatter systemd-socket-activate --listen=5000 sleep infinity');
    const { code, stdout, stderr } = await machine.run(['apt-get', 'install', '--reinstall', '-y', '/root/newer.deb'], {
      timeoutSeconds: 120,
    });
    t.equal(code, 0);
    t.match(stdout + stderr, /port 5000 is in use; stop the other program or set another rest\.port/);
    await machine.systemctl('stop', 'squatter');
    await machine.sh(`systemctl reset-failed ${UNIT}; systemctl restart ${UNIT}`);
    await appliance.measures();
  });
});

t.test('a power cut in the middle of an upgrade leaves a service that runs, and the upgrade can be repeated', { skip }, async (t) => {
  const newer = await newerPackage();
  t.teardown(newer.remove);
  const appliance = await Appliance.boot(t, { suite: 'trixie' });
  const { machine } = appliance;
  await machine.copyIn(newer.file, '/root/newer.deb');
  const cut = upgrade(machine, 'unattended');
  const unpacked = ['test', '-e', '/usr/lib/edge-health/dist/main.cjs.dpkg-new'];
  await machine.until(
    async () => (await machine.run(unpacked)).code === 0,
    60,
    () => 'nothing is unpacked',
  );
  await machine.cutPower();
  t.equal((await cut).code, null, 'apt was cut off');

  await machine.bootAgain();
  await appliance.measures();
  t.equal((await machine.run(unpacked)).code, 0, 'half of it is unpacked');
  t.equal(await machine.show(UNIT, 'ActiveState'), 'active', 'the service runs all the same');
  t.match((await upgrade(machine, 'unattended')).stderr, /dpkg --configure -a/, 'apt says what it wants first');
  await machine.sh('dpkg --configure -a');
  const again = await upgrade(machine, 'unattended');
  t.equal(again.code, 0, again.stderr);
  await machine.untilJson<{ version: string }>('/status', ({ version }) => version === NEWER, 30);
  t.equal(
    await machine.sh('dpkg --verify edge-health; find / -xdev -name "*.dpkg-new" -path "*edge-health*"'),
    '',
    'everything is in its place',
  );
});
