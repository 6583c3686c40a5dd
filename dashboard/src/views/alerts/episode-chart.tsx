import type { VNode } from 'preact';
import { extremes } from '../../chart-math.ts';
import { dateTime, decimal } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import type { Api } from '../../model/api.ts';
import type { Connection } from '../../model/connection.ts';
import type { Episode } from '../../model/episodes.ts';
import { fetchBand, fetchHistory } from '../../model/requests.ts';
import { type Columns, Series } from '../../model/series.ts';
import { gapMs, planRange, type Range, stepMs } from '../../model/windows.ts';
import { Chart, type Threshold } from '../../page/chart.tsx';
import { Failure, useRequest } from '../../page/request.tsx';
import { hrefOf } from '../../page/route.ts';
import { METRICS, type Metric } from '../../types.ts';

/** Time shown before and after the alert. */
const AROUND_MS = 600_000;
const MINUTE_MS = 60_000;

type FixedRange = Range & { readonly kind: 'fixed' };

interface EpisodeChartProps {
  readonly api: Api;
  readonly connection: Connection;
  readonly episode: Episode;
  readonly metric: Metric;
  /** Publish rate of the node. */
  readonly hertz: number;
  readonly nowMs: number;
}

/** The values of the metric around the alert, with the thresholds that it crossed. */
export function EpisodeChart({ api, connection, episode, hertz, metric, nowMs }: EpisodeChartProps): VNode {
  const { changes, fromMs, id, node, severity, toMs } = episode;
  // While the alert is open, the chart is loaded again with each change, and whenever another minute has passed.
  const endMs = Math.min(nowMs, (toMs ?? nowMs) + AROUND_MS);
  const minute = Math.ceil(endMs / MINUTE_MS);
  const range: FixedRange = { kind: 'fixed', fromMs: fromMs - AROUND_MS, toMs: minute * MINUTE_MS };
  const loaded = useRequest((signal) => load(api, node, range, hertz, signal), connection, [id, minute, changes.length]);
  const { problem, value: columns } = loaded;

  const { name, unit } = messages.metrics[metric];
  const m = METRICS.indexOf(metric);
  const highest = columns && extremes(columns.seconds, columns.highs[m] ?? [], range.fromMs / 1000);
  const lowest = columns && extremes(columns.seconds, columns.lows[m] ?? [], range.fromMs / 1000);
  const values = highest && lowest ? messages.node.range(decimal(lowest.min), decimal(highest.max), unit) : messages.node.noData;
  const period = messages.node.between(dateTime(range.fromMs, nowMs), dateTime(range.toMs, nowMs));
  const isoOf = (ms: number): string => new Date(ms).toISOString();
  const nodeAt = (fromMs: number, toMs: number): string =>
    hrefOf({ view: 'nodes', item: node, query: { from: isoOf(fromMs), to: isoOf(toMs) } });
  return (
    <section class="card around" aria-labelledby="around-title" aria-busy={columns === null && problem === null}>
      <div class="bar">
        <h3 id="around-title">{name}</h3>
        {problem === null && <p class="muted">{columns === null ? messages.shell.loading : values}</p>}
      </div>
      <Failure of={loaded} />
      <Chart
        label={messages.node.chart(name, period, values)}
        seconds={columns?.seconds ?? []}
        values={columns?.metrics[m] ?? []}
        lows={columns?.lows[m] ?? []}
        highs={columns?.highs[m] ?? []}
        version={columns?.version ?? 0}
        toSeconds={range.toMs / 1000}
        windowSeconds={(range.toMs - range.fromMs) / 1000}
        thresholds={thresholdsOf(episode)}
        spans={[{ id, metric, severity, fromMs, toMs }]}
        moments={[]}
        isPercent={metric !== 'temperature'}
        onHover={() => undefined}
        onSelect={(from, to) => {
          location.hash = nodeAt(from * 1000, to * 1000);
        }}
      />
      <p>
        <a href={nodeAt(range.fromMs, range.toMs)}>{messages.episodes.showAround}</a>
      </p>
    </section>
  );
}

/** An ERROR's threshold is a time, not a value of the metric. */
function thresholdsOf({ changes }: Episode): Threshold[] {
  const all = changes.flatMap(({ severity, threshold }): Threshold[] => (severity === 'ERROR' ? [] : [{ severity, value: threshold }]));
  return all.filter(({ severity }, i) => all.findLastIndex((other) => other.severity === severity) === i);
}

async function load(api: Api, node: string, range: FixedRange, hertz: number, signal: AbortSignal): Promise<Columns> {
  const plan = planRange(range, hertz);
  const request = { node, range, plan, hertz, nowMs: () => range.toMs };
  const series = new Series(plan.windowMs, plan.bucketMs);
  series.fill(await fetchHistory(api, request, signal));
  if (plan.bandStep !== null) series.fillBand(await fetchBand(api, request, plan.bandStep, signal), stepMs(plan.bandStep));
  return series.columns(gapMs(plan.bucketMs, hertz));
}
