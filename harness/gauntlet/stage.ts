import { Endings } from '../../bench/support/appliance.ts';
import { Appliance, UNIT } from '../../testkit/container/appliance.ts';
import type { Suite } from '../../testkit/container/images.ts';
import { Arena, type ArenaParts } from './arena.ts';
import { ARENA_CONFIG, ARENA_FILES, HERTZ, merged } from './arena-config.ts';
import type { BootWish, Fault } from './fault.ts';
import { makeLan } from './lan.ts';
import type { Figures, Observation } from './observation.ts';
import { StreamReader, TopicReader } from './observer.ts';
import { Tide } from './tide.ts';

export interface StageOptions {
  readonly suite: Suite;
  readonly deb: string;
  readonly progress: (text: string) => void;
}

interface Standing {
  readonly wish: string;
  readonly parts: Omit<ArenaParts, 'progress'>;
}

/** Boots the machines that faults want, one at a time, and keeps one as long as the next fault wants the same and it is well. */
export class Stage {
  readonly #options: StageOptions;
  #standing: Standing | null = null;
  /** Of what is made now, or stands. */
  #endings = new Endings();

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async try(fault: Fault): Promise<Observation> {
    const boot = fault.boot ?? {};
    const said = (text: string): void => this.#options.progress(`  ${fault.name}: ${text}`);
    let arena: Arena | null = null;
    let figures: Figures;
    let error: string | null = null;
    try {
      arena = await this.#arena(boot, said);
      figures = await fault.run(arena);
    } catch (thrown) {
      error = (thrown as Error).message;
      figures = { observed: error.split('\n')[0] ?? '', recoverySeconds: null, samplesLost: null, alertsLost: null };
    }
    const checks = arena?.checks ?? [];
    const held = error === null && checks.length > 0 && checks.every(({ holds }) => holds);
    const journal = held || arena === null ? {} : { journal: await lastWords(arena) };
    await this.#after(arena, boot, said);
    return { ...figures, held, checks, error, ...journal };
  }

  /** Takes away the machine that stands. */
  async clear(): Promise<void> {
    this.#standing = null;
    await this.#endings.end();
  }

  async #arena(boot: BootWish, progress: (text: string) => void): Promise<Arena> {
    const wish = JSON.stringify(boot);
    if (this.#standing?.wish === wish) {
      const arena = new Arena({ ...this.#standing.parts, progress });
      try {
        await arena.begin();
        return arena;
      } catch (error) {
        progress(`the machine is not well any more, another is booted (${(error as Error).message.split('\n')[0]})`);
        await arena.end();
      }
    }
    await this.clear();
    this.#standing = { wish, parts: await this.#boot(boot, this.#endings) };
    const arena = new Arena({ ...this.#standing.parts, progress });
    await arena.begin();
    return arena;
  }

  async #boot(boot: BootWish, endings: Endings): Promise<Omit<ArenaParts, 'progress'>> {
    const lan = boot.lan ? await makeLan(boot.lan) : null;
    if (lan) endings.teardown(() => lan.network.dispose());
    const config = merged(ARENA_CONFIG, boot.config ?? {});
    const appliance = await Appliance.boot(endings, {
      suite: boot.suite ?? this.#options.suite,
      installed: this.#options.deb,
      config,
      files: { ...ARENA_FILES, ...boot.files },
      ...(boot.disk ? { disk: boot.disk } : {}),
      ...(lan ? { host: lan.machine } : {}),
    });
    const { node_name: node } = await appliance.measures();
    const stream = new StreamReader(await appliance.machine.url(), node);
    endings.teardown(() => stream.close());
    const topic = boot.topic === false ? null : await TopicReader.start(lan?.neighbour ?? appliance.machine.host, node);
    endings.teardown(() => topic?.close());
    const tide = boot.tide === false ? null : new Tide(appliance.machine);
    endings.teardown(() => tide?.stop());
    return { appliance, stream, topic, tide, lan, hertz: Number(config['publish_frequency'] ?? HERTZ) };
  }

  async #after(arena: Arena | null, boot: BootWish, progress: (text: string) => void): Promise<void> {
    try {
      await arena?.end();
      if (boot.alone || this.#standing === null) await this.clear();
    } catch (error) {
      progress(`what the fault laid on could not be lifted: ${(error as Error).message}`);
      await this.clear();
    }
  }
}

const LINES = 60;

/** Alerts are left out: there are many, and they are the tide's. */
async function lastWords({ machine }: Arena): Promise<string> {
  const journal = await machine.journal(UNIT).catch((error: Error) => error.message);
  const lines = journal.split('\n').filter((line) => line !== '' && !/^alert (\w+) metric=/.test(line));
  return lines.slice(-LINES).join('\n');
}
