import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Alert } from '../../../src/core/alert.ts';
import { STATE } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';

/** What a change of an alert is known by. */
export function changeKey({
  alert_id,
  severity,
  resolved,
  timestamp,
}: Pick<Alert, 'alert_id' | 'severity' | 'resolved' | 'timestamp'>): string {
  return `${alert_id} ${severity}${resolved ? ' resolved' : ''} ${timestamp}`;
}

/** What the disk of a machine holds that lost its power. */
export interface Disk {
  /** What SQLite finds wrong; empty: nothing. */
  readonly damage: readonly string[];
  /** Every change of every alert, by `changeKey`. */
  readonly changes: ReadonlySet<string>;
  /** Alerts whose episode does not agree with their last change. */
  readonly contradictions: readonly string[];
  /** Rows of samples, by what identifies them. */
  readonly rows: ReadonlySet<string>;
  /** The newest sample, ms since the epoch; null: there is none. */
  readonly newestMs: number | null;
  /** Databases set aside. */
  readonly setAside: readonly string[];
  /** Everything in the folder but the database and its log. */
  readonly others: readonly string[];
}

const NAME = 'edge-health.db';

interface ChangeRow {
  readonly alert_id: string;
  readonly changed_ms: number;
  readonly severity: Alert['severity'];
  readonly resolved: number;
}

/** Looks at a copy of the disk of a machine that is off. */
export async function readDisk(machine: Container): Promise<Disk> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-cut-'));
  try {
    const copy = join(folder, 'state');
    mkdirSync(copy);
    await machine.copyOut(STATE, copy);
    return inspect(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function inspect(folder: string): Disk {
  const names = readdirSync(folder);
  const setAside = names.filter((name) => name.includes('.set-aside'));
  const others = names.filter((name) => ![NAME, `${NAME}-wal`, 'lost+found'].includes(name));
  const nothing = { changes: new Set<string>(), contradictions: [], rows: new Set<string>(), newestMs: null, setAside, others };
  if (!names.includes(NAME)) return { ...nothing, damage: [] };
  const db = new DatabaseSync(join(folder, NAME));
  try {
    const found = db.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[];
    const damage = found.map(({ integrity_check }) => integrity_check).filter((text) => text !== 'ok');
    const tables = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('raw', 'alert_change', 'episode')").get() as {
      n: number;
    };
    if (tables.n < 3) return { ...nothing, damage };
    const changes = db
      .prepare('SELECT alert_id, changed_ms, severity, resolved FROM alert_change ORDER BY segment, ordinal')
      .all() as unknown as ChangeRow[];
    const last = new Map(changes.map((row) => [row.alert_id, row]));
    const episodes = db.prepare('SELECT alert_id, changed_ms, severity, resolved FROM episode').all() as unknown as ChangeRow[];
    const differ = (episode: ChangeRow): boolean => {
      const change = last.get(episode.alert_id);
      return change === undefined || change.severity !== episode.severity || change.resolved !== episode.resolved;
    };
    const rows = db.prepare('SELECT node_id, from_ms, segment, to_ms FROM raw').all() as {
      node_id: number;
      from_ms: number;
      segment: number;
      to_ms: number;
    }[];
    const newest = Math.max(...rows.map(({ to_ms }) => to_ms));
    return {
      damage,
      changes: new Set(
        changes.map((row) => changeKey({ ...row, resolved: row.resolved !== 0, timestamp: new Date(row.changed_ms).toISOString() })),
      ),
      contradictions: episodes.filter(differ).map(({ alert_id }) => alert_id),
      rows: new Set(rows.map(({ node_id, from_ms, segment }) => `${node_id} ${from_ms} ${segment}`)),
      newestMs: Number.isFinite(newest) ? newest : null,
      setAside,
      others,
    };
  } catch (error) {
    return { ...nothing, damage: [(error as Error).message] };
  } finally {
    db.close();
  }
}
