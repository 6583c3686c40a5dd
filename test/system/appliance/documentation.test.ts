/** Runs the commands of the documentation's console blocks that need root or systemd; test/docs/console.test.ts runs the others. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Appliance } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';
import { ROOT } from '../../../testkit/service/service.ts';

t.setTimeout(300_000);

interface Command {
  readonly page: string;
  readonly line: string;
  readonly output: string;
}

const COMMANDS: readonly Command[] = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT })].flatMap((page) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```console\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => ({ page, line: part.split('\n')[0] as string, output: part.split('\n').slice(1).join('\n').trim() })),
  ),
);

t.test('the commands of console blocks that need root or systemd work as shown', { skip: containersUnavailable() }, async (t) => {
  const { machine } = await Appliance.boot(t, { suite: 'bookworm' });
  await machine.untilJson<{ status?: string }>('/health', ({ status }) => status !== undefined);
  const seen = new Set<string>();
  for (const { line, output, page } of COMMANDS) {
    const command = line.replace(/^sudo /, '');
    const where = `${page}: ${line}`;
    if (command.startsWith('apt install')) {
      t.match((await machine.run(['dpkg', '--status', 'edge-health'])).stdout, 'Status: install ok installed', where);
    } else if (/^(?:systemctl|edge-health (?:check-config|nodes|ops list))/.test(command)) {
      const { code, stdout, stderr } = await machine.run(['sh', '-c', command]);
      if (command.includes('nodes forget')) {
        t.match({ code, stderr }, { code: 1, stderr: /^edge-health nodes: no remote node is named "robot1\/health_monitor"/ }, where);
      } else {
        // The list ends with 1 if a job has failed: health_check may, on a loaded machine.
        t.ok(code === 0 || (code === 1 && command === 'edge-health ops list'), `${where}: ${stderr}`);
        // The names at the beginning of lines, such as `Active:` and `Temperature`.
        for (const [, label = ''] of output.matchAll(/^ *([A-Z][a-z]+):? /gm)) t.match(stdout, new RegExp(`^ *${label}\\b`, 'm'), where);
      }
    } else continue;
    seen.add(command.split(' ').slice(0, 2).join(' '));
  }
  for (const command of ['apt install', 'systemctl status', 'systemctl reload', 'edge-health check-config', 'edge-health nodes'])
    t.ok(seen.has(command), `${command} is among them`);
});
