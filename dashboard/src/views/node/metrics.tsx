import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { openAlertsAbout } from '../../alert-book.ts';
import { extremes } from '../../chart-math.ts';
import { decimal, duration, timeOfDay } from '../../format.ts';
import { STATUS_ICONS } from '../../icons.tsx';
import type { PageState } from '../../page-state.ts';
import type { Columns } from '../../series.ts';
import { type MetricState, metricState, thresholdsOf } from '../../text.ts';
import { METRICS, type Metric, type Reading } from '../../types.ts';
import { gapMs, planWindow, WINDOWS, type WindowName, type WindowPlan } from '../../windows.ts';
import { words } from '../../words/words.ts';
import { Chart } from './chart.tsx';

interface MetricsProps {
  readonly state: PageState;
  /** Whether the data is the last known, not current. */
  readonly isOutdated: boolean;
  readonly nowMs: number;
  readonly onWindow: (window: WindowName) => void;
}

/** Current values and charts of the four metrics. */
export function Metrics({ state, isOutdated, nowMs, onWindow }: MetricsProps): VNode {
  const columns = state.series.columns(gapMs(state.series.bucketMs, state.hertz));
  return (
    <section class="metrics" aria-labelledby="metrics-title">
      <div class="bar">
        <div class="name">
          <h2 id="metrics-title">{words.node.measurements}</h2>
          <p class="muted">{averagesText(planWindow(state.window, state.hertz))}</p>
        </div>
        <WindowSwitch window={state.window} onWindow={onWindow} />
      </div>
      <div class="cards">
        {METRICS.map((metric) => (
          <Card key={metric} metric={metric} state={state} columns={columns} isOutdated={isOutdated} nowMs={nowMs} />
        ))}
      </div>
    </section>
  );
}

/** What each point is; empty: a sample. */
function averagesText({ bucketMs, step }: WindowPlan): string {
  return step === null ? '' : words.node.averages(duration(bucketMs / 1000));
}

interface CardProps {
  readonly metric: Metric;
  readonly state: PageState;
  readonly columns: Columns;
  readonly isOutdated: boolean;
  readonly nowMs: number;
}

function Card({ metric, state, columns, isOutdated, nowMs }: CardProps): VNode {
  const { book, health, history, local, node, series, status, window } = state;
  const { name, unit } = words.metrics[metric];
  const [hovered, setHovered] = useState<number | null>(null);
  const { seconds } = columns;
  const values = columns.metrics[METRICS.indexOf(metric)] ?? [];
  const windowSeconds = series.windowMs / 1000;
  // Rounded to whole seconds so that the charts advance once a second.
  const toSeconds = Math.ceil(nowMs / 1000);
  const span = extremes(seconds, values, toSeconds - windowSeconds);
  const range = span ? formatRange(decimal(span.min), decimal(span.max), unit) : words.node.noData;
  const at = hovered === null ? undefined : seconds[hovered];
  const value = hovered === null ? null : (values[hovered] ?? null);
  const reading = health?.[metric] ?? null;
  const thresholds = thresholdsOf(book, node, metric);
  const level = health === null ? 'normal' : metricState(reading, openAlertsAbout(book, node, metric));
  const collectors = node === local ? status?.collectors : undefined;
  const problem = collectors?.find((collector) => collector.metric === metric)?.problem;
  const period = words.node.windows[window].long;
  const past = history === 'failed' ? words.node.noHistory : range;
  const note = reading === null && health !== null ? (problem ?? past) : past;
  return (
    <article class={`card metric ${level}`} aria-labelledby={`${metric}-title`}>
      <div class="head">
        <h3 id={`${metric}-title`}>{name}</h3>
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
            {timeOfDay(at * 1000, nowMs)} <b>{value === null ? words.node.noData : `${decimal(value)} ${unit}`}</b>
          </p>
        )}
      </div>
      <Chart
        label={words.node.chart(name, period, range)}
        seconds={seconds}
        values={values}
        toSeconds={toSeconds}
        windowSeconds={windowSeconds}
        thresholds={thresholds}
        isPercent={metric !== 'temperature'}
        onHover={setHovered}
      />
    </article>
  );
}

function formatRange(min: string, max: string, unit: string): string {
  return min === max ? words.node.steadyAt(min, unit) : words.node.range(min, max, unit);
}

interface ValueProps {
  readonly reading: Reading;
  readonly unit: string;
  /** Whether a health status has been received. */
  readonly isKnown: boolean;
}

function Value({ reading, unit, isKnown }: ValueProps): VNode {
  if (reading === null) {
    return <p class="value none">{isKnown ? words.node.unavailable : '…'}</p>;
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
      {isOutdated && <span class="known">{words.shell.lastKnown}</span>}
      {Icon && state !== 'normal' && (
        <span class={`state ${state}`}>
          <Icon />
          {words.node.states[state]}
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

function WindowSwitch({ window, onWindow }: { window: WindowName; onWindow: (window: WindowName) => void }): VNode {
  return (
    <fieldset class="switch">
      <legend class="hidden">{words.node.shownTime}</legend>
      {WINDOWS.map((name) => (
        <label key={name}>
          <input type="radio" name="window" checked={name === window} onChange={() => onWindow(name)} />
          <span>{words.node.windows[name].short}</span>
        </label>
      ))}
    </fieldset>
  );
}
