import { DAY_MS, MINUTE_MS } from '../../src/core/time/time.ts';

const STEP_MS = 15 * MINUTE_MS;
const DAY_MINUTES = 1440;

/**
 * Returns a function that maps a time (ms since the epoch) to the end of the quiet hours that contain it, or null. `range` is local time of
 * the zone, such as `22:00-07:00`, and may span midnight; null or equal ends mean no quiet hours. Each step computes the local time again,
 * so days of 23 and 25 hours and skipped times need no special rule. Throws RangeError for an unknown zone.
 */
export function quietHours(range: string | null, timezone: string | null): (ms: number) => number | null {
  const [from, to] = (range ?? '').split('-').map(minutesOf);
  if (from === undefined || to === undefined || from === to) return () => null;
  const format = new Intl.DateTimeFormat('en-GB', {
    hourCycle: 'h23',
    hour: '2-digit',
    minute: '2-digit',
    ...(timezone === null ? {} : { timeZone: timezone }),
  });
  const isQuiet = (ms: number): boolean => {
    const minutes = minutesOf(format.format(ms));
    return from < to ? minutes >= from && minutes < to : minutes >= from || minutes < to;
  };
  let known = { fromMs: 0, untilMs: 0 };
  return (ms) => {
    if (ms >= known.fromMs && ms < known.untilMs) return known.untilMs;
    if (!isQuiet(ms)) return null;
    known = { fromMs: ms, untilMs: endOf(isQuiet, ms) };
    return known.untilMs;
  };
}

function minutesOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number);
  return (hours * 60 + minutes) % DAY_MINUTES;
}

/** The first minute after quiet hours. */
function endOf(isQuiet: (ms: number) => boolean, ms: number): number {
  let end = ms - (ms % MINUTE_MS) + MINUTE_MS;
  const last = ms + 2 * DAY_MS;
  while (isQuiet(end) && end < last) end += STEP_MS;
  while (end - MINUTE_MS > ms && !isQuiet(end - MINUTE_MS)) end -= MINUTE_MS;
  return end;
}
