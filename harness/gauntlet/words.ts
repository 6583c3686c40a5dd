/** What was found, for a report. */

/** How many there are, and the first few. */
export function stampsText(stamps: readonly number[]): string {
  const some = stamps.slice(0, 5).map((stamp) => new Date(stamp).toISOString());
  return `${stamps.length}: ${some.join(', ')}${stamps.length > some.length ? ' …' : ''}`;
}

/** Anything, in at most 2000 characters. */
export function textOf(found: unknown): string {
  return (typeof found === 'string' ? found : (JSON.stringify(found) ?? String(found))).slice(0, 2000);
}
