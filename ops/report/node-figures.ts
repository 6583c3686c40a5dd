import { METRICS, type Metric, toHundredths } from '../../src/core/metrics.ts';
import type { NodeRow } from './collected-rows.ts';

export interface Spread {
  readonly rows: number;
  readonly min: number;
  readonly mean: number;
  readonly max: number;
}

export interface NodeFigures {
  readonly node_name: string;
  readonly local: boolean;
  readonly rows: number;
  readonly silent_rows: number;
  /** Null: never available. */
  readonly metrics: Readonly<Record<Metric, Spread | null>>;
}

interface Sum {
  rows: number;
  sum: number;
  min: number;
  max: number;
}

/** Averages of what the nodes measured, over rows: each stands for one minute's last sample. */
export class NodeSums {
  readonly #nodes = new Map<string, { local: boolean; rows: number; silent: number; sums: Record<Metric, Sum> }>();

  add({ answered, local, node, readings, silent }: NodeRow): void {
    if (!answered) return;
    let found = this.#nodes.get(node);
    if (!found) {
      const none = (): Sum => ({ rows: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY });
      const sums = Object.fromEntries(METRICS.map((metric) => [metric, none()])) as Record<Metric, Sum>;
      found = { local, rows: 0, silent: 0, sums };
      this.#nodes.set(node, found);
    }
    found.rows += 1;
    found.silent += silent ? 1 : 0;
    for (const metric of METRICS) {
      const value = readings[metric];
      if (value === null) continue;
      const sum = found.sums[metric];
      sum.rows += 1;
      sum.sum += value;
      sum.min = Math.min(sum.min, value);
      sum.max = Math.max(sum.max, value);
    }
  }

  /** This machine's node first, the others by name. */
  figures(): NodeFigures[] {
    const spread = ({ max, min, rows, sum }: Sum): Spread | null =>
      rows === 0 ? null : { rows, min, mean: toHundredths(sum / rows), max };
    return [...this.#nodes]
      .map(([node_name, { local, rows, silent, sums }]) => ({
        node_name,
        local,
        rows,
        silent_rows: silent,
        metrics: Object.fromEntries(METRICS.map((metric) => [metric, spread(sums[metric])])) as NodeFigures['metrics'],
      }))
      .sort((a, b) => Number(b.local) - Number(a.local) || (a.node_name < b.node_name ? -1 : 1));
  }
}

/** Longer lists are cut. */
const MOST_NODES = 50;

/** What the nodes measured, a line each for people. */
export function nodeNotes(figures: readonly NodeFigures[]): string[] {
  const notes = figures.slice(0, MOST_NODES).map(({ metrics, node_name, rows, silent_rows }) => {
    const values = METRICS.flatMap((metric) => {
      const of = metrics[metric];
      return of === null ? [] : [`${metric} ${of.mean} (${of.min} to ${of.max})`];
    });
    const silent = silent_rows > 0 ? `, silent in ${silent_rows}` : '';
    return `${node_name}, mean (least to greatest) over ${rows} rows${silent}: ${values.join(', ') || 'nothing was available'}.`;
  });
  return figures.length > MOST_NODES ? [...notes, `${figures.length - MOST_NODES} more nodes are in metrics/.`] : notes;
}
