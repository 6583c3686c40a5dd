/** Floods from other computers: of connections, requests and datagrams. */
import { join } from 'node:path';
import type { StatusDocument } from '../../src/http/api/schema.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { type FaultBench, type Figures, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';
import { attacker, FloodMeter, FloodProgram, flood, meterText, PRIORITY } from './support/flood-meter.ts';

const fault = faultsOf('flood');

const RTPS = join(ROOT, 'testkit/dds/attacker-program.ts');
const boot = { lan: 'good', files: PRIORITY } as const;

interface Sent {
  readonly opened: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly sentBytes: number;
}

const sentText = ({ opened, answers, sentBytes }: Sent): string => {
  const codes = Object.entries(answers).map(([code, count]) => `${count} × ${code}`);
  return `${opened} connections, ${(sentBytes / 1e6).toFixed(1)} MB sent${codes.length > 0 ? `, answered ${codes.join(', ')}` : ''}`;
};

/** Floods the REST port from another computer for this long. */
async function floodRest(bench: FaultBench, kinds: readonly string[], seconds: number): Promise<Figures> {
  const texts: string[] = [];
  let recoverySeconds = 0;
  for (const kind of kinds) {
    const meter = await FloodMeter.start(bench);
    const attack = await flood(bench, attacker(bench), kind, seconds);
    const sent = await attack.end<Sent>(false);
    bench.check(`${kind}: the flood reached the service`, sent.opened >= 20, sent);
    const metered = await meter.end();
    recoverySeconds = Math.max(recoverySeconds, metered.recoverySeconds);
    texts.push(`${kind}: ${sentText(sent)}; ${meterText(metered)}`);
    bench.comment(texts.at(-1) ?? '');
  }
  return bench.finish({ observed: texts.join('. '), recoverySeconds });
}

const EXPECTED =
  'sampling continues with at most 1 % of the samples missed, memory stays below 80 % of MemoryMax, the watchdog is not triggered, earlier clients are served; afterwards all is as before';

fault(
  'flood-connections',
  { expected: `a thousand idle connections at once, others opened and closed or reset as fast as possible: ${EXPECTED}`, boot },
  (bench) => floodRest(bench, ['connections', 'churn', 'resets'], 10),
);

fault('flood-slow-loris', { expected: `600 clients that send a request at a byte per second: ${EXPECTED}`, boot }, (bench) =>
  floodRest(bench, ['loris'], 30),
);

fault(
  'flood-garbage',
  {
    expected: `bytes that are no request, endless headers, addresses and bodies, thousands of requests at once whose answers are not read: ${EXPECTED}`,
    boot,
  },
  (bench) => floodRest(bench, ['garbage', 'headers', 'pipelined'], 5),
);

fault(
  'flood-half-open',
  { expected: `connections that are never completed, and those of a computer that vanishes without closing them: ${EXPECTED}`, boot },
  async (bench) => {
    const { segment, machine, network, interface: own } = bench.lan;
    const vanishing = attacker(bench);
    const mute = network.host();
    const attached = segment.attach(mute);
    // It has the hardware address of the machine and does not reply for its own: responses of the machine reach no host.
    const link = /link\/ether (\S+)/.exec(machine.ip('link', 'show', 'dev', own.name))?.[1] ?? '';
    mute.ip('link', 'set', attached.name, 'arp', 'off');
    mute.ip('neighbour', 'replace', own.address, 'lladdr', link, 'dev', attached.name, 'nud', 'permanent');
    const meter = await FloodMeter.start(bench);
    const [silent, vanished] = await Promise.all([flood(bench, mute, 'connections', 15), flood(bench, vanishing, 'connections', 15)]);
    await pause(4);
    const half = Number(await bench.machine.sh('ss -Htan state syn-recv sport = :5000 | wc -l'));
    bench.check('there are half-open connections', half > 50, half);
    const { rest } = await bench.machine.untilJson<StatusDocument>('/status', () => true, 60);
    vanishing.ip('link', 'set', 'eth0', 'down');
    await Promise.all([silent.end<Sent>(false), vanished.end<Sent>(false)]);
    const metered = await meter.end();
    const observed = `${half} half-open ones at a time, ${rest.connections} of a computer that vanished; ${meterText(metered)}`;
    return bench.finish({ observed, recoverySeconds: metered.recoverySeconds });
  },
);

const ATTACKS = ['rubbish', 'oversized', 'replayed', 'lies', 'endpoints', 'flood', 'participants'] as const;

async function floodRtps(bench: FaultBench, attacks: readonly (typeof ATTACKS)[number][]): Promise<Figures> {
  const host = attacker(bench);
  const texts: string[] = [];
  const meter = await FloodMeter.start(bench);
  for (const attack of attacks) {
    const program = await FloodProgram.start(bench, host, RTPS, [attack, bench.lan.interface.address]);
    const { sent, octets, seconds } = await program.end<{ sent: number; octets: number; seconds: number }>(false);
    texts.push(`${attack} ${sent} datagrams, ${(octets / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s`);
    bench.comment(texts.at(-1) ?? '');
  }
  const endedMs = Date.now();
  const metered = await meter.end();
  const stored = await bench.stored(bench.beganMs, endedMs);
  const lost = (): number[] => {
    const received = new Set((bench.topic?.statuses ?? []).map(({ it }) => Date.parse(it.timestamp)));
    return stored.filter((stamp) => !received.has(stamp));
  };
  await bench.checkEventually(
    'the subscriber on another computer received every sample',
    () => lost().length === 0,
    () => `${lost().length} of ${stored.length} missing`,
  );
  const { ros } = await bench.appliance.status();
  bench.check('wrong datagrams were refused', ros.refused > 1000, ros);
  return bench.finish({
    observed: `${texts.join('; ')}; ${meterText(metered)}; the subscriber missed ${lost().length} of ${stored.length}`,
    recoverySeconds: metered.recoverySeconds,
  });
}

const SUBSCRIBED = `${EXPECTED}; nothing is lost between the machine and a subscriber`;

fault('flood-rtps-rubbish', { expected: `20,000 mutated datagrams and 10,000 spoofed announcements: ${SUBSCRIBED}`, boot }, (bench) =>
  floodRtps(bench, ['rubbish', 'participants']),
);

fault(
  'flood-rtps',
  {
    expected: `noise, mutated and oversized datagrams, participants that do not exist, endless endpoints, replayed messages: ${SUBSCRIBED}`,
    boot: { ...boot, alone: true },
  },
  (bench) => floodRtps(bench, ATTACKS),
);
