import { mkdirSync, readdirSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CONFIG, STATE, UNIT } from '../../../testkit/container/appliance.ts';
import { builtPackage, field, repackaged } from '../../../testkit/container/package.ts';
import { temporaryFolder } from '../../../testkit/service.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';

const GROUP = 'package';
const NEWER = '99.0.0';
/** While one process ends and the next begins nobody answers. */
const OUTAGE_SECONDS = 15;

/** Asks /health many times a second, each time on a connection of its own, as those do who know of no upgrade. */
class Load {
  answered = 0;
  refused = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(url: string) {
    this.#timer = setInterval(() => {
      get(`${url}/health`, { agent: false, timeout: 10_000 }, (response) => {
        response.resume().on('error', () => undefined);
        this.answered += 1;
      }).on('error', () => {
        this.refused += 1;
      });
    }, 20);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** Installs a .deb that lies in the machine as an operator does; seconds that took. */
async function install(arena: Arena, file: string, version: string): Promise<void> {
  const { machine } = arena;
  const { code, stdout, stderr } = await machine.run(
    ['apt-get', 'install', '-y', '--allow-downgrades', '-o', 'DPkg::Options::=--force-confold', file],
    { environment: { DEBIAN_FRONTEND: 'noninteractive' }, timeoutSeconds: 180 },
  );
  arena.must(`apt-get installs ${version}`, code === 0, stdout + stderr);
  await machine.untilJson<{ version: string }>('/status', (status) => status.version === version, 30);
}

/** One after the other: the newer version, and the older one again, under load. Returns the recovery of the slower. */
async function upAndDown(arena: Arena, newer: string): Promise<number> {
  const { machine } = arena;
  const { file, version } = await builtPackage();
  await machine.copyIn(newer, '/root/newer.deb');
  await machine.copyIn(file, '/root/older.deb');
  const load = new Load(await machine.url());
  arena.afterwards(() => load.stop());
  let slowest = 0;
  for (const [deb, wanted] of [
    ['/root/newer.deb', NEWER],
    ['/root/older.deb', version],
  ] as const) {
    const beganMs = Date.now();
    await install(arena, deb, wanted);
    await arena.recovered(Date.now(), OUTAGE_SECONDS);
    const silence = longestSilence(arena, beganMs);
    slowest = Math.max(slowest, silence);
    arena.must(`published nothing for less than ${OUTAGE_SECONDS} s`, silence < OUTAGE_SECONDS, silence);
    const starts = (await machine.journal(UNIT, '--since', `@${beganMs / 1000}`))
      .split('\n')
      .filter((line) => line.startsWith('Starting '));
    arena.must('it was started once', starts.length === 1, starts.length);
    arena.must('no start failed', (await arena.appliance.restarts()) === 0);
    await pause(3);
  }
  load.stop();
  arena.must('there was a load', load.answered > 100, load.answered);
  return slowest;
}

function longestSilence(arena: Arena, fromMs: number): number {
  const arrivals = [fromMs, ...arena.stream.statuses.map(({ it }) => Date.parse(it.timestamp)).filter((stamp) => stamp >= fromMs)];
  return Math.max(0, ...arrivals.slice(1).map((stamp, index) => (stamp - (arrivals[index] as number)) / 1000));
}

async function madeNewer(arena: Arena, files: Readonly<Record<string, string>>): Promise<string> {
  const folder = temporaryFolder();
  arena.afterwards(folder.remove);
  return repackaged((await builtPackage()).file, { version: NEWER, files }, folder.path);
}

export const upgradeDowngrade: Fault = {
  name: 'upgrade-downgrade',
  group: GROUP,
  core: true,
  boot: { alone: true },
  expected:
    'upgraded and downgraded under load: each time one restart within seconds, configuration and history kept, nothing published lost',
  async run(arena) {
    const edited = await arena.machine.read(CONFIG);
    const recoverySeconds = await upAndDown(arena, await madeNewer(arena, {}));
    arena.must('the edited configuration is kept', (await arena.machine.read(CONFIG)) === edited);
    const { set_aside: aside } = (await arena.appliance.status()).storage;
    arena.must('no database was set aside', aside.length === 0, aside);
    return arena.finish({ observed: 'two restarts; recovery is the longest time without a status', recoverySeconds });
  },
};

const WORKER = '/usr/lib/edge-health/dist/store-worker.cjs';

export const downgradeOverNewerSchema: Fault = {
  name: 'downgrade-over-newer-schema',
  group: GROUP,
  core: false,
  boot: { alone: true },
  expected:
    "a newer version's database is set aside whole by the older one, which begins its own, and says so; nothing published since is lost",
  async run(arena) {
    const { machine } = arena;
    const folder = temporaryFolder();
    arena.afterwards(folder.remove);
    const program = await machine.read(WORKER);
    const schema = Number(/\bSCHEMA_VERSION = (\d+)/.exec(program)?.[1]);
    if (!(schema > 0)) throw new Error(`${WORKER} does not tell its SCHEMA_VERSION`);
    // As the store of a newer version would number its database.
    const files = { [WORKER]: program.replace(/\bSCHEMA_VERSION = \d+/, `SCHEMA_VERSION = ${schema + 1}`) };
    const recoverySeconds = await upAndDown(arena, await madeNewer(arena, files));
    const { set_aside: aside } = (await arena.appliance.status()).storage;
    arena.must('/status tells that the database was set aside', aside.length === 1, aside);
    mkdirSync(join(folder.path, 'state'));
    await machine.copyOut(STATE, join(folder.path, 'state'));
    const [file] = readdirSync(join(folder.path, 'state')).filter((name) => /set-aside-[^-]+$/.test(name));
    arena.must('it lies beside the new one', file !== undefined);
    if (file !== undefined) {
      const db = new DatabaseSync(join(folder.path, 'state', file));
      const version = db.prepare('PRAGMA user_version').get() as { user_version: number };
      const whole = db.prepare('PRAGMA integrity_check').get() as { integrity_check: string };
      const rows = db.prepare('SELECT count(*) AS rows FROM raw').get() as { rows: number };
      db.close();
      arena.must('whole, with what it held', whole.integrity_check === 'ok' && version.user_version === schema + 1 && rows.rows > 0, {
        ...version,
        ...whole,
        ...rows,
      });
    }
    const begun = Date.parse((await arena.appliance.status()).started);
    return arena.finish({
      observed: 'set aside whole, a new one begun; its history is in the file beside it',
      recoverySeconds,
      goneBeforeMs: begun,
    });
  },
};

export const removedAndInstalled: Fault = {
  name: 'removed-and-installed',
  group: GROUP,
  core: false,
  boot: { alone: true },
  expected: 'removed and installed again: history, alerts and configuration are as they were',
  async run(arena) {
    const { machine } = arena;
    const { file, version } = await builtPackage();
    await machine.copyIn(file, '/root/again.deb');
    arena.must('it is the version that runs', (await field(file, 'Version')) === version);
    await machine.sh('DEBIAN_FRONTEND=noninteractive apt-get remove -y edge-health', { timeoutSeconds: 120 });
    arena.must('nothing of it runs', (await machine.run(['systemctl', 'is-active', UNIT])).code !== 0);
    const beganMs = Date.now();
    await install(arena, '/root/again.deb', version);
    const recoverySeconds = await arena.recovered(beganMs, 60);
    return arena.finish({ observed: 'as before; recovery is from the installation’s beginning', recoverySeconds });
  },
};
