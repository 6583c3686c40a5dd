import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export interface SoakOptions {
  /** Length of the run in samples. */
  readonly samples: number;
  readonly hertz: number;
  /** Transport of the service and of the harness. */
  readonly transport: 'embedded' | 'rclnodejs' | 'off';
  readonly folder: string;
}

/** A week at 1 Hz. */
const WEEK_SAMPLES = 604_800;
const TRANSPORTS = ['embedded', 'rclnodejs', 'off'] as const;
/** Memory needs about 180 s to have medians after its warm-up; in a shorter run it is INCOMPLETE. */
const MIN_SECONDS = 60;

export const USAGE = `Usage: npm run soak -- [--samples N] [--hertz N] [--transport embedded|rclnodejs|off] [--out DIR]

A week's samples in an hour: starts the built service of this checkout at a high sampling rate, and observes it with the harness
(edge-health harness run) while REST requests are made, alerts are raised and resolved, and the database is at its size limit.
As root it runs in a network namespace of its own; otherwise on loopback, in a ROS 2 domain of its own.

  --samples N        length of the run in samples (default ${WEEK_SAMPLES}, a week at 1 Hz)
  --hertz N          samples a second (default 200: 50.4 minutes; at most 1000)
  --transport NAME   ROS 2 transport (default embedded). rclnodejs needs a sourced ROS 2 and npm run ros:setup
  --out DIR          folder of soak.md, soak.json, service.log and run/, the run of the harness (default build/soak)

Ctrl-C ends it early, with a report.
Exit codes: 0 PASS, 1 FAIL, 2 INCOMPLETE, 64 wrong usage, 69 it cannot run here.
`;

/** Returns null for --help. Throws an Error that lists the allowed values. */
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
  const number = (name: string, text: string, min: number, max: number): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= min && value <= max)) throw new Error(`--${name} is "${text}"; allowed: ${min} to ${max}`);
    return value;
  };
  const hertz = number('hertz', values.hertz, 1, 1000);
  const samples = Math.round(number('samples', values.samples, Math.ceil(MIN_SECONDS * hertz), 1e9));
  const transport = TRANSPORTS.find((name) => name === values.transport);
  if (!transport) throw new Error(`--transport is "${values.transport}"; allowed: ${TRANSPORTS.join(', ')}`);
  return { samples, hertz, transport, folder: resolve(values.out) };
}
