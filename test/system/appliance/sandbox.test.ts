import t, { type Test } from 'tap';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';
import { NEEDED, PREPARE, PROBES } from './support/probes.ts';

t.setTimeout(240_000);

const SCRIPTS = '/usr/local/lib/probes';
/** Prints the number of each script that succeeds, and the output of the others. */
const RUNNER = `#!/bin/sh
for script in "$1"/*; do
  if said=$(timeout 10 sh "$script" 2>&1); then echo "can $(basename "$script")"; else echo "cannot $(basename "$script"): $said" | tr '\\n' ' '; echo; fi
done
cat /proc/self/status
`;

/** The names of the scripts that succeeded, and everything that was printed. */
interface Answers {
  readonly can: ReadonlySet<string>;
  readonly text: string;
}

function answers(names: readonly string[], text: string): Answers {
  const numbers = [...text.matchAll(/^can (\d+)$/gm)].map(([, number]) => Number(number));
  return { can: new Set(numbers.map((number) => names[number] ?? '')), text };
}

/** Every script by its number, in a folder of the container. */
async function lay(machine: Container, folder: string, scripts: Readonly<Record<string, string>>): Promise<string> {
  for (const [number, script] of Object.values(scripts).entries()) {
    await machine.write(`${SCRIPTS}/${folder}/${String(number).padStart(3, '0')}`, `${script}\n`);
  }
  return `${SCRIPTS}/${folder}`;
}

/**
 * Runs the scripts as the unit itself, with all of its directives: a drop-in replaces nothing but the program (and marks it as one
 * which ends).
 */
async function asUnit(machine: Container, unit: string, folder: string): Promise<string> {
  const dropIn = `/run/systemd/system/${unit}.service.d/probe.conf`;
  const log = `/root/probe-${unit}.log`;
  await machine.write(
    dropIn,
    `[Unit]\nConditionPathExists=\n[Service]\nType=oneshot\nRestart=no\nExecStart=\nExecStart=/usr/local/bin/run-probes ${folder}\nStandardOutput=truncate:${log}\n`,
  );
  await machine.systemctl('daemon-reload');
  await machine.systemctl('start', unit);
  await machine.sh(`rm ${dropIn}; systemctl daemon-reload`);
  return machine.read(log);
}

/** Fields of /proc/<pid>/status that show what a process may do. */
function rights(status: string): Record<string, string> {
  return Object.fromEntries(
    [...status.matchAll(/^(NoNewPrivs|Seccomp|CapInh|CapPrm|CapEff|CapBnd|CapAmb|Uid|Gid):\s+(.*)$/gm)].map((m) => [m[1], m[2]]),
  );
}

async function forbidden(t: Test, machine: Container, unit: string): Promise<void> {
  const names = Object.keys(PROBES);
  const inside = answers(names, await asUnit(machine, unit, `${SCRIPTS}/forbidden`));
  for (const name of names) t.notOk(inside.can.has(name), `cannot ${name}`);
  t.equal(inside.text.match(/^cannot /gm)?.length, names.length, 'each was tried');
  t.match(rights(inside.text), {
    NoNewPrivs: '1',
    Seccomp: '2',
    ...Object.fromEntries(['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => [`Cap${set}`, '0000000000000000'])),
  });

  // The harness keeps nothing in memory.
  const needed = Object.keys(NEEDED).filter((name) => unit !== 'edge-health-harness' || !name.includes('in memory'));
  const allowed = answers(Object.keys(NEEDED), await asUnit(machine, unit, `${SCRIPTS}/needed`));
  for (const name of needed) t.ok(allowed.can.has(name), `can ${name}`, { said: allowed.text });
}

for (const suite of SUITES) {
  t.test(`the sandbox in ${suite}`, { skip: containersUnavailable() }, async (t) => {
    const { file } = await builtPackage();
    const machine = await Container.boot(t, { suite, installed: file });
    await machine.untilJson<{ status?: string }>('/health', ({ status }) => status !== undefined);
    const names = Object.keys(PROBES);
    await machine.write('/usr/local/bin/run-probes', RUNNER, '755');
    await machine.sh(PREPARE);
    await lay(machine, 'forbidden', Object.fromEntries(names.map((name) => [name, PROBES[name]?.script ?? ''])));
    await lay(machine, 'needed', NEEDED);

    await t.test('the running service is in the sandbox', async (t) => {
      const pid = await machine.show('edge-health', 'MainPID');
      const own = rights(await machine.read(`/proc/${pid}/status`));
      const ids = Array(4)
        .fill(await machine.sh('id -u edge-health'))
        .join('\t');
      t.match(own, { NoNewPrivs: '1', Seccomp: '2', CapEff: '0000000000000000', CapBnd: '0000000000000000', Uid: ids });
      for (const space of ['mnt', 'user']) {
        const links = (await machine.sh(`readlink /proc/${pid}/ns/${space} /proc/1/ns/${space}`)).split('\n');
        t.not(links[0], links[1], `a ${space} namespace of its own`);
      }
    });

    await t.test('outside of the sandbox everything forbidden works, which shows that the probes are right', async (t) => {
      const run = async (user?: string): Promise<Answers> => {
        const argv = ['sh', '-c', `cd /var/lib/edge-health && exec /usr/local/bin/run-probes ${SCRIPTS}/forbidden`];
        return answers(names, (await machine.run(argv, user === undefined ? {} : { user })).stdout);
      };
      const [user, root] = [await run('edge-health'), await run()];
      for (const name of names) {
        const { can, text } = PROBES[name]?.control === 'user' ? user : root;
        t.ok(can.has(name), `${PROBES[name]?.control} can ${name}`, { said: text.split('\n')[names.indexOf(name)] });
      }
    });

    for (const unit of ['edge-health', 'edge-health@probe', 'edge-health-ops', 'edge-health-harness']) {
      await t.test(`${unit}.service`, async (t) => {
        await machine.systemctl('stop', unit);
        await forbidden(t, machine, unit);
      });
    }
    await machine.systemctl('start', 'edge-health');
    await machine.untilJson<{ status?: string }>('/health', ({ status }) => status !== undefined);
    t.pass('the service itself still starts');
  });
}
