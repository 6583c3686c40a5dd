import { de } from './de.ts';
import { en, type Words } from './en.ts';

const LANGUAGES: Readonly<Record<string, Words>> = { de, en };

/** The words of the language in use. */
export let words: Words = en;

/** Uses the first preferred language that there is (BCP 47, such as `de-AT`), or English. */
export function chooseLanguage(preferred: readonly string[]): Words {
  const code = preferred.map((tag) => tag.toLowerCase().split('-')[0] as string).find((tag) => Object.hasOwn(LANGUAGES, tag));
  words = LANGUAGES[code ?? 'en'] as Words;
  return words;
}
