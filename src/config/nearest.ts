/** Edits (insert, delete, replace a character) from one word to another: the Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** The known word closest to a misspelled one; null if none is close. */
export function nearest(word: string, known: readonly string[]): string | null {
  if (word.length > 64) return null;
  let best: string | null = null;
  let fewest = (word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3))) + 1;
  for (const candidate of known) {
    const edits = distance(word.toLowerCase(), candidate.toLowerCase());
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best ?? completed(word, known);
}

/** Minimum length of a word that is also matched as a prefix, because an abbreviation takes more edits than a typo. */
const MIN_PREFIX_LENGTH = 3;

function completed(word: string, known: readonly string[]): string | null {
  if (word.length < MIN_PREFIX_LENGTH) return null;
  const [shortest = null] = known.filter((candidate) => candidate.startsWith(word.toLowerCase())).sort((a, b) => a.length - b.length);
  return shortest;
}
