import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ShutdownAction } from '../core/shutdown.ts';
import { PROGRAMS } from './programs.ts';

/** What differs between an installed package and a checkout. */
export interface Installation {
  readonly version: string;
  readonly isPackage: boolean;
  /** What the last step of a safe shutdown does where the configuration leaves it open: nobody looks on where a package runs. */
  readonly standardAction: ShutdownAction;
  /** A relative `storage.path` is below it. */
  readonly folder: string;
  /** Where data is kept where neither the configuration nor systemd says it. */
  readonly dataFolder: string;
}

/** Where the package keeps its data. */
export const PACKAGE_DATA = '/var/lib/edge-health';
/** Where the package has its configuration. */
export const PACKAGE_CONFIG = '/etc/edge-health';

/** As the product's manifest says: the package's has `packaged`. */
export function installation(manifest: URL = PROGRAMS.manifest): Installation {
  const { packaged, version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string; packaged?: boolean };
  if (packaged === true) return { version, isPackage: true, standardAction: 'poweroff', folder: PACKAGE_DATA, dataFolder: PACKAGE_DATA };
  const checkout = dirname(fileURLToPath(manifest));
  return { version, isPackage: false, standardAction: 'dry-run', folder: checkout, dataFolder: join(checkout, 'data') };
}
