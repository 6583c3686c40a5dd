/** Formats seconds on the run's axis: `3 d 04:05:06`. */
export function axisTime(seconds: number): string {
  const whole = Math.round(Math.abs(seconds));
  const parts = [Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, '0'));
  return `${seconds < 0 ? '−' : ''}${Math.floor(whole / 86_400)} d ${parts.join(':')}`;
}

/** Rounds to at most `digits` decimals, without trailing zeros. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** `1 restart`, `2 restarts`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * Formats with one unit and decimals: `10 min`, `3.5 h`, `300.4 s`. It is only for a length that is compared with a limit and may be just
 * above it: formatDuration truncates, and would show 300.4 s as the limit of 5 min.
 */
export function decimalDuration(seconds: number): string {
  if (seconds < 600) return `${rounded(seconds, 1)} s`;
  if (seconds < 7200) return `${rounded(seconds / 60, 1)} min`;
  return `${rounded(seconds / 3600, 2)} h`;
}
