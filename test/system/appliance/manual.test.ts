import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { changelogDay } from '../../../scripts/deb/manual.ts';
import { describeKeys } from '../../../src/config/describe.ts';

// The manual pages, which are mostly written by hand, are compared with the program.

const PAGES = ['docs/man/edge-health.8', 'docs/man/edge_health_config.5'];

const help = (...args: string[]): string =>
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'src/main.ts', ...args], { encoding: 'utf8' });
/** How bold type is encoded for a teleprinter: the letter, a backspace, and the letter again. */
const OVERSTRUCK = /.[\b]/gu;
/** As man(1) shows a page, in one line. */
const shown = (page: string): string =>
  execFileSync('man', ['--no-hyphenation', '--no-justification', '-l', '-Tutf8', page], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '2000', GROFF_NO_SGR: '1' },
  })
    .replace(OVERSTRUCK, '')
    .replace(/\s+/g, ' ');
const commands = [...help('help').matchAll(/^ {2}([a-z-]+) {2,}/gm)].map((match) => match[1] as string);
/** The options in the help of a command, without --help, which every command has. */
const optionsOf = (command: string): string[] =>
  [...new Set(help(command, '--help').match(/--[a-z-]+/g))].filter((option) => option !== '--help');

t.test('the manual pages have no errors', { skip: spawnSync('man', ['--version']).error ? 'needs man-db' : false }, async (t) => {
  for (const page of PAGES) {
    const formatted = spawnSync('man', ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', page], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });
    t.equal(formatted.status, 0);
    t.equal(formatted.stderr, '', page);
    const linted = spawnSync('mandoc', ['-T', 'lint', page], { encoding: 'utf8' });
    t.equal(linted.stdout, '', page);
    t.equal(linted.status, 0);
  }
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  t.match(
    readFileSync(PAGES[0] as string, 'utf8'),
    `.TH EDGE\\-HEALTH 8 ${changelogDay()} "edge\\-health ${version}"`.replace('EDGE\\-HEALTH', 'EDGE-HEALTH'),
  );

  t.test('edge-health(8) has every command, option and exit code', async (t) => {
    const text = shown(PAGES[0] as string);
    t.ok(commands.length >= 7);
    for (const command of commands) {
      const [synopsis = ''] = new RegExp(`edge-health ${command}( \\[[^\\]]+\\])*`).exec(text) ?? [];
      t.not(synopsis, '', command);
      for (const option of optionsOf(command).filter((one) => one !== '--log-level')) t.match(synopsis, option, `${command} ${option}`);
      const codes = help(command, '--help').match(/Exit codes: (.*)/s)?.[1] ?? '';
      if (command !== 'status')
        for (const code of codes.match(/\b\d+\b/g) ?? []) t.match(text, ` ${code} `, `${command} may exit with ${code}`);
    }
  });

  t.test('edge_health_config(5) has every key with its default', async (t) => {
    const text = shown(PAGES[1] as string);
    const keys = describeKeys();
    t.ok(keys.length > 30);
    for (const { key, description, allowed } of keys) {
      t.match(text, ` ${key} ${description.replaceAll('`', '')} Allowed: ${allowed}`, key);
    }
  });
});
