import { chmodSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Architecture } from './architectures.ts';
import type { TargetLibraries } from './libraries.ts';
import { logged, output } from './step.ts';

const PACKAGE = 'node_modules/sd-notify';
const ADDON = 'build/Release/notify.node';

/** Compiles the addon of sd-notify for the target and puts it into `<root>/node_modules/sd-notify`. */
export function stageAddon(target: Architecture, node: string, libraries: TargetLibraries, work: string, root: string): void {
  const folder = resolve(work, 'sd-notify');
  rmSync(folder, { recursive: true, force: true });
  cpSync(PACKAGE, folder, { recursive: true, filter: (path) => path !== join(PACKAGE, 'build') });
  // Relative to the folder in which make runs, because make splits a path at spaces, and the path of the checkout may have some.
  const flag = (option: string, path: string): string => `${option}${relative(join(folder, 'build'), path)}`;
  const flags = ['-O2', '-fstack-protector-strong', '-D_FORTIFY_SOURCE=2', ...libraries.includes.map((path) => flag('-I', path))];
  logged(
    join(work, 'sd-notify.log'),
    'sh',
    ['scripts/build-sd-notify.sh', folder, resolve(node), `--arch=${target.node}`, '--release', '--build-from-source'],
    {
      environment: {
        CC: `${target.gnu}-gcc`,
        CXX: `${target.gnu}-g++`,
        AR: `${target.gnu}-ar`,
        CFLAGS: flags.join(' '),
        CXXFLAGS: flags.join(' '),
        LDFLAGS: ['-Wl,-z,relro,-z,now', ...libraries.libraries.map((path) => flag('-L', path))].join(' '),
      },
    },
  );
  const addon = join(root, PACKAGE, ADDON);
  mkdirSync(dirname(addon), { recursive: true });
  output(`${target.gnu}-strip`, [
    '--strip-unneeded',
    '--remove-section=.comment',
    '--remove-section=.note',
    '-o',
    addon,
    join(folder, ADDON),
  ]);
  chmodSync(addon, 0o644);
}
