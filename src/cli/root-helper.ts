import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { ROOT_HELPER, type RootAnswer, type RootRequest, systemctl } from '../client/root-helper.ts';
import { type ReplacedConfig, replaceConfig } from '../config/replace.ts';
import { installation, PACKAGE_CONFIG } from '../core/files/installation.ts';
import { optionsForShortLived, PROGRAMS } from '../core/files/programs.ts';
import { becomeOwnerOf, type Owner, ownerOf, withoutOwn } from '../core/platform/privileges.ts';

/** Commands that open no file of the service's user and therefore keep root's rights. */
const KEEP_ROOT = ['check-config', 'ros-setup', 'version', 'help'];
/** Environment of systemctl. It contains nothing that the user of the service could have set. */
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', SYSTEMD_PAGER: '', SYSTEMD_COLORS: '0' };
const UNIT = 'edge-health(?:-ops|-harness)?(?:@[A-Za-z0-9:_.\\\\-]+)?\\.service';
/** The systemctl commands that are run for another user. */
const ALLOWED = new RegExp(`^(?:start|stop|(?:enable|disable) --now)(?: ${UNIT}){1,2}$`);
/** A request contains the files of the configuration in base64. */
const MAX_CHARACTERS = 24e6;
const DESCRIPTOR = 3;

const requestSchema: v.GenericSchema<unknown, RootRequest> = v.variant('do', [
  v.strictObject({ do: v.literal('systemctl'), arguments: v.array(v.string()) }),
  v.strictObject({
    do: v.literal('replace configuration'),
    files: v.array(v.strictObject({ name: v.string(), base64: v.string(), executable: v.boolean() })),
    stamp: v.pipe(v.string(), v.regex(/^\d{8}T\d{6}Z(?:-\d{1,3})?$/)),
  }),
  v.strictObject({ do: v.literal('put configuration back') }),
]);

/**
 * Drops root's rights before any file in the data folder of an installed package is opened, because a compromised service could have placed
 * links and programs there. A command that needs root's rights for one step runs in another process, for which this one executes that step.
 * Resolves with null to continue in this process, otherwise with the exit code of the other.
 */
export async function leaveRoot(name: string, argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number | null> {
  const { dataFolder, isPackage } = installation();
  if (!isPackage || KEEP_ROOT.includes(name)) return null;
  const owner = ownerOf(dataFolder);
  if (owner !== null && needsRoot(name, argv)) {
    const program = fileURLToPath(name === 'ops' ? PROGRAMS.ops : PROGRAMS.harness);
    const helper = new RootHelper({
      owner,
      folder: PACKAGE_CONFIG,
      systemctl: (given) => systemctl(given, ENVIRONMENT),
      show: (text) => process.stderr.write(text),
    });
    return helper.run(program, argv, environment);
  }
  becomeOwnerOf(dataFolder, environment);
  return null;
}

/** Whether a command starts or stops units. */
function needsRoot(name: string, argv: readonly string[]): boolean {
  if (name === 'harness') return argv[0] === 'start' || argv[0] === 'stop';
  return name === 'ops' && argv[0] === 'restore_backup' && argv.includes('--yes');
}

export interface RootHelperOptions {
  /** The user that the program runs as. */
  readonly owner: Owner;
  /** The configuration folder. */
  readonly folder: string;
  readonly systemctl: (argv: readonly string[]) => Promise<RootAnswer>;
  /** Prints on the terminal. */
  readonly show: (text: string) => void;
}

/** Executes the steps that need root's rights for a process of another user. It opens no file that this user may write. */
export class RootHelper {
  readonly #options: RootHelperOptions;
  /** Units that were stopped and not started again. */
  readonly #stopped = new Set<string>();
  #replaced: ReplacedConfig | null = null;

  constructor(options: RootHelperOptions) {
    this.#options = options;
  }

  /** Resolves with the exit code of the program. If it was killed, restores the configuration and starts the units that it stopped. */
  async run(program: string, argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
    const child = spawn(process.execPath, [...optionsForShortLived(), program, ...argv], {
      ...this.#options.owner,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
      env: { ...withoutOwn(environment), [ROOT_HELPER]: String(DESCRIPTOR) },
    });
    this.#serve(child.stdio[DESCRIPTOR] as unknown as Duplex);
    // Signals are passed on, because the program may have to restore something before it ends.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal));
    const { code, signal } = await ended(child);
    if (signal !== null) {
      this.#options.show(`edge-health: ended by ${signal}\n`);
      await this.#answer({ do: 'put configuration back' });
    }
    if (this.#stopped.size > 0) await this.#answer({ do: 'systemctl', arguments: ['start', ...[...this.#stopped].reverse()] });
    return signal === null ? (code ?? 1) : 128 + constants.signals[signal];
  }

  #serve(connection: Duplex): void {
    let text = '';
    connection.setEncoding('utf8');
    connection.on('error', () => undefined); // The result depends on the exit of the program, not on the state of its connection.
    connection.on('data', (part: string) => {
      text += part;
      if (text.length > MAX_CHARACTERS) connection.destroy();
      if (!text.endsWith('\n')) return;
      const line = text;
      text = '';
      void this.answerLine(line).then((answer) => connection.write(`${JSON.stringify(answer)}\n`));
    });
  }

  /** Executes one request, a line of JSON. Invalid and forbidden requests are refused. */
  async answerLine(line: string): Promise<RootAnswer> {
    try {
      return await this.#answer(v.parse(requestSchema, JSON.parse(line)));
    } catch (error) {
      return { code: 1, output: (error as Error).message };
    }
  }

  async #answer(request: RootRequest): Promise<RootAnswer> {
    if (request.do === 'systemctl') return this.#systemctl(request.arguments);
    if (request.do === 'put configuration back') {
      this.#replaced?.putBack();
      this.#replaced = null;
      return { code: 0, output: '' };
    }
    if (this.#replaced !== null) throw new Error('the configuration was already replaced');
    const files = request.files.map(({ base64, executable, name }) => ({ name, executable, content: Buffer.from(base64, 'base64') }));
    // The diff is shown by this process, because the process that sends the files could show a different one.
    const { folder, owner, show } = this.#options;
    this.#replaced = replaceConfig(folder, files, { stamp: request.stamp, group: owner.gid, show });
    return { code: 0, output: this.#replaced.previous ?? '' };
  }

  async #systemctl(argv: readonly string[]): Promise<RootAnswer> {
    if (!ALLOWED.test(argv.join(' '))) throw new Error(`systemctl ${argv.join(' ')} is not allowed for another user`);
    const [verb, ...units] = argv.filter((word) => !word.startsWith('--'));
    for (const unit of units) verb === 'stop' ? this.#stopped.add(unit) : this.#stopped.delete(unit);
    return this.#options.systemctl(argv);
  }
}

function ended(child: ChildProcess): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
}
