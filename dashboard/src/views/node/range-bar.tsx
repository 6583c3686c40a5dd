import type { VNode } from 'preact';
import { dateTime } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import { edgesOf, type Range, WINDOWS } from '../../model/windows.ts';
import { shifted, zoomed } from './range.ts';

interface RangeBarProps {
  readonly range: Range;
  readonly nowMs: number;
  readonly onRange: (range: Range) => void;
}

/** Selects the time range of the charts: a fixed length up to now, or any range. It works with keyboard and pointer. */
export function RangeBar({ nowMs, onRange, range }: RangeBarProps): VNode {
  const text = messages.node;
  const { fromMs, toMs } = edgesOf(range, nowMs);
  const isFixed = range.kind === 'fixed';
  const set = (edges: { readonly fromMs?: number; readonly toMs?: number }): void => {
    const next = { kind: 'fixed', fromMs, toMs, ...edges } as const;
    if (next.toMs - next.fromMs >= 10_000) onRange(next);
  };
  return (
    <div class="range-bar">
      <fieldset class="switch">
        <legend class="hidden">{text.shownTime}</legend>
        {WINDOWS.map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="window"
              checked={range.kind === 'live' && name === range.window}
              onChange={() => onRange({ kind: 'live', window: name })}
            />
            <span>{text.windows[name].short}</span>
          </label>
        ))}
      </fieldset>
      <fieldset class="steps">
        <legend class="hidden">{text.move}</legend>
        <Step label={text.earlier} symbol="◀" onClick={() => onRange(shifted(range, -0.5, nowMs))} />
        <Step label={text.zoomIn} symbol="+" onClick={() => onRange(zoomed(range, 0.5, nowMs))} />
        <Step label={text.zoomOut} symbol="−" onClick={() => onRange(zoomed(range, 2, nowMs))} />
        <Step label={text.later} symbol="▶" isOff={!isFixed} onClick={() => onRange(shifted(range, 0.5, nowMs))} />
      </fieldset>
      <details class="dates" open={isFixed}>
        <summary>{isFixed ? `${dateTime(fromMs, nowMs)} – ${dateTime(toMs, nowMs)}` : text.byDate}</summary>
        <label>
          {text.from}
          <input type="datetime-local" step="1" value={localTime(fromMs)} onChange={(event) => set({ fromMs: timeOf(event, fromMs) })} />
        </label>
        <label>
          {text.to}
          <input type="datetime-local" step="1" value={localTime(toMs)} onChange={(event) => set({ toMs: timeOf(event, toMs) })} />
        </label>
      </details>
    </div>
  );
}

function Step({ isOff = false, label, symbol, onClick }: { isOff?: boolean; label: string; symbol: string; onClick: () => void }): VNode {
  return (
    <button type="button" title={label} aria-label={label} disabled={isOff} onClick={onClick}>
      {symbol}
    </button>
  );
}

/** The form of a `datetime-local` input: local time without a zone. */
function localTime(ms: number): string {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function timeOf(event: Event, otherwise: number): number {
  const ms = Date.parse((event.currentTarget as HTMLInputElement).value);
  return Number.isNaN(ms) ? otherwise : ms;
}
