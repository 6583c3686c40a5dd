export interface Difference {
  /** Such as `judgements.2.measured.value`. */
  readonly path: string;
  readonly found: string;
  readonly wanted: string;
}

const MAX_SHOWN = 100;

/** The first place at which two JSON values differ, by the order of their members; null: they are the same. */
export function firstDifference(found: unknown, wanted: unknown, path: readonly (string | number)[] = []): Difference | null {
  if (found === wanted) return null;
  if (isBranch(found) && isBranch(wanted) && Array.isArray(found) === Array.isArray(wanted)) {
    const names = new Set([...Object.keys(found), ...Object.keys(wanted)]);
    for (const name of names) {
      const difference = firstDifference(found[name], wanted[name], [...path, name]);
      if (difference) return difference;
    }
    return null;
  }
  return { path: path.join('.') || 'the whole', found: shown(found), wanted: shown(wanted) };
}

function isBranch(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
