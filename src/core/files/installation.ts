import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ShutdownAction } from '../shutdown/shutdown.ts';
import { PROGRAMS } from './programs.ts';

/** The properties that differ between an installed package and a checkout. */
export interface Installation {
  readonly version: string;
  readonly isPackage: boolean;
  /** Default of `safe_shutdown.action`: a checkout, on a developer's machine, must not power it off by default. */
  readonly standardAction: ShutdownAction;
  /** Base of a relative `storage.path`. */
  readonly folder: string;
  /** Data folder if neither the configuration nor systemd sets one. */
  readonly dataFolder: string;
}

/** Data folder of the package. */
export const PACKAGE_DATA = '/var/lib/edge-health';
/** Configuration folder of the package. */
export const PACKAGE_CONFIG = '/etc/edge-health';

/** Reads the properties from package.json; that of the package has `packaged`. */
export function installation(manifest: URL = PROGRAMS.manifest): Installation {
  const { packaged, version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string; packaged?: boolean };
  if (packaged === true) return { version, isPackage: true, standardAction: 'poweroff', folder: PACKAGE_DATA, dataFolder: PACKAGE_DATA };
  const checkout = dirname(fileURLToPath(manifest));
  return { version, isPackage: false, standardAction: 'dry-run', folder: checkout, dataFolder: join(checkout, 'data') };
}
