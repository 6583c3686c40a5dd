import { de } from './de.ts';
import { en, type Messages } from './en.ts';

const LANGUAGES: Readonly<Record<string, Messages>> = { de, en };

/** The messages of the language in use. */
export let messages: Messages = en;

/** Selects the first preferred language that is available (BCP 47, such as `de-AT`), otherwise English. */
export function chooseLanguage(preferred: readonly string[]): Messages {
  const code = preferred.map((tag) => tag.toLowerCase().split('-')[0] as string).find((tag) => Object.hasOwn(LANGUAGES, tag));
  messages = LANGUAGES[code ?? 'en'] as Messages;
  return messages;
}
