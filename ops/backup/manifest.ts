import { hostname } from 'node:os';
import * as v from 'valibot';
import { isoUtc } from '../../src/core/time/time.ts';
import type { JobContext } from '../lib/job.ts';

export const MANIFEST = 'manifest.json';
export const DATABASE = 'database/edge-health.db';
/** A backup has at most this many files, so that reading one takes little memory. */
export const MAX_FILES = 10_000;
/** Folders of an archive. */
const FOLDERS = ['database', 'metrics', 'alerts', 'logs', 'ops', 'config', 'journal'];
/** Plain names only: no parent folder, no hidden file, no character that a shell or terminal would interpret. */
const PLAIN = /^[A-Za-z0-9_@][A-Za-z0-9_@.+,=~-]*$/;

/** The longest name that fits into the header of a tar member without an extension, with its terminating zero. */
const LONGEST_NAME = 99;

/** Whether a file of this name may be in a backup: in one of its folders, or in shutdown.d of the configuration. */
export function isMemberName(name: string): boolean {
  if (name.length > LONGEST_NAME) return false;
  const parts = name.split('/');
  const depthIsRight = parts.length === 2 || (parts.length === 3 && parts[0] === 'config' && parts[1] === 'shutdown.d');
  return depthIsRight && FOLDERS.includes(parts[0] as string) && parts.every((part) => PLAIN.test(part));
}

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const instant = v.pipe(v.string(), v.isoTimestamp());

const manifestSchema = v.object({
  format: v.literal('edge-health backup'),
  format_version: v.literal(1),
  product_version: v.string(),
  host: v.string(),
  made: instant,
  /** Null if the archive has no database; database_missing gives the reason. */
  database: v.nullable(
    v.object({
      /** Whether the running service sent it or it was read from the file. */
      source: v.picklist(['service', 'file']),
      schema_version: count,
      nodes: v.array(v.object({ node: v.string(), samples: count, first: v.nullable(instant), last: v.nullable(instant) })),
      samples: count,
      episodes: count,
      open_episodes: count,
      alert_changes: count,
    }),
  ),
  database_missing: v.nullable(v.string()),
  left_out: v.array(v.object({ what: v.string(), reason: v.string() })),
  /** In archive order, without the manifest itself, which is the last member. */
  files: v.array(
    v.object({
      path: v.pipe(v.string(), v.check(isMemberName, 'a name that backups do not have')),
      size: count,
      mode: v.pipe(v.string(), v.regex(/^0[0-7]{3}$/)),
      modified: instant,
      sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
    }),
  ),
});

export type Manifest = v.InferOutput<typeof manifestSchema>;
export type ManifestFile = Manifest['files'][number];
export type DatabaseCounts = NonNullable<Manifest['database']>;
export type LeftOut = Manifest['left_out'][number];

/** What a copy of the database holds, or the reason for its absence. */
export type DatabaseFacts = Pick<Manifest, 'database' | 'database_missing'>;

/** The manifest without its files, whose hashes are known only after they are archived. */
export function manifestOf({ version }: JobContext, madeMs: number, facts: DatabaseFacts, leftOut: LeftOut[]): Omit<Manifest, 'files'> {
  return {
    format: 'edge-health backup',
    format_version: 1,
    product_version: version,
    host: hostname(),
    made: isoUtc(madeMs),
    ...facts,
    left_out: leftOut,
  };
}

/** Throws an error that names the problem. */
export function parseManifest(text: string): Manifest {
  const result = v.safeParse(manifestSchema, JSON.parse(text));
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new RangeError(`${v.getDotPath(issue) ?? 'the document'}: ${issue.message}`);
}
