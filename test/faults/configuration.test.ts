/** Faults of the configuration file: many kinds of garbage in its place, and reloads faster than they can be handled. */
import { randomBytes } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { CONFIG, UNIT } from '../../testkit/container/appliance.ts';
import type { FaultBench } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('configuration');

const EX_CONFIG = 78;
const FOLDER = '/etc/edge-health';

type Garbage = Buffer | string | { readonly script: string };

const aliasBomb = [...'bcdefghij'].map((key) => {
  const previous = `*${String.fromCharCode(key.charCodeAt(0) - 1)}`;
  return `${key}: &${key} [${Array(10).fill(previous).join(',')}]\n`;
});

/** What may be in place of the configuration: its content, or a shell script that creates it. */
const GARBAGE: Readonly<Record<string, Garbage>> = {
  'random bytes': randomBytes(64 * 1024),
  'zeros, as after a power cut': Buffer.alloc(4096),
  'half of itself': 'publish_frequency: 10\nthresholds:\n  disk: {warning: 50, crit',
  'a list': '- a\n- b\n',
  'a word': 'garbage\n',
  'ten levels of aliases': `a: &a [x,x,x,x,x,x,x,x,x,x]\n${aliasBomb.join('')}`,
  '20,000 brackets': '['.repeat(20_000),
  '8 MB of one key': 'node_name: x\n'.repeat(600_000),
  'values of the wrong kind': 'publish_frequency: [1]\nthresholds: 5\nrest: {port: -1}\n',
  'no file': { script: `rm ${CONFIG}` },
  'a folder': { script: `rm ${CONFIG}; mkdir ${CONFIG}` },
  'a link to itself': { script: `rm ${CONFIG}; ln -s ${CONFIG} ${CONFIG}` },
  'a file only root may read': { script: `chmod 600 ${CONFIG}` },
};

async function replace({ machine }: FaultBench, garbage: Garbage): Promise<void> {
  await machine.sh(`rm -rf ${CONFIG}; cp -p ${FOLDER}/good ${CONFIG}`);
  if (typeof garbage === 'string' || Buffer.isBuffer(garbage)) await machine.write(CONFIG, garbage);
  else await machine.sh(garbage.script);
}

async function restore({ machine }: FaultBench): Promise<void> {
  await machine.sh(`[ ! -e ${FOLDER}/good ] || { rm -rf ${CONFIG}; mv ${FOLDER}/good ${CONFIG}; }`);
}

async function keepGoodFile(bench: FaultBench): Promise<void> {
  await bench.machine.sh(`cp -p ${CONFIG} ${FOLDER}/good`);
  bench.teardown(() => restore(bench));
}

const problemOf = async ({ appliance }: FaultBench): Promise<string | null> => (await appliance.status()).config.problem;

/** Two errors: in line 2 and in line 4. */
const BROKEN = 'thresholds:\n  memroy: {warning: 50}\nrest:\n  port: http\n';
const MISTAKES = [/edge_health_config\.yaml:2:3:.*memroy.*memory/, /edge_health_config\.yaml:4:9:.*rest\.port/];
const hasMistakes = (text: string | null): boolean => MISTAKES.every((mistake) => mistake.test(text ?? ''));

/** Checks that a reload is refused, and that everything continues as before. */
async function checkReloadRefused(bench: FaultBench, reason: RegExp): Promise<void> {
  const fromMs = Date.now();
  bench.check('systemctl reload fails', (await bench.machine.run(['systemctl', 'reload', UNIT])).code !== 0);
  await bench.checkEventually('/status has the reason', async () => reason.test((await problemOf(bench)) ?? ''));
  const unchanged = /not reloaded: the running configuration stays in force/;
  await bench.checkEventually('the journal has that nothing changed', async () => unchanged.test(await bench.journalSince(fromMs)));
}

/** Checks that a reloaded threshold applies to the next alert. */
async function checkReloadApplied(bench: FaultBench): Promise<void> {
  const { machine, stream } = bench;
  const threshold = 60;
  const changed = parse(await machine.read(`${FOLDER}/good`)) as { thresholds: Record<string, unknown> };
  changed.thresholds['disk'] = { warning: threshold, critical: 90 };
  await machine.write(CONFIG, stringify(changed));
  bench.check('with the next good file systemctl reload succeeds', (await machine.run(['systemctl', 'reload', UNIT])).code === 0);
  await bench.checkEventually('the problem is gone', async () => (await problemOf(bench)) === null);
  await bench.checkEventually('and the next alert has the new threshold', () => stream.alerts.some(({ it }) => it.threshold === threshold));
}

fault(
  'config-garbage',
  {
    core: true,
    expected: 'a reload fails with a reason, and everything continues as before; a restart is refused with a reason; corrected, it starts',
  },
  async (bench) => {
    const { machine } = bench;
    await keepGoodFile(bench);
    const before = await bench.serviceProcess();
    await replace(bench, GARBAGE['random bytes'] as Buffer);
    await checkReloadRefused(bench, /not UTF-8/);
    await replace(bench, BROKEN);
    await checkReloadRefused(bench, MISTAKES[0] as RegExp);
    bench.check('/status has file, line, column and key of each mistake', hasMistakes(await problemOf(bench)));
    await bench.checkEventually('as has the journal', async () => hasMistakes(await bench.journalSince(bench.beganMs)));
    await bench.checkPublishing(3.5);
    await checkReloadApplied(bench);
    await bench.checkSameProcess(before);

    await replace(bench, BROKEN);
    bench.check('systemctl restart fails', (await machine.run(['systemctl', 'restart', UNIT])).code !== 0);
    // A unit that waits for another start is "activating".
    bench.check('the unit has failed, and is not started again', (await machine.show(UNIT, 'ActiveState')) === 'failed');
    bench.check('there was one start', (await bench.appliance.restarts()) === 0);
    bench.check('with the exit status of a wrong configuration', (await machine.show(UNIT, 'ExecMainStatus')) === String(EX_CONFIG));
    const start = `_SYSTEMD_INVOCATION_ID=${await machine.show(UNIT, 'InvocationID')}`;
    await bench.checkEventually('the journal of this start has each mistake', async () => hasMistakes(await machine.journal(UNIT, start)));
    const shown = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    bench.check('systemctl status shows the reason', MISTAKES[1]?.test(shown) === true, shown);
    const checked = await machine.run(['edge-health', 'check-config', CONFIG]);
    bench.check(
      'edge-health check-config finds the same',
      checked.code === EX_CONFIG && hasMistakes(checked.stdout + checked.stderr),
      checked,
    );
    await restore(bench);
    const recoverySeconds = await bench.recoverAfter(() => machine.systemctl('start', UNIT), 10);
    return bench.finish({
      observed: 'the reload changed nothing; the restart was refused; corrected and started it was back; recovery counts from there',
      recoverySeconds,
    });
  },
);

fault(
  'config-garbage-of-all-kinds',
  {
    expected: `${Object.keys(GARBAGE).length} kinds of garbage, each reloaded: each is refused with a reason, and everything continues as before`,
  },
  async (bench) => {
    await keepGoodFile(bench);
    const before = await bench.serviceProcess();
    for (const [name, garbage] of Object.entries(GARBAGE)) {
      await replace(bench, garbage);
      const fromMs = Date.now();
      bench.check(`${name}: systemctl reload fails`, (await bench.machine.run(['systemctl', 'reload', UNIT])).code !== 0);
      await bench.checkEventually(`${name}: the journal has that nothing changed`, async () =>
        /not reloaded/.test(await bench.journalSince(fromMs)),
      );
      const problem = await problemOf(bench);
      bench.check(`${name}: /status has the problem, in a few words`, problem !== null && problem.length <= 20_000, problem?.length);
    }
    await bench.checkPublishing(1);
    await bench.checkSameProcess(before);
    await restore(bench);
    await bench.machine.systemctl('reload', UNIT);
    await bench.recovered(Date.now(), 10);
    return bench.finish({ observed: 'each was refused; the same process continued', recoverySeconds: null });
  },
);

const RELOADS = 300;

fault(
  'reload-storm',
  { expected: `${RELOADS} reloads as fast as possible, the file good and bad in turn: everything continues` },
  async (bench) => {
    const { machine } = bench;
    await keepGoodFile(bench);
    const before = await bench.serviceProcess();
    const beganMs = Date.now();
    await machine.write(`${FOLDER}/bad`, 'rest: {prot: 80}\n');
    await machine.sh(
      `for n in $(seq ${RELOADS / 2}); do cp ${FOLDER}/bad ${CONFIG}; kill -HUP ${before.pid}; sleep 0.01; cp ${FOLDER}/good ${CONFIG}; kill -HUP ${before.pid}; done`,
    );
    const endedMs = Date.now();
    await machine.systemctl('reload', UNIT);
    const recoverySeconds = await bench.recovered(endedMs, 10);
    await bench.checkPublishing(1);
    await bench.checkSameProcess(before);
    return bench.finish({
      observed: `the same process continued; ${((endedMs - beganMs) / 1000).toFixed(1)} s of reloads`,
      recoverySeconds,
    });
  },
);
