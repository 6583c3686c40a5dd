import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export interface SoakOptions {
  /** How many slots of the sampling grid the run lasts. */
  readonly samples: number;
  readonly hertz: number;
  /** Of the service. */
  readonly transport: 'embedded' | 'rclnodejs' | 'off';
  readonly folder: string;
  readonly maxMegabytes: number;
}

/** As many as a week has at 1 Hz. */
const WEEK_SAMPLES = 604_800;
const TRANSPORTS = ['embedded', 'rclnodejs', 'off'] as const;
/** The least that the service can be told. */
const MAX_MEGABYTES = 8;
/** Memory needs about 180 s, to have medians after its warm-up; a shorter run leaves it INCOMPLETE. */
const LEAST_SECONDS = 60;

export const USAGE = `Usage: npm run soak -- [--samples N] [--hertz N] [--transport embedded|rclnodejs|off] [--out DIR]

A week's samples in an hour: runs the built service of this checkout at a high rate while REST is polled, an event stream is open,
alerts are raised and resolved, and the database is at its cap, and writes what was lost, what memory and handles did, and the verdict.
As root it runs in a network of its own; else on loopback, in a ROS 2 domain of its own.

  --samples N        slots of the sampling grid (default ${WEEK_SAMPLES}, a week at 1 Hz)
  --hertz N          slots a second (default 200: 50.4 minutes; at most 1000)
  --transport NAME   the service's way onto the ROS 2 graph (default embedded). rclnodejs needs a sourced ROS 2 and npm run ros:setup
  --out DIR          where soak.md, soak.json and service.log go (default build/soak)

Ctrl-C ends it early and writes what there is.
Exit status: 0 PASS, 1 FAIL, 2 INCOMPLETE, 64 wrong usage, 69 it cannot run here.
`;

/** Null: the usage was asked for. Throws an Error that says what is allowed. */
export function readOptions(argv: readonly string[]): SoakOptions | null {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      samples: { type: 'string', default: String(WEEK_SAMPLES) },
      hertz: { type: 'string', default: '200' },
      transport: { type: 'string', default: 'embedded' },
      out: { type: 'string', default: 'build/soak' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const number = (name: string, text: string, least: number, most: number): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= least && value <= most)) throw new Error(`--${name} is "${text}"; allowed: ${least} to ${most}`);
    return value;
  };
  const hertz = number('hertz', values.hertz, 1, 1000);
  const samples = Math.round(number('samples', values.samples, Math.ceil(LEAST_SECONDS * hertz), 1e9));
  const transport = TRANSPORTS.find((name) => name === values.transport);
  if (!transport) throw new Error(`--transport is "${values.transport}"; allowed: ${TRANSPORTS.join(', ')}`);
  return { samples, hertz, transport, folder: resolve(values.out), maxMegabytes: MAX_MEGABYTES };
}
