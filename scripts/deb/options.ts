import { parseArgs } from 'node:util';
import { ARCHITECTURES, type Architecture } from './architectures.ts';
import { BuildFailed } from './step.ts';

export const HELP = `Builds the Debian package.

Usage: npm run deb [-- OPTIONS]

  --arch ARCH     amd64 or arm64; otherwise this machine's. The other one is cross-built
  --version V     version of the package; otherwise that of debian/changelog, which is package.json's
  --out DIR       where the package goes; otherwise dist/
  --if-needed     do nothing if the package is there and newer than everything it is made from

Makes OUT/edge-health_VERSION_ARCH.deb and, for this machine's architecture, OUT/edge-health.deb. No root is needed.
Downloads are kept in build/cache.
`;

export interface Options {
  readonly help: boolean;
  readonly architecture: Architecture;
  readonly version: string | null;
  readonly out: string;
  readonly ifNeeded: boolean;
}

/** Format of a native Debian version: no epoch, no revision. */
const VERSION = /^\d[A-Za-z0-9.+~]*$/;

/** Parses the options. Throws BuildFailed for invalid arguments. */
export function readOptions(argv: readonly string[], own: Architecture | null): Options {
  let values: { help?: boolean; arch?: string; version?: string; out?: string; 'if-needed'?: boolean };
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: {
        help: { type: 'boolean', short: 'h' },
        arch: { type: 'string' },
        version: { type: 'string' },
        out: { type: 'string' },
        'if-needed': { type: 'boolean' },
      },
    }));
  } catch (error) {
    throw new BuildFailed(`${(error as Error).message.split('. ')[0]}; see: npm run deb -- --help`);
  }
  const known = ARCHITECTURES.map(({ debian }) => debian).join(' or ');
  const architecture = values.arch === undefined ? own : ARCHITECTURES.find(({ debian }) => debian === values.arch);
  if (architecture === undefined) throw new BuildFailed(`--arch is ${values.arch}, allowed is ${known}`);
  if (architecture === null) throw new BuildFailed(`the package is built for ${known}, and this machine is neither: give --arch`);
  if (values.version !== undefined && !VERSION.test(values.version)) {
    throw new BuildFailed(`--version is ${values.version}; allowed are a digit, then letters, digits and . + ~`);
  }
  return {
    help: values.help ?? false,
    architecture,
    version: values.version ?? null,
    out: values.out ?? 'dist',
    ifNeeded: values['if-needed'] ?? false,
  };
}
