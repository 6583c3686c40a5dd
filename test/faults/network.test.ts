/** Faults of the network: the interface goes down, changes or vanishes, and a link that loses frames. Measured on another computer. */
import { finish } from '../../testkit/container/finish.ts';
import { Peer, VENDORS, type Vendor } from '../../testkit/dds/peers.ts';
import { type Counted, outageOf } from '../../testkit/dds/streams.ts';
import { type FaultBench, type Figures, pause } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('network');

/** Only bounds a broken test. */
const LIMIT_SECONDS = 120;
const REST_SECONDS = 5;

/** What subscribers on another computer missed. */
interface Outages {
  /** For each vendor: the number of statuses that never arrived. */
  readonly text: string;
  /** For all vendors: the number of statuses that never arrived. */
  readonly gone: number;
}

/** Subscribers to /health_status on another computer, one of each DDS implementation. */
class Subscribers {
  readonly #bench: FaultBench;
  readonly #peers: ReadonlyMap<Vendor, Peer>;

  private constructor(bench: FaultBench, peers: ReadonlyMap<Vendor, Peer>) {
    this.#bench = bench;
    this.#peers = peers;
  }

  /** Resolves when all of them have received some. */
  static async start(bench: FaultBench): Promise<Subscribers> {
    const peers = new Map<Vendor, Peer>();
    for (const vendor of VENDORS) {
      const peer = await Peer.start(bench.lan.neighbour, vendor, 'subscribe', ['--topic', '/health_status']);
      bench.teardown(() => peer.kill('SIGKILL'));
      peers.set(vendor, peer);
    }
    for (const peer of peers.values()) await peer.waitForCount('sample', 5, () => true, LIMIT_SECONDS);
    return new Subscribers(bench, peers);
  }

  /** Time stamps that have arrived, with their times of arrival. */
  received(vendor: Vendor): { readonly stampMs: number; readonly atMs: number }[] {
    return (this.#peers.get(vendor)?.all('sample') ?? []).map(({ data, wall_ms }) => ({
      stampMs: Date.parse(String(data['timestamp'])),
      atMs: wall_ms,
    }));
  }

  /** Waits until all have received what was published after a moment; returns how many seconds after it that was. */
  async untilReceived(sinceMs: number): Promise<number> {
    const receives = (vendor: Vendor): boolean => this.received(vendor).some(({ stampMs, atMs }) => stampMs > sinceMs && atMs > sinceMs);
    await this.#bench.machine.until(
      () => VENDORS.every(receives),
      LIMIT_SECONDS,
      () => `${VENDORS.filter((vendor) => !receives(vendor)).join(' and ')} receive nothing`,
    );
    const firsts = VENDORS.map(
      (vendor) => this.received(vendor).find(({ stampMs, atMs }) => stampMs > sinceMs && atMs > sinceMs)?.atMs ?? 0,
    );
    return Math.max(0, ...firsts.map((atMs) => (atMs - sinceMs) / 1000));
  }

  /** Compares what arrived with what was published up to now, with a disturbance since `disturbedMs`: nothing of the last ten may be lost. */
  async check(disturbedMs: number): Promise<Outages> {
    const bench = this.#bench;
    const toMs = Date.now();
    // The topic is in order: a later sample proves that no earlier one is still on its way.
    await this.untilReceived(toMs);
    const stored = await bench.stored(bench.beganMs, toMs);
    const numbers = new Map(stored.map((stamp, index) => [stamp, index + 1]));
    const published = stored.map((stamp, index): Counted => ({ number: index + 1, ms: stamp }));
    const texts: string[] = [];
    let lost = 0;
    for (const vendor of VENDORS) {
      const arrived = this.received(vendor).flatMap(({ stampMs, atMs }): Counted[] => {
        const number = numbers.get(stampMs);
        return number === undefined ? [] : [{ number, ms: atMs }];
      });
      const { gone, isWithinPromise } = outageOf(published, arrived, disturbedMs, stored.length);
      bench.check(
        `${vendor}: nothing of the last ten is lost`,
        arrived.length > 0 && isWithinPromise,
        `${gone.length} gone, ${gone[0]} to ${gone.at(-1)} of ${stored.length}`,
      );
      texts.push(`${vendor} missed ${gone.length}`);
      lost += gone.length;
    }
    return { text: texts.join(', '), gone: lost };
  }
}

/** Run by the neighbour: requests a page within this many seconds, and prints how many it took. */
const REQUEST = `
  const begun = performance.now();
  const response = await fetch(process.argv[1], { signal: AbortSignal.timeout(process.argv[2] * 1000) });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(String(response.status));
  console.log((performance.now() - begun) / 1000);`;

/** Requests /health from the neighbour; returns after how many seconds there was a response, null: none. */
async function requestFromNeighbour(bench: FaultBench, address: string, seconds = REST_SECONDS): Promise<number | null> {
  const args = ['--input-type=module', '--eval', REQUEST, `http://${address}:5000/health`, String(seconds)];
  const [program, given] = bench.lan.neighbour.command(process.execPath, args);
  const { code, stdout } = await finish(program, given, undefined, seconds + LIMIT_SECONDS);
  return code === 0 ? Number(stdout) : null;
}

/** Waits until REST responds on another computer; returns the seconds after `sinceMs`. */
async function untilRestAnswers(bench: FaultBench, address: string, sinceMs: number): Promise<number> {
  const answers = async (): Promise<boolean> => (await requestFromNeighbour(bench, address)) !== null;
  await bench.machine.until(answers, LIMIT_SECONDS, () => `no response at ${address}`);
  return (Date.now() - sinceMs) / 1000;
}

/** Participants announce themselves every eight seconds, and leases of 20 s may have to end first. */
const RECOVERY_TARGET_SECONDS = 30;
const EXPECTED =
  'sampling continues; REST and subscribers (Cyclone DDS, Fast DDS) on another computer are back within 30 s, and of the topic nothing is lost within the last 10 samples (KEEP_LAST 10)';

interface Disturbance {
  readonly disturb: (bench: FaultBench) => Promise<unknown>;
  /** The later address of the machine, if it changes. */
  readonly address?: string;
  readonly observed: string;
}

/** Disturbs the machine's interface; the effect is measured on another computer. */
async function disturbed(bench: FaultBench, { disturb, address, observed }: Disturbance): Promise<Figures> {
  const subscribers = await Subscribers.start(bench);
  const restarts = await bench.appliance.restarts();
  bench.beganMs = Date.now();
  await pause(2);
  const missedBefore = (await bench.appliance.status()).publish.missed;
  const beganMs = Date.now();
  await disturb(bench);
  const endedMs = Date.now();
  const at = address ?? bench.lan.interface.address;
  const [rest, topic] = await Promise.all([untilRestAnswers(bench, at, endedMs), subscribers.untilReceived(endedMs)]);
  const recoverySeconds = Math.max(rest, topic);
  bench.check('REST and the topic are back', true);
  bench.target('within 30 s', recoverySeconds <= RECOVERY_TARGET_SECONDS, `${recoverySeconds.toFixed(1)} s`);
  await pause(5);
  const { text, gone } = await subscribers.check(beganMs);
  const { publish, ros } = await bench.appliance.status();
  const missed = publish.missed - missedBefore;
  const taken = ((Date.now() - bench.beganMs) / 1000) * bench.hertz;
  bench.check('sampling continues', missed < taken / 2, missed);
  bench.target('at most 1 % of the samples is missed', missed <= 1 + taken / 100, `${missed} of ${taken.toFixed(0)}`);
  bench.check('the service was not restarted', (await bench.appliance.restarts()) === restarts);
  bench.check('no problem with ROS 2 is reported', ros.problem === null, ros.problem);
  return bench.finish({
    observed: `${observed}; REST on another computer back after ${rest.toFixed(1)} s, the topic after ${topic.toFixed(1)} s; of what was published ${text} (${gone} in all)`,
    recoverySeconds,
  });
}

const DOWN_SECONDS = 5;

fault(
  'interface-down-up',
  {
    core: true,
    expected: `the interface is down for 5 s: ${EXPECTED}`,
    boot: { lan: 'good' },
  },
  (bench) =>
    disturbed(bench, {
      observed: 'down for 5 s',
      disturb: async () => {
        bench.lan.interface.down();
        await pause(DOWN_SECONDS);
        bench.lan.interface.up();
      },
    }),
);

fault(
  'interface-flaps',
  {
    expected: `the interface goes down and up twenty times in 10 s: ${EXPECTED}`,
    boot: { lan: 'good' },
  },
  (bench) =>
    disturbed(bench, {
      observed: 'twenty times down and up',
      disturb: async () => {
        for (let times = 0; times < 20; times += 1) {
          bench.lan.interface.down();
          await pause(0.2);
          bench.lan.interface.up();
          await pause(0.3);
        }
      },
    }),
);

/** Gives the interface of the machine another name; its address stays. */
async function rename(bench: FaultBench, from: string, to: string): Promise<void> {
  const { machine } = bench.lan;
  machine.ip('link', 'set', from, 'down');
  machine.ip('link', 'set', from, 'name', to);
  machine.ip('link', 'set', to, 'up');
  machine.ip('route', 'replace', '239.0.0.0/8', 'dev', to);
}

fault(
  'interface-renamed',
  {
    expected: `the interface is renamed, as by udev: ${EXPECTED}`,
    boot: { lan: 'good', alone: true },
  },
  (bench) => disturbed(bench, { observed: 'eth0 became wan0', disturb: () => rename(bench, bench.lan.interface.name, 'wan0') }),
);

fault(
  'address-changed',
  {
    expected: `the interface gets another address, as with another lease: ${EXPECTED}`,
    boot: { lan: 'good', alone: true },
  },
  (bench) =>
    disturbed(bench, {
      observed: '10.77.1.1 became 10.77.1.99',
      address: '10.77.1.99',
      disturb: async () => bench.lan.interface.setAddress('10.77.1.99'),
    }),
);

fault(
  'interface-replaced',
  {
    expected: `the interface vanishes, as one on USB does, and 5 s later there is another one, with another name and another address: ${EXPECTED}`,
    boot: { lan: 'good', alone: true },
  },
  (bench) =>
    disturbed(bench, {
      observed: 'removed for 5 s, then another one',
      address: '10.77.1.120',
      disturb: async () => {
        const { interface: first, machine, segment } = bench.lan;
        first.remove();
        await pause(DOWN_SECONDS);
        const second = segment.attach(machine, { number: 120 });
        await rename(bench, second.name, 'usb0');
      },
    }),
);

const LOSS_PERCENT = 30;
const DELAY_MS = 200;
const BAD_SECONDS = 60;

fault(
  'loss-30-delay-200',
  {
    expected:
      '30 % of all frames are lost and the rest arrives 200 ms later, for a minute, at one status per second: every status reaches Cyclone DDS and Fast DDS on another computer, and REST answers there within 20 s',
    boot: { lan: 'lossy', config: { publish_frequency: 1 }, alone: true },
  },
  async (bench) => {
    const subscribers = await Subscribers.start(bench);
    bench.beganMs = Date.now();
    await pause(3);
    const { link } = bench.lan;
    if (!link) throw new Error('the link of the machine cannot be degraded');
    const restore = (): Promise<unknown> => link.set({ lossPercent: 0, reorderPercent: 0, holdMs: 0 });
    bench.teardown(restore);
    const badMs = Date.now();
    // In both directions.
    await link.set({ lossPercent: LOSS_PERCENT, reorderPercent: 100, holdMs: DELAY_MS });
    const tookSeconds: number[] = [];
    let failed = 0;
    while (Date.now() < badMs + BAD_SECONDS * 1000) {
      const seconds = await requestFromNeighbour(bench, bench.lan.interface.address, 20);
      if (seconds === null) failed += 1;
      else tookSeconds.push(seconds);
      await pause(1);
    }
    const { forth, back } = await link.state();
    const goodMs = Date.now();
    await restore();
    const topic = await subscribers.untilReceived(goodMs);
    const stored = await bench.stored(bench.beganMs, goodMs);
    const texts: string[] = [];
    for (const vendor of VENDORS) {
      const arrived = new Map(subscribers.received(vendor).map(({ stampMs, atMs }) => [stampMs, (atMs - stampMs) / 1000]));
      const gone = stored.filter((stamp) => !arrived.has(stamp));
      const late = stored.flatMap((stamp) => arrived.get(stamp) ?? []).toSorted((a, b) => a - b);
      bench.check(`${vendor}: every status arrives`, gone.length === 0 && stored.length > 0, `${gone.length} of ${stored.length} missing`);
      texts.push(
        `${vendor} received all but ${gone.length} of ${stored.length}, the median ${late[late.length >> 1]?.toFixed(1)} s late, at most ${late.at(-1)?.toFixed(1)} s`,
      );
    }
    const lost = forth.lost + back.lost;
    bench.check('frames were lost', lost > 50, { forth, back });
    bench.check('REST answers', tookSeconds.length > 2, { tookSeconds, failed });
    bench.target('3 of 4 requests', tookSeconds.length >= 3 * failed, `${tookSeconds.length} answered, ${failed} not`);
    const sorted = tookSeconds.toSorted((a, b) => a - b);
    const observed = `${lost} frames lost; ${texts.join('; ')}; REST: ${sorted.length} of ${sorted.length + failed} answered, median ${sorted[sorted.length >> 1]?.toFixed(1)} s`;
    return bench.finish({ observed, recoverySeconds: topic });
  },
);
