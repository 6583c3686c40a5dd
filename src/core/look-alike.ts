/** Characters that look like ASCII ones (Unicode confusables.txt), of the scripts that occur in names. Each pair: character, ASCII. */
const PAIRS =
  // Cyrillic
  'аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwӏlѵvАAВBЕEЗ3ІIЈJКKМMНHОOРPСCЅSТTУYХXӀlҮYѴV' +
  // Greek
  'αaγyεeιiκkνvοoρpυuχxωwϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCϺM' +
  // Armenian, Latin letters outside of ASCII, dashes and circles among Chinese and Japanese characters
  'օoսuոnհhցgզqյjլlıiȷjɑaɡgɩiʋvƅbᴄcᴏoᴠvᴡwᴢzꞌlǀl一-ー-ノ/〇O丨lː:';

const LOOKS_LIKE: ReadonlyMap<string, string> = new Map(
  Array.from({ length: PAIRS.length / 2 }, (_, i) => [PAIRS[2 * i] as string, PAIRS[2 * i + 1] as string]),
);

const CJK = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Bopomofo}\p{sc=Hangul}]/u;
const SCRIPTS = [/\p{sc=Latin}/u, /\p{sc=Cyrillic}/u, /\p{sc=Greek}/u, CJK];
const COMMON = /[\p{sc=Common}\p{sc=Inherited}]/u;

/** Index of the script of a letter in SCRIPTS; -1: another one. */
function scriptOf(letter: string): number {
  return SCRIPTS.findIndex((script) => script.test(letter));
}

/**
 * Whether a name can be mistaken for another one: it mixes scripts (other than Latin with Chinese, Japanese or Korean), it looks like
 * ASCII without being it, or it is not in the form NFKC, such as a letter with a separate accent or a full-width letter, or has a mark that
 * no letter has.
 */
export function isLookAlike(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII
  if (/^[\x00-\x7f]*$/.test(name)) return false;
  // A mark that is left after composition, such as a stroke through a letter.
  if (name !== name.normalize('NFKC') || /[\p{sc=Inherited}\p{Me}]/u.test(name)) return true;
  const characters = [...name];
  const scripts = new Set(characters.filter((one) => /\p{L}/u.test(one) && !COMMON.test(one)).map(scriptOf));
  const latin = 0;
  const cjk = SCRIPTS.indexOf(CJK);
  if (scripts.size > 1 && ![...scripts].every((script) => script === latin || script === cjk)) return true;
  if (/[0-9A-Za-z]/.test(name) && characters.some((one) => one > '\x7f' && /\p{Nd}/u.test(one))) return true;
  return characters.every((one) => one <= '\x7f' || LOOKS_LIKE.has(one));
}

/** A name for display: one that can be mistaken for another is followed by its spelling, `mоn (m\u{43e}n)`. */
export function markLookAlike(name: string): string {
  if (!isLookAlike(name)) return name;
  const spelled = [...name].map((one) => (one <= '\x7f' ? one : `\\u{${(one.codePointAt(0) as number).toString(16)}}`)).join('');
  return `${name} (${spelled})`;
}
