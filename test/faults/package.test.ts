/** Faults of the package: upgrades, downgrades and removal of the running service. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CONFIG, STATE, UNIT } from '../../testkit/container/appliance.ts';
import { builtPackage, field, repackaged } from '../../testkit/container/package.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { longestGapSeconds } from '../../testkit/weeks/losses.ts';
import { type FaultBench, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('package');

const NEWER = '99.0.0';
/** A second role, whose service runs as well. */
const ROLE = 'edge-health@sensor_node.service';
/** Between the end of one process and the start of the next there is no response. */
const OUTAGE_TARGET_SECONDS = 15;
const REQUEST_MS = 60_000;
const boot = { alone: true } as const;

/** Requests /health continuously, each time over a new connection, as a client that does not expect an upgrade. */
class Requests {
  readonly #url: string;
  #isStopped = false;
  #wasAnswered = true;
  answered = 0;
  /** How often one or more requests in a row got no response. */
  outages = 0;

  constructor(url: string) {
    this.#url = url;
    void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const isAnswered = await this.#request();
      if (isAnswered) this.answered += 1;
      else if (this.#wasAnswered) this.outages += 1;
      this.#wasAnswered = isAnswered;
      await pause(0.02);
    }
  }

  #request(): Promise<boolean> {
    return new Promise((done) => {
      const request = get(`${this.#url}/health`, { agent: false, timeout: REQUEST_MS }, (response) => {
        response.resume().on('error', () => done(false));
        response.on('end', () => done(response.statusCode === 200));
      });
      request.on('timeout', () => request.destroy(new Error('no response in time')));
      request.on('error', () => done(false));
    });
  }
}

/** Installs a .deb of the machine manually: where dpkg prompts about the edited configuration, the answer is Enter. */
async function install(bench: FaultBench, version: string, file: string): Promise<void> {
  const { machine } = bench;
  const { code, stdout, stderr } = await machine.run(['apt-get', 'install', '-y', '--allow-downgrades', file], {
    environment: { DEBIAN_FRONTEND: 'noninteractive' },
    timeoutSeconds: 300,
    input: '\n',
  });
  bench.check(`apt-get installs ${version}`, code === 0, stdout + stderr);
  await machine.untilJson<{ version: string }>('/status', (status) => status.version === version, 120);
}

const linesThat = (journal: string, begin: string): number => journal.split('\n').filter((line) => line.startsWith(begin)).length;

/** Installs the newer version and then the older one again, under load. Returns the longer time without a status. */
async function upgradeAndDowngrade(bench: FaultBench, newer: string): Promise<number> {
  const { machine } = bench;
  const { file, version } = await builtPackage();
  await machine.copyIn(newer, '/root/newer.deb');
  await machine.copyIn(file, '/root/older.deb');
  await machine.systemctl('start', ROLE);
  const requests = new Requests(await machine.url());
  bench.teardown(() => requests.stop());
  let longest = 0;
  for (const [deb, wanted] of [
    ['/root/newer.deb', NEWER],
    ['/root/older.deb', version],
  ] as const) {
    const fromMs = Date.now();
    const rolePid = await machine.show(ROLE, 'MainPID');
    const { outages, answered } = requests;
    await install(bench, wanted, deb);
    await bench.recovered(Date.now(), OUTAGE_TARGET_SECONDS);
    await bench.checkEventually('REST answers requests meanwhile and afterwards', () => requests.answered > answered + 100);
    bench.check('REST was unavailable at most once', requests.outages <= outages + 1, requests.outages - outages);
    const gap = longestGapSeconds(
      bench.stream.statuses.map(({ it }) => Date.parse(it.timestamp)),
      fromMs,
      Date.now(),
    );
    longest = Math.max(longest, gap);
    bench.target(`a status at least every ${OUTAGE_TARGET_SECONDS} s`, gap < OUTAGE_TARGET_SECONDS, `${gap.toFixed(1)} s`);
    const journal = await bench.journalSince(fromMs);
    const [stops, starts] = [linesThat(journal, 'Stopping '), linesThat(journal, 'Starting ')];
    bench.check('it was stopped once and started once', stops === 1 && starts === 1, { stops, starts });
    bench.check('no start failed', (await bench.appliance.restarts()) === 0);
    const roleStarts = linesThat(await machine.journal(ROLE, '--since', `@${(fromMs / 1000).toFixed(3)}`), 'Starting ');
    const isNew = (await machine.show(ROLE, 'MainPID')) !== rolePid;
    bench.check('a second role was started once as well', roleStarts === 1 && isNew, roleStarts);
    bench.check('and is active', (await machine.show(ROLE, 'ActiveState')) === 'active');
    await bench.checkPublishing(3);
  }
  return longest;
}

/** A newer version with the given differences in its files. */
async function newerPackage(bench: FaultBench, files: Readonly<Record<string, string>>): Promise<string> {
  return repackaged((await builtPackage()).file, { version: NEWER, files }, temporaryFolder(bench));
}

fault(
  'upgrade-downgrade',
  {
    core: true,
    boot,
    expected:
      'upgraded and downgraded under load: one restart each time, within seconds, configuration and history kept, nothing published is lost',
  },
  async (bench) => {
    const { machine } = bench;
    const edited = await machine.read(CONFIG);
    const shipped = readFileSync(join(ROOT, 'config/edge_health_config.yaml'), 'utf8');
    const recoverySeconds = await upgradeAndDowngrade(
      bench,
      await newerPackage(bench, { [CONFIG]: `# Of the newer version.\n${shipped}` }),
    );
    bench.check('the edited configuration is kept', (await machine.read(CONFIG)) === edited);
    bench.check("the package's lies beside it", (await machine.read(`${CONFIG}.dpkg-dist`)).includes('thresholds:'));
    const { quarantined } = (await bench.appliance.status()).storage;
    bench.check('no database was quarantined', quarantined.length === 0, quarantined);
    return bench.finish({ observed: 'two restarts; recovery is the longest time without a status', recoverySeconds });
  },
);

const WORKER = '/usr/lib/edge-health/dist/store-worker.cjs';

fault(
  'downgrade-over-newer-schema',
  {
    boot,
    expected: "the older version quarantines a newer version's database, reports it and creates its own; nothing published since is lost",
  },
  async (bench) => {
    const { machine } = bench;
    const program = await machine.read(WORKER);
    const schema = Number(/\bSCHEMA_VERSION = (\d+)/.exec(program)?.[1]);
    if (!(schema > 0)) throw new Error(`${WORKER} has no SCHEMA_VERSION`);
    // The schema number that the store of a newer version would give its database.
    const files = { [WORKER]: program.replace(/\bSCHEMA_VERSION = \d+/, `SCHEMA_VERSION = ${schema + 1}`) };
    const recoverySeconds = await upgradeAndDowngrade(bench, await newerPackage(bench, files));
    const { quarantined } = (await bench.appliance.status()).storage;
    bench.check('/status reports the quarantined database', quarantined.length === 1, quarantined);
    const copy = join(temporaryFolder(bench), 'state');
    mkdirSync(copy);
    await machine.copyOut(STATE, copy);
    // The newer version has no migration: it quarantined the database that it found, and so did the older one.
    const file = readdirSync(copy)
      .filter((name) => /quarantined-[^-]+$/.test(name))
      .toSorted()
      .at(-1);
    bench.check('it lies beside the new one', file !== undefined);
    if (file !== undefined) {
      const db = new DatabaseSync(join(copy, file));
      const found = {
        ...db.prepare('PRAGMA user_version').get(),
        ...db.prepare('PRAGMA integrity_check').get(),
        ...db.prepare('SELECT count(*) AS rows FROM raw').get(),
      };
      db.close();
      const isWhole = found['integrity_check'] === 'ok' && found['user_version'] === schema + 1 && Number(found['rows']) > 0;
      bench.check('whole, with its content', isWhole, found);
    }
    return bench.finish({
      observed: 'quarantined whole, a new one created; the history before is in the quarantined file',
      recoverySeconds,
      removedBeforeMs: Date.parse((await bench.appliance.status()).started),
    });
  },
);

fault(
  'removed-and-installed',
  { boot, expected: 'removed and installed again: history, alerts and configuration are as before' },
  async (bench) => {
    const { machine } = bench;
    const { file, version } = await builtPackage();
    await machine.copyIn(file, '/root/again.deb');
    bench.check('it is the version that runs', (await field(file, 'Version')) === version);
    await machine.sh('DEBIAN_FRONTEND=noninteractive apt-get remove -y edge-health', { timeoutSeconds: 300 });
    bench.check('the service does not run', (await machine.run(['systemctl', 'is-active', UNIT])).code !== 0);
    const injectedMs = Date.now();
    await install(bench, version, '/root/again.deb');
    const recoverySeconds = await bench.recovered(injectedMs, 60);
    return bench.finish({ observed: 'as before; recovery counts from the start of the installation', recoverySeconds });
  },
);
