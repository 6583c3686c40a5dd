import { readFileSync } from 'node:fs';
import type { ShutdownAction } from '../core/shutdown.ts';
import { PROGRAMS } from './programs.ts';

/** What differs between an installed package and a checkout. */
export interface Installation {
  readonly version: string;
  /** What the last step of a safe shutdown does where the configuration leaves it open: nobody looks on where a package runs. */
  readonly standardAction: ShutdownAction;
  /** Where data is kept where neither the configuration nor systemd says it. */
  readonly dataFolder: string;
}

/** As the product's manifest says: the package's has `packaged`. */
export function installation(manifest: URL = PROGRAMS.manifest): Installation {
  const { packaged, version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string; packaged?: boolean };
  return packaged === true
    ? { version, standardAction: 'poweroff', dataFolder: '/var/lib/edge-health' }
    : { version, standardAction: 'dry-run', dataFolder: 'data' };
}
