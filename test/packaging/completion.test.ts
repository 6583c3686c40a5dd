/** The bash completion, which is mostly written by hand, compared with the program. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { splitRosArguments } from '../../src/cli/ros-arguments.ts';
import { temporaryFolder } from '../../testkit/folder.ts';

const COMPLETION = 'debian/completions/edge-health';

const known = new Map<string, string>();
function help(...args: string[]): string {
  const key = args.join(' ');
  const text = known.get(key) ?? execFileSync('bin/edge-health', args, { encoding: 'utf8' });
  known.set(key, text);
  return text;
}
const commands = [...help('help').matchAll(/^ {2}([a-z-]+) {2,}/gm)].map((match) => match[1] as string);
/** The options in the help of a command, without --help, which every command has. */
const optionsOf = (command: string): string[] =>
  [...new Set(help(command, '--help').match(/--[a-z-]+/g))].filter((option) => option !== '--help');

t.test('bash completes commands and options', async (t) => {
  t.same(complete(t, ''), [...commands, '--help', '--version']);
  t.same(complete(t, 'ro'), ['ros-setup']);
  t.same(complete(t, 'help', ''), commands);
  t.same(complete(t, 'help', 'run', ''), []);
  for (const command of commands.filter((name) => name !== 'help')) {
    const options = optionsOf(command).filter((option) => option !== '--log-level');
    t.same(complete(t, command, '--'), [...options, '--help'].sort(), command);
  }
  t.same(complete(t, 'nonsense', ''), []);
  const jobs = complete(t, 'ops', '');
  t.ok(jobs.length > 0);
  for (const job of jobs) {
    const options = [...help('ops', job, '--help').matchAll(/^ {2}(--[a-z-]+)/gm)].map((match) => match[1] as string);
    t.same(complete(t, 'ops', job, '--'), [...options, '--help'].sort(), `ops ${job}`);
  }

  t.test('bash completes files', async (t) => {
    const folder = temporaryFolder(t);
    for (const name of ['a.yaml', 'b.yml', 'c.txt']) writeFileSync(join(folder, name), '');
    t.same(complete(t, 'run', '--config', `${folder}/`), [`${folder}/a.yaml`, `${folder}/b.yml`]);
    t.same(complete(t, 'check-config', `${folder}/`), [`${folder}/a.yaml`, `${folder}/b.yml`]);
    t.same(complete(t, 'ros-setup', '--data', folder), [folder]);
  });

  t.test('bash completes the names of backups and of remote nodes', async (t) => {
    const data = temporaryFolder(t);
    const config = join(data, 'eh.yaml');
    writeFileSync(config, `storage: {path: ${data}}\n`);
    mkdirSync(join(data, 'backups'));
    writeFileSync(join(data, 'backups/edge-health_20260304T050607Z.tar.zst'), '');
    t.same(complete(t, 'ops', 'restore_backup', '--config', config, ''), ['latest', 'edge-health_20260304T050607Z.tar.zst']);
    t.same(complete(t, 'ops', 'restore_backup', '--config', config, 'lat'), ['latest']);

    // As `edge-health nodes --json` prints it.
    const node = (name: string, local: boolean) => ({ node_name: name, local, status: 'OK', left: null });
    const nodes = JSON.stringify([node('health_monitor', true), node('robot 3', false), node('robot_4', false)], null, 2);
    writeFileSync(join(data, 'edge-health'), `#!/bin/sh\n[ "$*" = "nodes --json" ] && echo '${nodes}'\n`, { mode: 0o755 });
    const program = join(data, 'edge-health');
    t.same(completeOf(t, program, 'nodes', 'forget', ''), ['robot\\ 3', 'robot_4']);
    t.same(completeOf(t, program, 'nodes', 'forget', 'robot_'), ['robot_4']);
  });

  t.test('bash completes the arguments for ROS 2', async (t) => {
    t.same(complete(t, 'run', '--ros-args', '--log-level', 'd'), ['debug']);
    t.same(complete(t, 'run', '--ros-args', '-r', ''), []);
    const levels = complete(t, 'run', '--ros-args', '--log-level', '');
    t.ok(levels.length > 0);
    for (const level of levels) t.doesNotThrow(() => splitRosArguments(['--ros-args', '--log-level', level]), `the program takes ${level}`);
  });
});

/** What bash offers for the last of the words after `edge-health` or the program, sorted if they are options or files. */
function complete(t: Test, ...words: string[]): string[] {
  return completeOf(t, join(process.cwd(), 'bin/edge-health'), ...words);
}

function completeOf(t: Test, program: string, ...words: string[]): string[] {
  const script = `source ${COMPLETION}; COMP_WORDS=("${program}" "$@"); COMP_CWORD=$#; _edge_health 2>&1; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', script, 'bash', ...words], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  const offered = stdout.split('\n').filter((line) => line !== '');
  return words.at(-1)?.match(/^--|\//) ? offered.sort() : offered;
}
