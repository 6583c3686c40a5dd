import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { describeKeys } from '../../src/config/describe.ts';
import { ROOT } from '../../testkit/service/service.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

const openapi = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8')) as { components: { schemas: { Status: Schema } } };
const PAGES = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT, exclude: ['docs/develop/reports/*/**'] })].map((page) => ({
  page,
  text: readFileSync(join(ROOT, page), 'utf8'),
}));

t.test('every configuration key and every member of /status that the documentation names exists', async (t) => {
  const keys = describeKeys().map(({ key }) => key);
  const status = openapi.components.schemas.Status;
  const isMember = (name: string): boolean =>
    name.split('.').reduce<Schema | undefined>((schema, member) => schema?.properties?.[member], status) !== undefined;
  const sections = new Set(keys.map((key) => key.split('.')[0] as string));
  const known = (name: string): boolean => keys.some((key) => key === name || key.startsWith(`${name}.`) || name.startsWith(`${key}.`));
  let count = 0;
  for (const { page, text } of PAGES) {
    for (const [, name = '', section = ''] of text.matchAll(/`(([a-z_]+)(?:\.[a-z_]+)+)(?::[^`]*)?`/g)) {
      if (!sections.has(section) || /\.(?:ts|db|md|json|ya?ml|sock|service|log|csv|lock|pid)$/.test(name)) continue;
      count += 1;
      if (!known(name) && !isMember(name)) t.fail(`${page}: there is no key or member of /status ${name}`);
    }
  }
  t.ok(count > 100, `${count} names`);
});

t.test('every command that the documentation names exists, with the options that it names', async (t) => {
  const named = new Map<string, { readonly page: string; readonly options: Set<string> }>();
  for (const { page, text } of PAGES) {
    const code = [...text.matchAll(/^```\w*\n([\s\S]*?)^```|`([^`\n]+)`/gm)].map(([, block, inline]) => block ?? inline ?? '').join('\n');
    // Up to where a shell would begin the next command.
    for (const [, line = ''] of code.matchAll(/^(?:\$ )?(?:sudo )?edge-health ((?:ops |harness |nodes )?[a-z][\w-]*[^|;&#\n]*)/gm)) {
      const [, command = '', rest = ''] = /^((?:(?:ops|harness|nodes) )?[a-z][\w-]*)(.*)$/.exec(line) ?? [];
      const entry = named.get(command) ?? { page, options: new Set<string>() };
      for (const [option] of rest.replace(/--ros-args.*/, '').matchAll(/(?<=\s|\[)--[a-z][a-z-]*/g)) entry.options.add(option);
      named.set(command, entry);
    }
  }
  t.ok(named.size > 15, `${named.size} commands`);
  for (const [command, { options, page }] of named) {
    let help: string;
    try {
      help = execFileSync(join(ROOT, 'bin/edge-health'), [...command.split(' '), '--help'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    } catch {
      t.fail(`${page}: there is no command edge-health ${command}`);
      continue;
    }
    for (const option of options) if (!help.includes(option)) t.fail(`${page}: edge-health ${command} has no option ${option}`);
  }
});

/** Folders of the package, and those of the checkout from which they are installed. */
const INSTALLED: Readonly<Record<string, string>> = {
  '/usr/share/doc/edge-health': 'docs',
  '/usr/share/edge-health/fleet': 'ops/fleet',
  '/usr/share/edge-health/notify': 'ops/notify',
  '/usr/lib/edge-health/bin': 'bin',
  '/usr/lib/edge-health/ros2': 'ros2',
};

t.test('every installed file that the manual pages, the documentation, the units and the programs name exists', async (t) => {
  const texts = globSync(
    [
      'README.md',
      'docs/**/*.{md,5,8}',
      '{bin,polkit,systemd}/*',
      'config/*.yaml',
      'debian/edge-health.*',
      '{src,ops,harness}/**/*.{ts,yml,sh,j2}',
    ],
    { cwd: ROOT, exclude: ['**/*.test.ts'] },
  );
  let count = 0;
  for (const file of texts) {
    const text = readFileSync(join(ROOT, file), 'utf8').replaceAll('\\-', '-');
    for (const [folder, source] of Object.entries(INSTALLED)) {
      for (const [, path = ''] of text.matchAll(new RegExp(`${folder}/([\\w./-]*\\w)`, 'g'))) {
        count += 1;
        if (!existsSync(join(ROOT, source, path))) t.fail(`${file}: ${folder}/${path} is not installed`);
      }
    }
  }
  t.ok(count > 80, `${count} names`);
});
