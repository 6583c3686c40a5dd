import { join } from 'node:path';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { ROOT } from '../../../testkit/service.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import type { Figures } from '../observation.ts';
import { addressOf, attacker, flood, Meter, PRECEDENCE, Told, told } from './flood-meter.ts';

const GROUP = 'flood';
const RTPS = join(ROOT, 'testkit/dds/attacker-program.ts');
const BOOT = { lan: 'good', files: PRECEDENCE } as const;

interface Sent {
  readonly opened: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly sentBytes: number;
}

const sentText = ({ opened, answers, sentBytes }: Sent): string => {
  const codes = Object.entries(answers).map(([code, count]) => `${count} × ${code}`);
  return `${opened} connections, ${(sentBytes / 1e6).toFixed(1)} MB sent${codes.length > 0 ? `, answered ${codes.join(', ')}` : ''}`;
};

/** Floods the REST port from another computer for so long. */
async function floodRest(arena: Arena, kinds: readonly string[], seconds: number, servedShare: number): Promise<Figures> {
  const texts: string[] = [];
  let recoverySeconds = 0;
  for (const kind of kinds) {
    const host = attacker(arena);
    const meter = await Meter.start(arena);
    const attack = await flood(arena, host, kind, seconds);
    const sent = await attack.end<Sent>(false);
    arena.must(`${kind}: it was felt`, sent.opened > 40, sent);
    const metered = await meter.end(servedShare);
    recoverySeconds = Math.max(recoverySeconds, metered.backSeconds);
    texts.push(`${kind}: ${sentText(sent)}; ${told(metered)}`);
    arena.progress(texts.at(-1) ?? '');
  }
  return arena.finish({ observed: texts.join('. '), recoverySeconds });
}

const EXPECTED =
  'sampling goes on without a slot missed beyond 1 %, memory stays below 200 MB, the watchdog is content, who was there goes on being served; afterwards all is as before';

export const floodConnections: Fault = {
  name: 'flood-connections',
  group: GROUP,
  core: false,
  expected: `a thousand connections at once that ask nothing, others opened and closed or reset as fast as they go: ${EXPECTED}`,
  boot: BOOT,
  run: (arena) => floodRest(arena, ['connections', 'churn', 'resets'], 10, 0.9),
};

export const floodSlow: Fault = {
  name: 'flood-slow-loris',
  group: GROUP,
  core: false,
  expected: `600 clients that send a request a letter a second: ${EXPECTED}`,
  boot: BOOT,
  run: (arena) => floodRest(arena, ['loris'], 30, 0.9),
};

export const floodGarbage: Fault = {
  name: 'flood-garbage',
  group: GROUP,
  core: false,
  expected: `octets that are no request, headers, addresses and bodies without end, thousands of requests at once whose answers nobody reads: ${EXPECTED}`,
  boot: BOOT,
  run: (arena) => floodRest(arena, ['garbage', 'headers', 'pipelined'], 5, 0.9),
};

/** Connections whose other end is not there: half open, or of a computer that has vanished. */
export const floodHalfOpen: Fault = {
  name: 'flood-half-open',
  group: GROUP,
  core: false,
  expected: `connections that are never completed, and those of a computer that vanishes without a word: ${EXPECTED}`,
  boot: BOOT,
  async run(arena) {
    const { segment, machine } = arena.lan as NonNullable<Arena['lan']>;
    const vanishing = attacker(arena);
    const mute = arena.lan?.network.host() ?? vanishing;
    const place = segment.attach(mute);
    // It knows where the machine is, and does not say where it is itself: what the machine answers reaches nobody.
    const address = addressOf(arena);
    const link = /link\/ether (\S+)/.exec(machine.ip('link', 'show', 'dev', arena.lan?.interface.name ?? ''))?.[1] ?? '';
    mute.ip('link', 'set', place.name, 'arp', 'off');
    mute.ip('neighbour', 'replace', address, 'lladdr', link, 'dev', place.name, 'nud', 'permanent');
    const meter = await Meter.start(arena);
    const [silent, vanished] = await Promise.all([flood(arena, mute, 'connections', 15), flood(arena, vanishing, 'connections', 15)]);
    await pause(4);
    const half = Number(await arena.machine.sh('ss -Htan state syn-recv sport = :5000 | wc -l'));
    arena.must('there are half-open connections', half > 50, half);
    const { rest } = await arena.machine.json<StatusDocument>('/status');
    vanishing.ip('link', 'set', 'eth0', 'down');
    await Promise.all([silent.end<Sent>(false), vanished.end<Sent>(false)]);
    const metered = await meter.end(0.9);
    const observed = `${half} half-open ones at a time, ${rest.connections} of a computer that vanished; ${told(metered)}`;
    return arena.finish({ observed, recoverySeconds: metered.backSeconds });
  },
};

const ATTACKS = ['rubbish', 'oversized', 'replayed', 'lies', 'endpoints', 'flood', 'participants'] as const;

async function floodRtps(arena: Arena, attacks: readonly (typeof ATTACKS)[number][]): Promise<Figures> {
  const host = attacker(arena);
  const texts: string[] = [];
  const meter = await Meter.start(arena);
  for (const attack of attacks) {
    const program = await Told.start(arena, host, RTPS, [attack, addressOf(arena)]);
    const { sent, octets, seconds } = await program.end<{ sent: number; octets: number; seconds: number }>(false);
    texts.push(`${attack} ${sent} datagrams, ${(octets / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s`);
    arena.progress(texts.at(-1) ?? '');
  }
  const endedMs = Date.now();
  const metered = await meter.end(0.9);
  const topic = arena.topic?.statuses ?? [];
  const stored = await arena.stored(arena.beganMs, endedMs);
  const heard = new Set(topic.map(({ it }) => Date.parse(it.timestamp)));
  const lost = stored.filter((stamp) => !heard.has(stamp));
  arena.must('the subscriber on another computer missed nothing', lost.length === 0, `${lost.length} of ${stored.length}`);
  const { ros } = await arena.appliance.status();
  arena.must('what was wrong was refused', ros.refused > 1000, ros);
  return arena.finish({
    observed: `${texts.join('; ')}; ${told(metered)}; the subscriber missed ${lost.length} of ${stored.length}`,
    recoverySeconds: metered.backSeconds,
  });
}

export const floodRtpsAll: Fault = {
  name: 'flood-rtps',
  group: GROUP,
  core: false,
  expected: `noise, mutated and oversized datagrams, participants that are not there, endpoints without end, what others said said again: ${EXPECTED}; nothing is lost between the machine and a subscriber`,
  boot: { ...BOOT, alone: true },
  run: (arena) => floodRtps(arena, ATTACKS),
};

export const floodRtpsRubbish: Fault = {
  name: 'flood-rtps-rubbish',
  group: GROUP,
  core: false,
  expected: `20,000 mutated datagrams and 10,000 spoofed announcements: ${EXPECTED}; nothing is lost between the machine and a subscriber`,
  boot: BOOT,
  run: (arena) => floodRtps(arena, ['rubbish', 'participants']),
};
