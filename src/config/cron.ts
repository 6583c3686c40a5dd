/** Allowed values of one of the five fields of a cron expression. */
interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names in the order of their values, which begin at `min`. */
  readonly words: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day of the month', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'weekday', min: 0, max: 7, words: WEEKDAYS },
];
const DAY = 2;
const MONTH = 3;
const WEEKDAY = 4;

const DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The allowed values in words, for the documentation of a key. */
export const CRON_ALLOWED = 'a cron expression (minute hour day month weekday) such as "0 0 * * *", or off';

function numberOf(text: string, { min, words }: Field): number | null {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const index = words.indexOf(text.toLowerCase());
  return index < 0 ? null : min + index;
}

function rangeInWords({ max, min, words }: Field): string {
  return `${min} to ${max}${words.length > 0 ? ` or ${words[0]} to ${words.at(-1)}` : ''}`;
}

/** The values of one item of a field's list, or why it is invalid. A range may wrap around, as 22-5 or fri-mon. */
function valuesOf(item: string, field: Field): readonly number[] | string {
  const parts = /^(?:(\*)|([^-/*]+)(?:-([^-/*]+))?)(?:\/(\d{1,2}))?$/.exec(item);
  const wrong = `${field.name} "${item}": allowed are *, ${rangeInWords(field)}, ranges, steps such as */5, and lists of these`;
  if (!parts) return wrong;
  const [, star, firstText, lastText, stepText] = parts;
  const first = star ? field.min : numberOf(firstText as string, field);
  // Sunday is both 0 and 7; * covers only 0 to 6.
  const highest = field.max === 7 ? 6 : field.max;
  const last = star ? highest : lastText === undefined ? first : numberOf(lastText, field);
  if (first === null || last === null || Math.min(first, last) < field.min || Math.max(first, last) > field.max) return wrong;
  if (stepText !== undefined && !star && lastText === undefined) return `${field.name} "${item}": a step needs * or a range before it`;
  const size = highest - field.min + 1;
  const span = last >= first ? last - first : (last - first + size) % size;
  const step = stepText === undefined ? 1 : Number(stepText);
  if (step < 1 || step > size) return `${field.name} "${item}": a step is from 1 to ${size}`;
  const values: number[] = [];
  for (let offset = 0; offset <= span; offset += step) values.push(first + offset > field.max ? first + offset - size : first + offset);
  return values;
}

/**
 * Why a cron expression is invalid; null: it is valid. The five fields are those of crontab(5). A day of the month together with a weekday
 * is refused, because some programs require both to match and others either of them.
 */
export function cronProblem(expression: string): string | null {
  const texts = expression.trim().split(/ +/);
  if (texts.length !== FIELDS.length) return `${texts.length} ${texts.length === 1 ? 'field' : 'fields'} instead of five`;
  const values: number[][] = [];
  for (const [index, field] of FIELDS.entries()) {
    const inField: number[] = [];
    for (const item of (texts[index] as string).split(',')) {
      const found = valuesOf(item, field);
      if (typeof found === 'string') return found;
      inField.push(...found);
    }
    values.push(inField);
  }
  const isRestricted = (index: number): boolean => texts[index] !== '*';
  if (isRestricted(DAY) && isRestricted(WEEKDAY)) return 'either the day of the month or the weekday must be *';
  const fits = (values[MONTH] as number[]).some((month) =>
    (values[DAY] as number[]).some((day) => day <= (DAYS_OF_MONTHS[month - 1] as number)),
  );
  return fits ? null : `no month of "${texts[MONTH]}" has a day "${texts[DAY]}"`;
}

/** Why a schedule (a cron expression, or off) is invalid; null: it is valid. */
export function scheduleProblem(text: string): string | null {
  return text === 'off' ? null : cronProblem(text);
}

/** Whether this Node has a time zone of that name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
