import { finish } from '../../../testkit/container/finish.ts';
import { Peer, VENDORS, type Vendor } from '../../../testkit/dds/peers.ts';
import { type Counted, outageOf } from '../../../testkit/dds/streams.ts';
import { type Arena, pause } from '../arena.ts';
import type { Lan } from '../lan.ts';

const HEARD_WITHIN_SECONDS = 60;
const REST_SECONDS = 2;

/** What a disturbance cost those who listen elsewhere. */
export interface Outages {
  /** For each vendor: how many statuses never came, and after how many seconds they came again. */
  readonly text: string;
  readonly backSeconds: number;
  /** Over all vendors: statuses that never came. */
  readonly gone: number;
}

export function lanOf({ lan }: Arena): Lan {
  if (!lan) throw new Error('the machine has no network');
  return lan;
}

/** Subscribers to /health_status on another computer, of every DDS implementation there is here. */
export class Listeners {
  readonly #arena: Arena;
  readonly #peers: ReadonlyMap<Vendor, Peer>;

  private constructor(arena: Arena, peers: ReadonlyMap<Vendor, Peer>) {
    this.#arena = arena;
    this.#peers = peers;
  }

  /** Resolves when all have heard some. */
  static async start(arena: Arena): Promise<Listeners> {
    const peers = new Map<Vendor, Peer>();
    for (const vendor of VENDORS) {
      const peer = await Peer.start(lanOf(arena).neighbour, vendor, 'subscribe', ['--topic', '/health_status']);
      arena.afterwards(() => peer.kill('SIGKILL'));
      peers.set(vendor, peer);
    }
    for (const peer of peers.values()) await peer.waitForCount('sample', 5, () => true, HEARD_WITHIN_SECONDS);
    return new Listeners(arena, peers);
  }

  /** Stamps that have come, with when. */
  heard(vendor: Vendor): { readonly stampMs: number; readonly atMs: number }[] {
    return (this.#peers.get(vendor)?.all('sample') ?? []).map(({ data, wall_ms }) => ({
      stampMs: Date.parse(String(data['timestamp'])),
      atMs: wall_ms,
    }));
  }

  /** Waits until all have heard what was published after a moment; how many seconds after it that was. */
  async hearAfter(sinceMs: number, seconds: number): Promise<number> {
    const hears = (vendor: Vendor): boolean => this.heard(vendor).some(({ stampMs, atMs }) => stampMs > sinceMs && atMs > sinceMs);
    await this.#arena.machine.until(
      () => VENDORS.every(hears),
      seconds,
      () => `${VENDORS.filter((vendor) => !hears(vendor)).join(' and ')} hear nothing`,
    );
    const firsts = VENDORS.map((vendor) => this.heard(vendor).find(({ stampMs, atMs }) => stampMs > sinceMs && atMs > sinceMs)?.atMs ?? 0);
    return Math.max(0, ...firsts.map((atMs) => (atMs - sinceMs) / 1000));
  }

  /** Judges what came of what was published up to now, with a disturbance since `disturbedMs`: nothing of the last ten may be lost. */
  async judge(disturbedMs: number): Promise<Outages> {
    const arena = this.#arena;
    const toMs = Date.now();
    await pause(3);
    const stored = await arena.stored(arena.beganMs, toMs);
    const numbers = new Map(stored.map((stamp, index) => [stamp, index + 1]));
    const published = stored.map((stamp, index): Counted => ({ number: index + 1, ms: stamp }));
    const texts: string[] = [];
    let [back, lost] = [0, 0];
    for (const vendor of VENDORS) {
      const arrived = this.heard(vendor).flatMap(({ stampMs, atMs }): Counted[] => {
        const number = numbers.get(stampMs);
        return number === undefined ? [] : [{ number, ms: atMs }];
      });
      const { backSeconds, gone, isWithinPromise } = outageOf(published, arrived, disturbedMs, stored.length);
      arena.must(
        `${vendor}: nothing of the last ten is lost`,
        arrived.length > 0 && isWithinPromise,
        `${gone.length} gone, ${gone[0]} to ${gone.at(-1)} of ${stored.length}`,
      );
      texts.push(`${vendor} missed ${gone.length}`);
      back = Math.max(back, backSeconds);
      lost += gone.length;
    }
    return { text: texts.join(', '), backSeconds: back, gone: lost };
  }
}

/** Asks for /health from the neighbour; whether there was an answer, and after how many seconds. */
export async function askFromElsewhere(arena: Arena, address: string, seconds = REST_SECONDS): Promise<number | null> {
  const [program, args] = lanOf(arena).neighbour.command('curl', [
    '-s',
    '-f',
    '-m',
    String(seconds),
    '-o',
    '/dev/null',
    '-w',
    '%{time_total}',
    `http://${address}:5000/health`,
  ]);
  const { code, stdout } = await finish(program, args, undefined, seconds + 5);
  return code === 0 ? Number(stdout) : null;
}

/** Waits until REST answers elsewhere; seconds after `sinceMs`. */
export async function restAfter(arena: Arena, address: string, sinceMs: number, seconds: number): Promise<number> {
  const answers = async (): Promise<boolean> => (await askFromElsewhere(arena, address)) !== null;
  await arena.machine.until(answers, seconds, () => `nobody answers at ${address}`);
  return (Date.now() - sinceMs) / 1000;
}
