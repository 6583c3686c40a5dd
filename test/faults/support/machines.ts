/**
 * The machines on which faults run: containers with the installed package, kept as long as the next fault needs the same and all is well.
 */
import type { Test } from 'tap';
import { Appliance, UNIT } from '../../../testkit/container/appliance.ts';
import type { Suite } from '../../../testkit/container/images.ts';
import { Teardowns } from '../../../testkit/teardown.ts';
import { diskAlertLoad, LOAD_CONFIG, LOAD_FILES } from '../../../testkit/weeks/alert-load.ts';
import { FaultBench, type Machine } from './bench.ts';
import { makeLan } from './lan.ts';
import { EventStreamClient, TopicSubscriber } from './observers.ts';
import type { FaultResult, Figures } from './report.ts';

/** Ten statuses per second: losses are counted to a tenth of a second. */
export const HERTZ = 10;
const JOURNAL_LINES = 60;

/** The machine that a fault needs. */
export interface BootOptions {
  /** Keys of the configuration in addition to those of the alert load; lists and values replace, mappings are merged. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** A disk of its own for a folder, which can be filled and frozen. */
  readonly disk?: { readonly path: string; readonly megabytes: number };
  /** Files that exist before it boots: text by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** An interface in a network with a neighbour, instead of loopback alone; `lossy`: over a link that can be degraded. */
  readonly lan?: 'good' | 'lossy';
  /** The required Debian release; otherwise that of the fault run. */
  readonly suite?: Suite;
  /** Whether a DDS subscriber receives the topics; yes by default. */
  readonly topic?: boolean;
  /** Whether alerts are raised and resolved all the time (testkit/weeks/alert-load.ts); yes by default. */
  readonly alertLoad?: boolean;
  /** The machine is not shared, neither with the fault before nor with the one after. */
  readonly alone?: boolean;
}

type Mapping = Readonly<Record<string, unknown>>;

const isMapping = (value: unknown): value is Mapping => typeof value === 'object' && value !== null && !Array.isArray(value);

/** `over` over `base`: mappings are merged, everything else is replaced. */
function merged(base: Mapping, over: Mapping): Mapping {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const old = result[key];
    result[key] = isMapping(old) && isMapping(value) ? merged(old, value) : value;
  }
  return result;
}

export class Machines {
  readonly suite: Suite;
  #current: { readonly options: string; readonly machine: Machine } | null = null;
  readonly #teardowns = new Teardowns();

  constructor(suite: Suite) {
    this.suite = suite;
  }

  /** Runs a fault on a machine that is proven healthy, and returns its result. Does not throw. */
  async run(t: Test, boot: BootOptions, run: (bench: FaultBench) => Promise<Figures>): Promise<Omit<FaultResult, 'seconds'>> {
    let bench: FaultBench | null = null;
    let figures: Figures;
    let error: string | null = null;
    try {
      bench = await this.#benchFor(t, boot);
      figures = await run(bench);
    } catch (thrown) {
      error = (thrown as Error).message;
      figures = { observed: error.split('\n')[0] ?? '', recoverySeconds: null, samplesLost: null, alertsLost: null };
    }
    const [checks, targets] = [bench?.checks ?? [], bench?.targets ?? []];
    const passed = error === null && checks.length > 0 && checks.every(({ holds }) => holds);
    const journal = passed || bench === null ? {} : { journal: await endOfJournal(bench) };
    await this.#release(t, bench, boot);
    return { ...figures, passed, checks, targets, error, ...journal };
  }

  /** Removes the machine. */
  async stop(): Promise<void> {
    this.#current = null;
    await this.#teardowns.run();
  }

  async #benchFor(t: Test, boot: BootOptions): Promise<FaultBench> {
    const options = JSON.stringify(boot);
    if (this.#current?.options === options) {
      const bench = new FaultBench(t, this.#current.machine);
      try {
        await bench.begin();
        return bench;
      } catch (error) {
        t.comment(`the machine is not healthy any more, another one is booted (${(error as Error).message.split('\n')[0]})`);
        await bench.end();
      }
    }
    await this.stop();
    const machine = await this.#boot(boot);
    this.#current = { options, machine };
    const bench = new FaultBench(t, machine);
    await bench.begin();
    return bench;
  }

  async #boot(boot: BootOptions): Promise<Machine> {
    const teardowns = this.#teardowns;
    const lan = boot.lan ? await makeLan(boot.lan) : null;
    if (lan) teardowns.teardown(() => lan.network.dispose());
    const config = merged({ publish_frequency: HERTZ, ...LOAD_CONFIG }, boot.config ?? {});
    const appliance = await Appliance.boot(teardowns, {
      suite: boot.suite ?? this.suite,
      config,
      files: { ...LOAD_FILES, ...boot.files },
      ...(boot.disk ? { disk: boot.disk } : {}),
      ...(lan ? { host: lan.machine } : {}),
    });
    const { node_name: node } = await appliance.measures(60);
    const stream = new EventStreamClient(await appliance.machine.url(), node);
    teardowns.teardown(() => stream.close());
    const topic = boot.topic === false ? null : await TopicSubscriber.start(lan?.neighbour ?? appliance.machine.host, node);
    teardowns.teardown(() => topic?.close());
    const load = boot.alertLoad === false ? null : diskAlertLoad(appliance.machine);
    teardowns.teardown(() => load?.stop());
    return { appliance, stream, topic, load, lan, hertz: Number(config['publish_frequency']) };
  }

  async #release(t: Test, bench: FaultBench | null, boot: BootOptions): Promise<void> {
    try {
      await bench?.end();
      if (boot.alone || this.#current === null) await this.stop();
    } catch (error) {
      t.comment(`the fault could not be removed: ${(error as Error).message}`);
      await this.stop();
    }
  }
}

/** Without the lines of alerts: the alert load makes many. */
async function endOfJournal({ machine }: FaultBench): Promise<string> {
  const journal = await machine.journal(UNIT).catch((error: Error) => error.message);
  const lines = journal.split('\n').filter((line) => line !== '' && !/^alert (\w+) metric=/.test(line));
  return lines.slice(-JOURNAL_LINES).join('\n');
}
