import { randomBytes } from 'node:crypto';
import { CONFIG, UNIT } from '../../../testkit/container/appliance.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import { mustGoOn, mustPublishOn, runOf, saidSince } from './tools.ts';

const GROUP = 'configuration';
const EX_CONFIG = 78;
const FOLDER = '/etc/edge-health';

/** What may lie in the configuration's place: a shell script puts it there, or it is the content. */
const GARBAGE: Readonly<Record<string, Buffer | string | { readonly script: string }>> = {
  'random bytes': randomBytes(64 * 1024),
  'zeros, as after a power cut': Buffer.alloc(4096),
  'half of itself': 'publish_frequency: 10\nthresholds:\n  disk: {warning: 50, crit',
  'a list': '- a\n- b\n',
  'a word': 'garbage\n',
  'ten levels of aliases': `a: &a [x,x,x,x,x,x,x,x,x,x]\n${'bcdefghij'.replaceAll(
    /./g,
    (c) =>
      `${c}: &${c} [${Array(10)
        .fill(`*${String.fromCharCode(c.charCodeAt(0) - 1)}`)
        .join(',')}]\n`,
  )}`,
  '20,000 brackets': '['.repeat(20_000),
  '8 MB of one key': 'node_name: x\n'.repeat(600_000),
  'values of the wrong kind': 'publish_frequency: [1]\nthresholds: 5\nrest: {port: -1}\n',
  'nothing at all': { script: `rm ${CONFIG}` },
  'a folder': { script: `rm ${CONFIG}; mkdir ${CONFIG}` },
  'a link to itself': { script: `rm ${CONFIG}; ln -s ${CONFIG} ${CONFIG}` },
  'a file of root alone': { script: `chmod 600 ${CONFIG}` },
};

async function put(arena: Arena, what: Buffer | string | { readonly script: string }): Promise<void> {
  await arena.machine.sh(`rm -rf ${CONFIG}; cp -p ${FOLDER}/good ${CONFIG}`);
  if (typeof what === 'string' || Buffer.isBuffer(what)) await arena.machine.write(CONFIG, what);
  else await arena.machine.sh(what.script);
}

async function restore({ machine }: Arena): Promise<void> {
  await machine.sh(`[ ! -e ${FOLDER}/good ] || { rm -rf ${CONFIG}; mv ${FOLDER}/good ${CONFIG}; }`);
}

async function prepare(arena: Arena): Promise<void> {
  await arena.machine.sh(`cp -p ${CONFIG} ${FOLDER}/good`);
  arena.afterwards(() => restore(arena));
}

export const configGarbage: Fault = {
  name: 'config-garbage',
  group: GROUP,
  core: true,
  expected: 'a reload fails and says why, and everything goes on as it was; a restart is refused and says why; put right, it starts',
  async run(arena) {
    const { machine } = arena;
    await prepare(arena);
    const before = await runOf(arena);
    await put(arena, GARBAGE['random bytes'] as Buffer);
    const beganMs = Date.now();
    arena.must('systemctl reload fails', (await machine.run(['systemctl', 'reload', UNIT])).code !== 0);
    await arena.mustBe('/status tells of it', async () => {
      await machine.until(async () => (await arena.appliance.status()).config.problem !== null, 10);
      return true;
    });
    arena.must(
      'the journal says that nothing changed',
      /not reloaded: the running configuration stays in force/.test(await saidSince(arena, beganMs - 1000)),
    );
    await pause(3.5);
    await mustGoOn(arena, before);
    mustPublishOn(arena, beganMs);
    arena.must('systemctl restart fails', (await machine.run(['systemctl', 'restart', UNIT])).code !== 0);
    arena.must('the unit has failed', (await machine.show(UNIT, 'ActiveState')) === 'failed');
    arena.must('with the exit status of a wrong configuration', (await machine.show(UNIT, 'ExecMainStatus')) === String(EX_CONFIG));
    arena.must('and is not tried again', (await arena.appliance.restarts()) === 0);
    const told = (await machine.run(['systemctl', 'status', UNIT])).stdout;
    arena.must('systemctl status tells why', /not UTF-8|not started: the configuration has errors/.test(told), told);
    await restore(arena);
    const startedMs = await arena.strike(() => machine.systemctl('start', UNIT));
    const recoverySeconds = await arena.recovered(startedMs, 10);
    return arena.finish({
      observed: 'the reload changed nothing; the restart was refused; put right and started it was back; recovery is from there',
      recoverySeconds,
    });
  },
};

export const configGarbageOfAllKinds: Fault = {
  name: 'config-garbage-of-all-kinds',
  group: GROUP,
  core: false,
  expected: `${Object.keys(GARBAGE).length} kinds of garbage, each reloaded: each is refused with a reason, and everything goes on as it was`,
  async run(arena) {
    await prepare(arena);
    const before = await runOf(arena);
    const beganMs = Date.now();
    for (const [name, what] of Object.entries(GARBAGE)) {
      await put(arena, what);
      const struckMs = Date.now();
      const { code } = await arena.machine.run(['systemctl', 'reload', UNIT]);
      arena.must(`${name}: systemctl reload fails`, code !== 0);
      await arena.mustBe(`${name}: the journal says that nothing changed`, async () => {
        await arena.machine.until(async () => /not reloaded/.test(await saidSince(arena, struckMs)), 10);
        return true;
      });
      await arena.mustBe(`${name}: /status tells of it in a few words`, async () => {
        const { problem } = (await arena.appliance.status()).config;
        if (problem === null || problem.length > 20_000) throw new Error(problem === null ? 'nothing' : `${problem.length} characters`);
        return true;
      });
    }
    await mustGoOn(arena, before);
    mustPublishOn(arena, beganMs);
    await restore(arena);
    await arena.machine.systemctl('reload', UNIT);
    await arena.recovered(Date.now(), 10);
    return arena.finish({ observed: 'each was refused; the same process went on', recoverySeconds: null });
  },
};

const RELOADS = 300;

export const reloadStorm: Fault = {
  name: 'reload-storm',
  group: GROUP,
  core: false,
  expected: `${RELOADS} reloads as fast as they come, the file good and bad in turn: everything goes on`,
  async run(arena) {
    const { machine } = arena;
    await prepare(arena);
    const before = await runOf(arena);
    const beganMs = Date.now();
    await machine.write(`${FOLDER}/bad`, 'rest: {prot: 80}\n');
    await machine.sh(
      `for n in $(seq ${RELOADS / 2}); do cp ${FOLDER}/bad ${CONFIG}; kill -HUP ${before.pid}; sleep 0.01; cp ${FOLDER}/good ${CONFIG}; kill -HUP ${before.pid}; done`,
    );
    const endedMs = Date.now();
    await machine.systemctl('reload', UNIT);
    const recoverySeconds = await arena.recovered(endedMs, 10);
    await mustGoOn(arena, before);
    mustPublishOn(arena, beganMs);
    return arena.finish({ observed: `the same process went on; ${((endedMs - beganMs) / 1000).toFixed(1)} s of it`, recoverySeconds });
  },
};
