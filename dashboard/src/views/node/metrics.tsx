import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { extremes } from '../../chart-math.ts';
import { dateTime, decimal, duration, timeOfDay } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { openAlertsAbout } from '../../model/alert-book.ts';
import type { Columns } from '../../model/series.ts';
import { gapMs, planRange, type Range, type RangePlan } from '../../model/windows.ts';
import { Chart, type Column, type Moment, type Span } from '../../page/chart.tsx';
import { STATUS_ICONS } from '../../page/icons.tsx';
import type { PageState } from '../../page/page-state.ts';
import { type MetricState, metricState } from '../../text.ts';
import { METRICS, type Metric, type Reading } from '../../types.ts';
import { selected } from './range.ts';
import { RangeBar } from './range-bar.tsx';
import { thresholdsOf } from './thresholds.ts';

interface MetricsProps {
  readonly state: PageState;
  /** Whether the data is the last known, not current. */
  readonly isOutdated: boolean;
  /** Wall clock of the shown node. */
  readonly nowMs: number;
  /** Alerts, restarts and clock changes in the shown time. */
  readonly spans: readonly Span[];
  readonly moments: readonly Moment[];
  readonly onRange: (range: Range) => void;
}

/** Current values and charts of the four metrics. */
export function Metrics({ state, isOutdated, moments, nowMs, onRange, spans }: MetricsProps): VNode {
  const { hertz, range, series } = state;
  const [hovered, setHovered] = useState<number | null>(null);
  const columns = series.columns(gapMs(series.bucketMs, hertz));
  const shared = { state, columns, isOutdated, nowMs, onRange, hovered, setHovered, spans, moments };
  return (
    <section class="metrics" aria-labelledby="metrics-title">
      <div class="bar">
        <div class="name">
          <h2 id="metrics-title">{messages.node.measurements}</h2>
          <p class="muted">{averagesText(planRange(range, hertz))}</p>
        </div>
        <RangeBar range={range} nowMs={nowMs} onRange={onRange} />
      </div>
      <div class="cards">
        {METRICS.map((metric) => (
          <Card key={metric} metric={metric} {...shared} />
        ))}
      </div>
    </section>
  );
}

/** Describes what each point stands for; empty: one sample. */
function averagesText({ bucketMs, step }: RangePlan): string {
  return step === null ? '' : messages.node.averages(duration(bucketMs / 1000));
}

interface CardProps {
  readonly metric: Metric;
  readonly state: PageState;
  readonly columns: Columns;
  readonly isOutdated: boolean;
  readonly nowMs: number;
  readonly onRange: (range: Range) => void;
  /** The point under the pointer, in all cards; null: none. */
  readonly hovered: number | null;
  readonly setHovered: (index: number | null) => void;
  /** Alerts about all metrics. */
  readonly spans: readonly Span[];
  readonly moments: readonly Moment[];
}

function Card({ metric, state, columns, hovered, isOutdated, moments, nowMs, onRange, setHovered, spans }: CardProps): VNode {
  const { book, health, history, local, node, range, series, status } = state;
  const { meaning, name, unit } = messages.metrics[metric];
  const m = METRICS.indexOf(metric);
  const { seconds } = columns;
  const values: Column = columns.metrics[m] ?? [];
  const lows: Column = columns.lows[m] ?? [];
  const highs: Column = columns.highs[m] ?? [];
  const windowSeconds = series.windowMs / 1000;
  // Charts up to now advance by whole points, and at most once a second.
  const bucketSeconds = series.bucketMs / 1000;
  const toSeconds = range.kind === 'fixed' ? range.toMs / 1000 : Math.ceil(nowMs / 1000 / bucketSeconds) * bucketSeconds;
  const low = extremes(seconds, lows, toSeconds - windowSeconds);
  const high = extremes(seconds, highs, toSeconds - windowSeconds);
  const span = low && high && { min: low.min, max: high.max };
  const rangeText = span ? formatRange(decimal(span.min), decimal(span.max), unit) : messages.node.noData;
  const at = hovered === null ? undefined : seconds[hovered];
  const value = hovered === null ? null : (values[hovered] ?? null);
  const reading = health?.[metric] ?? null;
  const thresholds = thresholdsOf(state, metric);
  const level = health === null ? 'normal' : metricState(reading, openAlertsAbout(book, node, metric));
  const collectors = node === local ? status?.collectors : undefined;
  const problem = collectors?.find((collector) => collector.metric === metric)?.problem;
  const period =
    range.kind === 'live'
      ? messages.node.windows[range.window].long
      : messages.node.between(dateTime(range.fromMs, nowMs), dateTime(range.toMs, nowMs));
  const past = history === 'failed' ? messages.node.noHistory : history === 'loading' ? messages.shell.loading : rangeText;
  const note = reading === null && health !== null ? (problem ?? past) : past;
  return (
    <article class={`card metric ${level}`} aria-labelledby={`${metric}-title`}>
      <div class="head">
        <h3 id={`${metric}-title`} title={meaning}>
          {name}
        </h3>
        <Chip state={level} isOutdated={isOutdated && health !== null} />
      </div>
      <Value reading={reading} unit={unit} isKnown={health !== null} />
      <div class="aside">
        {reading !== null && <Bar reading={reading} state={level} />}
        {at === undefined ? (
          <p class={reading === null ? 'range why' : 'range'} title={note}>
            {note}
          </p>
        ) : (
          <p class="range hovered">
            {timeOfDay(at * 1000, nowMs)} <b>{value === null ? messages.node.noData : `${decimal(value)} ${unit}`}</b>
          </p>
        )}
      </div>
      <Chart
        label={messages.node.chart(name, period, rangeText)}
        seconds={seconds}
        values={values}
        lows={lows}
        highs={highs}
        version={columns.version}
        toSeconds={toSeconds}
        windowSeconds={windowSeconds}
        thresholds={thresholds}
        spans={spans.filter((one) => one.metric === metric || (metric === 'disk_percent' && one.metric.startsWith('disk:')))}
        moments={moments}
        isPercent={metric !== 'temperature'}
        onHover={setHovered}
        onSelect={(from, to) => onRange(selected(from * 1000, to * 1000, nowMs))}
      />
      {metric === 'temperature' && node === local && <SensorNote state={state} />}
    </article>
  );
}

/** Which sensor is read, and whether the processor was too hot. */
function SensorNote({ state: { status } }: { state: PageState }): VNode | null {
  const sensor = status?.temperature_sensor;
  const throttled = status?.power.throttle_events ?? 0;
  if (!sensor?.sensor && throttled === 0) return null;
  return (
    <p class="footnote">
      {sensor?.sensor && messages.node.sensor(sensor.sensor, sensor.reason)}
      {throttled > 0 && ` ${messages.node.throttled(throttled)}`}
    </p>
  );
}

function formatRange(min: string, max: string, unit: string): string {
  return min === max ? messages.node.steadyAt(min, unit) : messages.node.range(min, max, unit);
}

interface ValueProps {
  readonly reading: Reading;
  readonly unit: string;
  /** Whether a health status has been received. */
  readonly isKnown: boolean;
}

function Value({ reading, unit, isKnown }: ValueProps): VNode {
  if (reading === null) {
    return <p class="value none">{isKnown ? messages.node.unavailable : '…'}</p>;
  }
  return (
    <p class="value">
      <span class="number">{decimal(reading)}</span> <span class="unit">{unit}</span>
    </p>
  );
}

const CHIP_ICONS = { warning: STATUS_ICONS.WARNING, critical: STATUS_ICONS.CRITICAL, unavailable: STATUS_ICONS.UNKNOWN };

function Chip({ state, isOutdated }: { state: MetricState; isOutdated: boolean }): VNode {
  const Icon = state === 'normal' ? null : CHIP_ICONS[state];
  return (
    <p class="chip">
      {isOutdated && <span class="known">{messages.shell.lastKnown}</span>}
      {Icon && state !== 'normal' && (
        <span class={`state ${state}`}>
          <Icon />
          {messages.node.states[state]}
        </span>
      )}
    </p>
  );
}

/** Shows percent, or degrees from 0 to 100. Hidden from screen readers, which read the number. */
function Bar({ reading, state }: { reading: number; state: MetricState }): VNode {
  return (
    <div class={`meter ${state}`} aria-hidden="true">
      <div style={{ width: `${Math.min(100, Math.max(0, reading))}%` }} />
    </div>
  );
}
