import { type Alert, changeKey } from '../../src/core/alerts/alert.ts';
import type { Evidence } from '../engine/evidence.ts';
import { CHANNELS, type Channel } from '../record/entries.ts';
import { EvidenceBuilder } from '../record/evidence.ts';
import { readRecord } from '../record/reader.ts';

/** Changes of each episode by alert id, in order of arrival: `WARNING`, `CRITICAL`, `CRITICAL resolved`. */
export type Episodes = Readonly<Record<string, readonly string[]>>;

/** A run of the harness, from its record. */
export interface ObservedRun {
  readonly evidence: Evidence;
  /** Time of the observation, in milliseconds since the epoch. */
  readonly fromMs: number;
  readonly toMs: number;
  /** One per minute; `at` is in seconds since the start of the run. */
  readonly readings: readonly { readonly at: number; readonly openFiles: number | null; readonly databaseBytes: number }[];
  /** Scans of the stored samples. */
  readonly stored: { readonly count: number; readonly seconds: number };
  /** Samples that the store dropped, as counted by the service. */
  readonly samplesLost: number | null;
  readonly episodes: Readonly<Record<Channel, Episodes>>;
}

/** Returns null if the folder has no record of an observation. */
export function readRun(folder: string): ObservedRun | null {
  const builder = new EvidenceBuilder();
  const alerts: Record<Channel, Pick<Alert, 'alert_id' | 'resolved' | 'severity' | 'timestamp'>[]> = { topic: [], events: [] };
  const readings: { at: number; openFiles: number | null; databaseBytes: number }[] = [];
  const stored = { count: 0, seconds: 0 };
  let [fromMs, toMs, begunAt] = [Number.NaN, Number.NaN, 0];
  let lost: { readonly first: number; readonly last: number } | null = null;
  readRecord(folder, (entry) => {
    builder.add(entry);
    switch (entry.type) {
      case 'begin':
        fromMs = entry.wall;
        begunAt = entry.boot;
        break;
      case 'minute':
        toMs = entry.wall;
        if (entry.service === null) break;
        readings.push({ at: entry.boot - begunAt, openFiles: entry.service.open_files, databaseBytes: entry.service.database_bytes });
        lost = { first: lost?.first ?? entry.service.samples_lost, last: entry.service.samples_lost };
        break;
      case 'alert':
        alerts[entry.by].push(entry);
        break;
      case 'coverage':
        if (entry.of !== 'stored') break;
        stored.count += entry.count;
        stored.seconds += (entry.to - entry.from) / 1000;
    }
  });
  if (readings.length === 0) return null;
  const [topic, events] = CHANNELS.map((channel) => episodesOf(alerts[channel])) as [Episodes, Episodes];
  const { first, last } = (lost as { first: number; last: number } | null) ?? { first: 0, last: Number.NaN };
  const samplesLost = Number.isNaN(last) ? null : last - first;
  return { evidence: builder.evidence(), fromMs, toMs, readings, stored, samplesLost, episodes: { topic, events } };
}

/** Duplicates are removed: a subscriber that rejoins receives earlier changes again. */
export function episodesOf(alerts: readonly Pick<Alert, 'alert_id' | 'resolved' | 'severity' | 'timestamp'>[]): Episodes {
  const byId = Map.groupBy(alerts, ({ alert_id }) => alert_id);
  return Object.fromEntries(
    [...byId].map(([id, changes]) => {
      const distinct = new Map(changes.map((change) => [changeKey(change), change]));
      return [id, [...distinct.values()].map(({ resolved, severity }) => (resolved ? `${severity} resolved` : severity))];
    }),
  );
}
