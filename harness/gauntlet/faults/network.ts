import { spawnSync } from 'node:child_process';
import { VENDORS } from '../../../testkit/dds/peers.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { askFromElsewhere, Listeners, lanOf, restAfter } from './network-listeners.ts';

const GROUP = 'network';
/** Others announce themselves every eight seconds, and leases of 20 s may have to end first. */
const BACK_SECONDS = 30;
const EXPECTED =
  'sampling goes on; REST and subscribers (Cyclone DDS, Fast DDS) on another computer are back within 30 s, and of the topic nothing is lost that keep last 10 promises';

interface Disturbance {
  readonly disturb: (arena: Arena) => Promise<unknown>;
  /** The address of the machine afterwards. */
  readonly address?: string;
  readonly observed: string;
}

/** What is done to the machine's interface, seen from another computer. */
async function disturbed(arena: Arena, { disturb, address, observed }: Disturbance): Promise<Figures> {
  const listeners = await Listeners.start(arena);
  const restarts = await arena.appliance.restarts();
  arena.beganMs = Date.now();
  await pause(2);
  const missedBefore = (await arena.appliance.status()).publish.missed;
  const beganMs = Date.now();
  await disturb(arena);
  const endedMs = Date.now();
  const at = address ?? lanOf(arena).interface.address;
  const [rest, topic] = await Promise.all([restAfter(arena, at, endedMs, BACK_SECONDS), listeners.hearAfter(endedMs, BACK_SECONDS + 15)]);
  arena.must('both are back within 30 s', Math.max(rest, topic) <= BACK_SECONDS, { rest, topic });
  await pause(5);
  const { text, gone } = await listeners.judge(beganMs);
  const { publish, ros } = await arena.appliance.status();
  const missed = publish.missed - missedBefore;
  arena.must('sampling does not notice', missed <= 1 + ((Date.now() - arena.beganMs) / 1000) * arena.hertz * 0.01, missed);
  arena.must('the service was not restarted', (await arena.appliance.restarts()) === restarts);
  arena.must('nothing is wrong on the graph', ros.problem === null, ros.problem);
  return arena.finish({
    observed: `${observed}; REST elsewhere back after ${rest.toFixed(1)} s, the topic after ${topic.toFixed(1)} s; of what was published ${text} (${gone} in all)`,
    recoverySeconds: Math.max(rest, topic),
  });
}

const DOWN_SECONDS = 5;

export const interfaceDown: Fault = {
  name: 'interface-down-up',
  group: GROUP,
  core: true,
  expected: `the interface is down for 5 s: ${EXPECTED}`,
  boot: { lan: 'good' },
  run: (arena) =>
    disturbed(arena, {
      observed: 'down for 5 s',
      disturb: async () => {
        lanOf(arena).interface.down();
        await pause(DOWN_SECONDS);
        lanOf(arena).interface.up();
      },
    }),
};

export const interfaceFlaps: Fault = {
  name: 'interface-flaps',
  group: GROUP,
  core: false,
  expected: `the interface goes down and up twenty times in 10 s: ${EXPECTED}`,
  boot: { lan: 'good' },
  run: (arena) =>
    disturbed(arena, {
      observed: 'twenty times down and up',
      disturb: async () => {
        for (let times = 0; times < 20; times += 1) {
          lanOf(arena).interface.down();
          await pause(0.2);
          lanOf(arena).interface.up();
          await pause(0.3);
        }
      },
    }),
};

/** Another name for the machine's interface; its address stays. */
async function rename(arena: Arena, from: string, to: string): Promise<void> {
  const { machine } = lanOf(arena);
  machine.ip('link', 'set', from, 'down');
  machine.ip('link', 'set', from, 'name', to);
  machine.ip('link', 'set', to, 'up');
  machine.ip('route', 'replace', '239.0.0.0/8', 'dev', to);
}

export const interfaceRenamed: Fault = {
  name: 'interface-renamed',
  group: GROUP,
  core: false,
  expected: `the interface gets another name, as by udev: ${EXPECTED}`,
  boot: { lan: 'good', alone: true },
  run: (arena) => disturbed(arena, { observed: 'eth0 became wan0', disturb: () => rename(arena, lanOf(arena).interface.name, 'wan0') }),
};

export const addressChanged: Fault = {
  name: 'address-changed',
  group: GROUP,
  core: false,
  expected: `the interface gets another address, as by another lease: ${EXPECTED}`,
  boot: { lan: 'good', alone: true },
  run: (arena) =>
    disturbed(arena, {
      observed: '10.77.1.1 became 10.77.1.99',
      address: '10.77.1.99',
      disturb: async () => lanOf(arena).interface.setAddress('10.77.1.99'),
    }),
};

export const interfaceReplaced: Fault = {
  name: 'interface-replaced',
  group: GROUP,
  core: false,
  expected: `the interface vanishes, as one on USB does, and 5 s later another one comes, renamed and with another address: ${EXPECTED}`,
  boot: { lan: 'good', alone: true },
  run: (arena) =>
    disturbed(arena, {
      observed: 'gone for 5 s, then another one',
      address: '10.77.1.120',
      disturb: async () => {
        const { interface: first, machine, segment } = lanOf(arena);
        first.remove();
        await pause(DOWN_SECONDS);
        const second = segment.attach(machine, { number: 120 });
        await rename(arena, second.name, 'usb0');
      },
    }),
};

const LOSS_PERCENT = 30;
const DELAY_MS = 200;
const BAD_SECONDS = 60;

/** Makes the wire of the machine bad: by the kernel's netem where it has it, else by the relay that is its wire. Says which it was. */
async function badWire(arena: Arena): Promise<string> {
  const { interface: own, link, machine } = lanOf(arena);
  const [program, args] = machine.command('tc', [
    'qdisc',
    'add',
    'dev',
    own.name,
    'root',
    'netem',
    'loss',
    `${LOSS_PERCENT}%`,
    'delay',
    `${DELAY_MS}ms`,
  ]);
  const hasNetem = spawnSync(program, args).status === 0;
  if (!link) throw new Error('the wire of the machine cannot be made bad');
  // What netem does to what goes out, the relay does to what comes in as well; it has no delay of its own then.
  await link.set(hasNetem ? { lossPercent: LOSS_PERCENT } : { lossPercent: LOSS_PERCENT, reorderPercent: 100, holdMs: DELAY_MS });
  arena.afterwards(() => goodWire(arena, hasNetem));
  return hasNetem ? 'tc netem and a relay' : 'a relay in the wire, as this kernel has no netem';
}

async function goodWire(arena: Arena, hasNetem: boolean): Promise<void> {
  const { interface: own, link, machine } = lanOf(arena);
  if (hasNetem) spawnSync(...machine.command('tc', ['qdisc', 'del', 'dev', own.name, 'root']));
  await link?.set({ lossPercent: 0, reorderPercent: 0, holdMs: 0 });
}

export const lossAndDelay: Fault = {
  name: 'loss-30-delay-200',
  group: GROUP,
  core: false,
  expected:
    'of everything on the wire 30 % is lost and the rest comes 200 ms later, for a minute, at one status a second: every status reaches Cyclone DDS and Fast DDS on another computer, REST answers there, within 20 s',
  boot: { lan: 'lossy', config: { publish_frequency: 1 }, alone: true },
  async run(arena) {
    const listeners = await Listeners.start(arena);
    arena.beganMs = Date.now();
    await pause(3);
    const badMs = Date.now();
    const how = await badWire(arena);
    const tookSeconds: number[] = [];
    let failed = 0;
    while (Date.now() < badMs + BAD_SECONDS * 1000) {
      const seconds = await askFromElsewhere(arena, lanOf(arena).interface.address, 20);
      if (seconds === null) failed += 1;
      else tookSeconds.push(seconds);
      await pause(1);
    }
    const state = await lanOf(arena).link?.state();
    const goodMs = Date.now();
    await goodWire(arena, how.startsWith('tc'));
    const topic = await listeners.hearAfter(goodMs, BACK_SECONDS);
    const stored = await arena.stored(arena.beganMs, goodMs);
    await pause(3);
    const texts: string[] = [];
    for (const vendor of VENDORS) {
      const heard = new Map(listeners.heard(vendor).map(({ stampMs, atMs }) => [stampMs, (atMs - stampMs) / 1000]));
      const gone = stored.filter((stamp) => !heard.has(stamp));
      const late = stored.flatMap((stamp) => heard.get(stamp) ?? []).toSorted((a, b) => a - b);
      arena.must(
        `${vendor}: every status comes`,
        gone.length === 0 && stored.length > BAD_SECONDS - 5,
        `${gone.length} of ${stored.length} missing`,
      );
      texts.push(
        `${vendor} heard all but ${gone.length} of ${stored.length}, the median ${late[late.length >> 1]?.toFixed(1)} s late, at most ${late.at(-1)?.toFixed(1)} s`,
      );
    }
    const lost = (state?.forth.lost ?? 0) + (state?.back.lost ?? 0);
    arena.must('frames were lost', lost > 50, state);
    arena.must('REST is answered, 3 times of 4', tookSeconds.length >= 3 * failed && tookSeconds.length > 2, { tookSeconds, failed });
    const sorted = tookSeconds.toSorted((a, b) => a - b);
    const observed = `${how}: ${lost} frames lost; ${texts.join('; ')}; REST: ${sorted.length} of ${sorted.length + failed} answered, median ${sorted[sorted.length >> 1]?.toFixed(1)} s`;
    return arena.finish({ observed, recoverySeconds: topic });
  },
};
