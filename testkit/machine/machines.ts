import { execFileSync } from 'node:child_process';
import { closeSync, constants, cpSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Teardown, temporaryFolder } from '../folder.ts';

/** fixture.json of a recorded machine; testkit/fixtures/README.md explains the keys. */
export interface FixtureDescription {
  readonly machine: string;
  readonly unreadable: readonly { readonly path: string; readonly error: string; readonly why: string }[];
  readonly expect: {
    readonly sensor: string | null;
    readonly source: string | null;
    readonly temperatureCelsius: number | null;
    readonly memoryPercent: number;
    readonly cpuPercent: number;
    readonly cpus: number;
    readonly undervoltage: boolean | null;
    readonly packageThrottleCount: number | null;
    readonly throttledCpus: readonly number[];
  };
  readonly notes: string;
}

/** The tree of a machine in a temporary folder; a test may change it. */
export interface Fixture extends FixtureDescription {
  readonly name: string;
  readonly root: string;
  readonly procRoot: string;
  readonly sysRoot: string;
}

const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url));

/** The names of all machines in testkit/fixtures; throws if there are none, so that no test passes without a machine. */
export function fixtureNames(): string[] {
  const names = readdirSync(FIXTURES)
    .filter((name) => existsSync(join(FIXTURES, name, 'fixture.json')))
    .sort();
  if (names.length === 0) throw new Error(`no machine in ${FIXTURES}`);
  return names;
}

/** Writes files, given as path and content, into a folder; for machines of which only a few files are relevant. */
export function writeTree(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

/**
 * Replaces a file by one that cannot be read. For EAGAIN, it is a pipe with a writer but without data. Every other error can only come from
 * a driver and is simulated by a folder: opening it succeeds and reading it fails (EISDIR).
 */
export function makeUnreadable(test: Teardown, path: string, error: string): void {
  rmSync(path, { recursive: true, force: true });
  if (error !== 'EAGAIN') {
    mkdirSync(path, { recursive: true });
    return;
  }
  execFileSync('mkfifo', [path]);
  // O_RDWR: opening a pipe only for writing blocks until there is a reader.
  const writer = openSync(path, constants.O_RDWR);
  test.teardown(() => closeSync(writer));
}

/** Copies a machine's tree into a temporary folder and makes its unreadable files unreadable. */
export function materialiseFixture(test: Teardown, name: string): Fixture {
  const root = temporaryFolder(test);
  cpSync(join(FIXTURES, name), root, { recursive: true });
  const description = JSON.parse(readFileSync(join(root, 'fixture.json'), 'utf8')) as FixtureDescription;
  for (const { path, error } of description.unreadable) makeUnreadable(test, join(root, path), error);
  return { ...description, name, root, procRoot: join(root, 'proc'), sysRoot: join(root, 'sys') };
}
