import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './step.ts';

export interface InterfacesOptions {
  /** The source folder of the package. */
  readonly interfaces: string;
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly logFile: string;
}

/** Compiles the package edge_health_interfaces into `<folder>/interfaces` with plain cmake. */
export async function buildInterfaces({ interfaces, folder, environment, logFile }: InterfacesOptions): Promise<void> {
  const build = join(folder, 'build-interfaces');
  const cmake = (what: string, ...args: string[]): Promise<void> =>
    runCommand(what, { program: 'cmake', arguments: args, folder, environment, logFile });
  const prefix = `-DCMAKE_INSTALL_PREFIX=${join(folder, 'interfaces')}`;
  await cmake(
    'configuring edge_health_interfaces',
    '-S',
    interfaces,
    '-B',
    build,
    prefix,
    '-DCMAKE_BUILD_TYPE=Release',
    '-DBUILD_TESTING=OFF',
  );
  await cmake('compiling edge_health_interfaces', '--build', build, '--parallel', String(availableParallelism()));
  await cmake('installing edge_health_interfaces', '--install', build);
  rmSync(build, { recursive: true });
}
